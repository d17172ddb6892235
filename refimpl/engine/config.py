"""``EngineConfig``: what an engine is built of."""

from __future__ import annotations

from dataclasses import dataclass, field

from refimpl.engine.checks import check_flag, check_whole, shown
from refimpl.engine.errors import EngineError
from refimpl.fences import Fences

DRAFTS = ("none", "eagle", "mtp", "dflash")
MAX_BATCH = 1024
MOST_TOKENS = 2**31
"""Slots and positions travel as int32."""
COUNTS = ("max_running_requests", "max_context", "max_prefill_tokens", "draft_topk", "draft_tokens")
OPTIONAL_COUNTS = ("num_slots", "num_swa_slots", "draft_steps")
FLAGS = ("overlap", "plan_stream", "needs_cpu_seq_lens", "metadata_in_graph", "disable_consecutive_prefill_overlap")


@dataclass(frozen=True)
class EngineConfig:
    """The shape of an engine.

    Args:
        max_running_requests: requests that decode together, at most.
        max_context: tokens of a request, prompt and output, at most.
        num_slots: tokens that the cache holds over all requests; by default enough for all that may run.
        num_swa_slots: of them, tokens that sliding layers hold; by default as many.
        max_prefill_tokens: prompt tokens that one prefill takes, at most; a longer prompt runs alone.
        overlap: prepare step N+1 while step N runs (``event_loop_overlap``), or not (``event_loop_normal``).
        plan_stream: prepare in part on a stream of its own. Without EAGLE it writes ``req_to_token``, forked off
            ``schedule_stream`` and joined to it; with EAGLE it loads the verify and the draft extend.
        needs_cpu_seq_lens: the host must know the lengths of a step before it launches it, as some attention
            kernels' planners do; it then blocks for the relay's private copy.
        metadata_in_graph: graphs read the shared tables again when they are replayed, as some attention backends do.
        disable_consecutive_prefill_overlap: read the results of a prefill before the next one is launched.
        draft_steps: tokens that EAGLE drafts; None for what its weights were trained for.
        draft_topk: branches a step of EAGLE's tree; 1 drafts a chain.
        draft_tokens: rows of an EAGLE tree that are verified, the root included; unused for a chain.
        fences: what orders the streams.

    Raises:
        EngineError: a value that means nothing.
    """

    max_running_requests: int = 16
    max_context: int = 1024
    num_slots: int | None = None
    num_swa_slots: int | None = None
    max_prefill_tokens: int = 8192
    overlap: bool = True
    plan_stream: bool = False
    needs_cpu_seq_lens: bool = False
    metadata_in_graph: bool = False
    disable_consecutive_prefill_overlap: bool = False
    draft_steps: int | None = None
    draft_topk: int = 1
    draft_tokens: int = 16
    fences: Fences = field(default_factory=Fences)

    def __post_init__(self) -> None:
        given = [name for name in OPTIONAL_COUNTS if getattr(self, name) is not None]
        for name in (*COUNTS, *given):
            check_whole(name, getattr(self, name))
            if not 1 <= getattr(self, name) < MOST_TOKENS:
                raise EngineError(f"{name}={shown(getattr(self, name))}: use a positive number below {MOST_TOKENS}")
        if self.max_running_requests > MAX_BATCH:
            raise EngineError(f"max_running_requests={shown(self.max_running_requests)}: use 1 to {MAX_BATCH}")
        for name in FLAGS:
            check_flag(name, getattr(self, name))
        if not isinstance(self.fences, Fences):
            raise EngineError(f"fences={shown(self.fences)}: use refimpl.fences.Fences")

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Sizes that graphs are captured for: powers of two, and the largest batch."""
        sizes = {1 << n for n in range(self.max_running_requests.bit_length())}
        return tuple(sorted(size for size in sizes | {self.max_running_requests} if size <= self.max_running_requests))
