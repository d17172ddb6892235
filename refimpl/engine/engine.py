"""``Engine``: text in, text out, over the scheduler. The one name of this room that most callers need."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.build import build_scheduler
from refimpl.engine.checks import check_whole, shown
from refimpl.engine.completion import Completion, Piece, Running
from refimpl.engine.config import DRAFTS, MOST_TOKENS, EngineConfig
from refimpl.engine.errors import EngineError
from refimpl.engine.interrupts import HeldCtrlC
from refimpl.engine.output_processor import Output
from refimpl.engine.prompts import Prompt, prompt_tokens
from refimpl.engine.request import SEEDS, FinishReason, Req, SamplingParams
from refimpl.model.acceptance import ForcedAcceptance
from refimpl.model.registry import WEIGHTS, load_draft, load_target
from refimpl.model.tokenizer import TOKENIZER_PATH, Tokenizer


class Engine:
    """Decodes text, speculatively and overlapped, on a GPU or on the simulated device.

    Args:
        target: ``"nano"`` or ``"small"``, trained; ``"8b"``: Qwen3-8B's shape with random weights, for timing.
        draft: ``"none"``, ``"eagle"``, ``"mtp"`` or ``"dflash"``.
        device: ``"cuda"`` or ``"sim"``; the best one present by default.
        dtype: of weights and cache; by default bfloat16 on CUDA and float32 on ``sim``.
        sliding_window: what every odd layer sees; None: everything.
        forced: accept lengths made up for timing; None: earned.
        weights: the folder of trained sizes and their tokenizer; by default those that come with the package.
        options: of :class:`EngineConfig`.

    Raises:
        EngineError: an unknown name, an option that means nothing, or weights that do not fit.

    Order:
        The constructor captures graphs and blocks the host. Threads may share an engine: they take turns, and each turn
        serves the prompts of all. Ctrl-C ends a stream between two turns; the second one interrupts a turn, upon which
        every request of the engine ends.

    Example:
        >>> from refimpl.engine import Engine
        >>> engine = Engine(target="nano", draft="none", device="sim", max_running_requests=1)
        >>> [completion] = engine.generate("def fib(n):", max_new_tokens=4)
        >>> len(completion.token_ids)
        4
    """

    def __init__(
        self,
        target: str = "small",
        draft: str = "none",
        device: str | None = None,
        *,
        dtype: torch.dtype | None = None,
        sliding_window: int | None = None,
        forced: ForcedAcceptance | None = None,
        weights: str | Path = WEIGHTS,
        **options: Any,
    ) -> None:
        if draft not in DRAFTS:
            raise EngineError(f"unknown draft {shown(draft)}: use one of {', '.join(DRAFTS)}")
        _check_kinds(device, dtype, sliding_window, weights)
        if forced is not None and not isinstance(forced, ForcedAcceptance):
            raise EngineError(f"forced={shown(forced)}: use a ForcedAcceptance, or None")
        self.config = _config(options)
        try:
            self.device = devices.best() if device is None else device
            devices.get(self.device)
            dtype = dtype or (torch.float32 if self.device == "sim" else torch.bfloat16)
            folder = Path(weights)
            self.target = load_target(target, self.device, dtype, sliding_window=sliding_window, weights=folder)
            self.draft = None if draft == "none" else load_draft(draft, target, self.target, weights=folder)
            self.tokenizer = Tokenizer.load(folder / TOKENIZER_PATH.name)
        except (ValueError, RuntimeError, OSError) as error:
            raise EngineError(str(error)) from error
        self.scheduler = build_scheduler(self.target, self.draft, self.config, forced)
        self._rids = itertools.count(1)
        self._running: dict[int, Running] = {}
        self._left: deque[Running] = deque()
        # Reentrant: within a turn, memory may be collected, and with it a stream that nobody holds.
        self._lock = threading.RLock()
        self._turning = False
        self._ctrl_c = HeldCtrlC()
        self._loop: Iterator[list[Output]] | None = None

    def generate(self, prompts: Prompt | Iterable[Prompt], **params: Any) -> list[Completion]:
        """Continues prompts, all of them together, and returns when the last one ends.

        Args:
            prompts: one, or several.
            params: of :class:`SamplingParams`; prompt i draws with ``seed + i``.

        Raises:
            EngineError: a prompt or a parameter that cannot be served; none of the prompts was started then.
        """
        running = self._admit(prompts, params)
        with self._ctrl_c, closing(self._drive(running)) as pieces:
            for _ in pieces:
                self._ctrl_c.deliver()
        return [one.completion() for one in running]

    def stream(self, prompts: Prompt | Iterable[Prompt], **params: Any) -> Generator[Piece, None, None]:
        """Continues prompts and yields what each step brings; closing the generator ends what still runs.

        Args, Raises: as :meth:`generate`; checked before the first piece is asked for.
        """
        return self._drive(self._admit(prompts, params))

    def _admit(self, prompts: Prompt | Iterable[Prompt], params: dict[str, Any]) -> list[Running]:
        first = _params(params)
        made = []
        for index, ids in enumerate(prompt_tokens(prompts, self.tokenizer, self.target.config.vocab_size)):
            seeded = _params({**params, "seed": (first.seed + index) % SEEDS})
            made.append(Running(self._request(ids, seeded, index), index, self.tokenizer.stream()))
        return made

    def _request(self, ids: list[int], params: SamplingParams, index: int) -> Req:
        """A request that fits: its text ends where the context does."""
        memory = self.scheduler.memory
        room = min(self.config.max_context, memory.num_slots - memory.reserve) - len(ids)
        if room < 1:
            slots = "num_slots" if memory.window is None else "num_slots and num_swa_slots"
            raise EngineError(
                f"prompt {index} has {len(ids)} tokens, and {self.config.max_context} of context or "
                f"{memory.num_slots} KV slots leave no room for one more: shorten it, or raise max_context or {slots}"
            )
        fitting = SamplingParams(**{**vars(params), "max_new_tokens": min(params.max_new_tokens, room)})
        return Req(next(self._rids), ids, fitting)

    def _drive(self, running: list[Running]) -> Generator[Piece, None, None]:
        """Yields the pieces of these prompts; turns of the loop serve every other prompt that runs, too."""
        try:
            with self._lock:
                self._running |= {one.req.rid: one for one in running}
                self.scheduler.inbox.extend(one.req for one in running)
            while True:
                yield from self._taken(running)
                if all(one.req.finished() for one in running):
                    # Another thread's turn may have brought the last of it meanwhile.
                    yield from self._taken(running)
                    return
                self._turn()
        finally:
            self._leave(running)

    def _leave(self, running: list[Running]) -> None:
        """Ends what still runs of these prompts; what is in flight for nobody else lands."""
        if sys.is_finalizing():
            # The interpreter closes streams as it exits, when no operator can run any more.
            return
        with self._lock, self._ctrl_c:
            self._left.extend(running)
            if self._turning:
                # A stream that nobody holds is closed wherever memory is collected, even within a turn.
                return
            self._end_left()
            while not self._running and self._turn():
                pass

    def _end_left(self) -> None:
        while self._left:
            req = self._left.popleft().req
            self.scheduler.abort(req)
            self._running.pop(req.rid, None)

    @staticmethod
    def _taken(running: list[Running]) -> Iterator[Piece]:
        for one in running:
            while one.pieces:
                yield one.pieces.popleft()

    def _turn(self) -> bool:
        """One turn of the loop; False if there was nothing to do."""
        with self._lock, self._ctrl_c:
            self._end_left()
            if self._loop is None:
                scheduler = self.scheduler
                self._loop = scheduler.event_loop_overlap() if self.config.overlap else scheduler.event_loop_normal()
            self._turning = True
            try:
                outputs = next(self._loop, None)
            except BaseException:
                self._start_over_blocking()
                raise
            finally:
                self._turning = False
            if outputs is None:
                self._loop = None
                return False
            for output in outputs:
                if output.rid in self._running:
                    self._running[output.rid].take(output)
            return True

    def _start_over_blocking(self) -> None:
        """After an error within a turn, of which nobody knows what was done: every request ends, all memory is free."""
        self._loop = None
        for one in self._running.values():
            if not one.req.finished():
                one.req.finish_reason = FinishReason.ABORT
                one.take(Output(one.req.rid, [], FinishReason.ABORT))
        self.scheduler.start_over_blocking()


def _check_kinds(device: object, dtype: object, sliding_window: int | None, weights: object) -> None:
    if device is not None and (not isinstance(device, str) or ":" in device):
        raise EngineError(f"device={shown(device)}: use 'cuda' or 'sim', a name without an index")
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise EngineError(f"dtype={shown(dtype)}: use torch.float32 or torch.bfloat16")
    if sliding_window is not None:
        check_whole("sliding_window", sliding_window)
        if not 1 <= sliding_window < MOST_TOKENS:
            raise EngineError(f"sliding_window={shown(sliding_window)}: use 1 to {MOST_TOKENS - 1}, or None")
    if not isinstance(weights, str | Path):
        raise EngineError(f"weights={shown(weights)}: use the path of a folder")


def _config(options: dict[str, Any]) -> EngineConfig:
    known = EngineConfig.__dataclass_fields__
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        raise EngineError(f"unknown option {unknown!r}: use one of {', '.join(known)}")
    return EngineConfig(**options)


def _params(params: dict[str, Any]) -> SamplingParams:
    known = SamplingParams.__dataclass_fields__
    unknown = next((name for name in params if name not in known), None)
    if unknown is not None:
        raise EngineError(f"unknown parameter {unknown!r}: use one of {', '.join(known)}")
    return SamplingParams(**params)
