"""A request: what was asked for, what came out so far, and which cache it holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from refimpl.engine.checks import check_flag, check_number, check_whole, shown
from refimpl.engine.errors import EngineError

TEMPERATURES = 1e-4, 1e4
"""The least and the greatest: beyond them a float32 softmax overflows, or says nothing."""
SEEDS = 2**31
TOP_KS = 2**31
"""It travels as int32; more than the vocabulary is the vocabulary."""


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are chosen.

    Args:
        temperature: 0 takes the likeliest token (greedy); else 0.0001 to 10000.
        top_k: sample among this many likeliest tokens; 0 for all.
        top_p: then among the likeliest that hold this much probability.
        max_new_tokens: at most this many.
        seed: of this request's draws; they depend on it and on the position, on nothing else.
        ignore_eos: go on after the end-of-text token.

    Raises:
        EngineError: a value that means nothing.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    max_new_tokens: int = 64
    seed: int = 0
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p"):
            check_number(name, getattr(self, name))
        for name in ("top_k", "max_new_tokens", "seed"):
            check_whole(name, getattr(self, name))
        check_flag("ignore_eos", self.ignore_eos)
        low, high = TEMPERATURES
        if not (self.temperature == 0 or low <= self.temperature <= high):
            raise EngineError(f"temperature={shown(self.temperature)}: use 0 (greedy), or {low:g} to {high:g}")
        if not 0 <= self.top_k < TOP_KS:
            raise EngineError(f"top_k={shown(self.top_k)}: use 0 (all tokens) or how many to choose among")
        if not 0 < self.top_p <= 1:
            raise EngineError(f"top_p={shown(self.top_p)}: use a number above 0, up to 1")
        if self.max_new_tokens < 1:
            raise EngineError(f"max_new_tokens={shown(self.max_new_tokens)}: ask for at least one token")
        if not 0 <= self.seed < SEEDS:
            raise EngineError(f"seed={shown(self.seed)}: use 0 to {SEEDS - 1}")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    @property
    def filtered(self) -> bool:
        """Whether top-k or top-p leaves tokens out."""
        return not self.greedy and (self.top_k > 0 or self.top_p < 1)


class FinishReason(StrEnum):
    """Why a request ended: the end-of-text token, its length, or its caller."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


@dataclass(eq=False)
class Req:
    """One request on its way through the scheduler. The host alone reads and writes it.

    Args:
        rid: its number.
        prompt_ids: its prompt.
        params: how to sample.

    Attributes:
        output_ids: tokens that have reached the host.
        req_pool_idx: its row of ``req_to_token``; None while it waits.
        kv_committed_len: tokens whose KV is written, as far as the host knows: one step late.
        kv_allocated_len: tokens that it has slots for.
        swa_evicted_len: tokens whose slots in the sliding window's pool are free again.
        epoch: how often it was retracted; results of an earlier epoch are not its own.
        accept_lens: how often a verify emitted how many tokens.
    """

    rid: int
    prompt_ids: list[int]
    params: SamplingParams
    output_ids: list[int] = field(default_factory=list)
    req_pool_idx: int | None = None
    kv_committed_len: int = 0
    kv_allocated_len: int = 0
    swa_evicted_len: int = 0
    epoch: int = 0
    finish_reason: FinishReason | None = None
    accept_lens: Counter[int] = field(default_factory=Counter)

    def finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def fill_ids(self) -> list[int]:
        """What a prefill runs over: the prompt, and after a retraction the output so far too."""
        return self.prompt_ids + self.output_ids

    @property
    def row(self) -> int:
        """Its row of ``req_to_token``."""
        assert self.req_pool_idx is not None, f"request {self.rid} holds no row of req_to_token"
        return self.req_pool_idx

    def accept(self, tokens: list[int], eos_token_id: int) -> list[int]:
        """Appends tokens until the request ends, and returns those that it took."""
        params, output_ids = self.params, self.output_ids
        taken = tokens[: params.max_new_tokens - len(output_ids)]
        if not params.ignore_eos and eos_token_id in taken:
            taken = taken[: taken.index(eos_token_id) + 1]
            self.finish_reason = FinishReason.STOP
        output_ids += taken
        if self.finish_reason is None and len(output_ids) == params.max_new_tokens:
            self.finish_reason = FinishReason.LENGTH
        return taken
