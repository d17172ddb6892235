"""``Engine``: text in, text out, over the scheduler. The one name of this room that most callers need."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.build import build_scheduler
from refimpl.engine.checks import check_whole, shown
from refimpl.engine.config import DRAFTS, MOST_TOKENS, EngineConfig
from refimpl.engine.errors import EngineError
from refimpl.engine.interrupts import ctrl_c_afterwards
from refimpl.engine.output_processor import Output
from refimpl.engine.prompts import Prompt, prompt_tokens
from refimpl.engine.request import SEEDS, FinishReason, Req, SamplingParams
from refimpl.model.acceptance import ForcedAcceptance
from refimpl.model.registry import WEIGHTS, load_draft, load_target
from refimpl.model.tokenizer import TOKENIZER_PATH, TextStream, Tokenizer


@dataclass(frozen=True)
class Completion:
    """What came of a prompt.

    Args:
        text: its continuation.
        token_ids: the same in tokens, an end-of-text token included.
        finish_reason: why it ended.
        num_verify: steps after the prefill; each verified the drafts of one block.
        accept_lens: how many of them emitted how many tokens; a step's tokens past the request's end count here.
    """

    text: str
    token_ids: list[int]
    finish_reason: FinishReason
    num_verify: int
    accept_lens: dict[int, int]

    @property
    def accept_len(self) -> float:
        """Tokens a verify, on average; 0 where the prefill's token was all."""
        tokens = sum(length * times for length, times in self.accept_lens.items())
        return tokens / self.num_verify if self.num_verify else 0.0


@dataclass(frozen=True)
class Piece:
    """What a step brought a prompt.

    Args:
        index: which prompt.
        text: may be empty: a token can end in the middle of a character.
        token_ids: new tokens.
        finish_reason: why it ended; None while it runs.
        completion: with the last piece, all that came of the prompt; None before.
    """

    index: int
    text: str
    token_ids: list[int]
    finish_reason: FinishReason | None
    completion: Completion | None = None


@dataclass
class _Running:
    """A prompt on its way: its request, and what has come of it and was not asked for yet."""

    req: Req
    index: int
    stream: TextStream
    text: list[str] = field(default_factory=list)
    pieces: deque[Piece] = field(default_factory=deque)

    def take(self, output: Output) -> None:
        """Turns new tokens into a piece."""
        text = self.stream.push(output.token_ids)
        if output.finish_reason is not None:
            text += self.stream.finish()
        self.text.append(text)
        completion = None if output.finish_reason is None else _completion(self)
        self.pieces.append(Piece(self.index, text, output.token_ids, output.finish_reason, completion))


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
        self._running: dict[int, _Running] = {}
        self._left: deque[_Running] = deque()
        # Reentrant: within a turn, memory may be collected, and with it a stream that nobody holds.
        self._lock = threading.RLock()
        self._turning = False
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
        for _ in self._drive(running):
            pass
        return [_completion(one) for one in running]

    def stream(self, prompts: Prompt | Iterable[Prompt], **params: Any) -> Generator[Piece, None, None]:
        """Continues prompts and yields what each step brings; closing the generator ends what still runs.

        Args, Raises: as :meth:`generate`; checked before the first piece is asked for.
        """
        return self._drive(self._admit(prompts, params))

    def _admit(self, prompts: Prompt | Iterable[Prompt], params: dict[str, Any]) -> list[_Running]:
        first = _params(params)
        made = []
        for index, ids in enumerate(prompt_tokens(prompts, self.tokenizer, self.target.config.vocab_size)):
            seeded = _params({**params, "seed": (first.seed + index) % SEEDS})
            made.append(_Running(self._request(ids, seeded, index), index, self.tokenizer.stream()))
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

    def _drive(self, running: list[_Running]) -> Generator[Piece, None, None]:
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

    def _leave(self, running: list[_Running]) -> None:
        """Ends what still runs of these prompts; what is in flight for nobody else lands."""
        if sys.is_finalizing():
            # The interpreter closes streams as it exits, when no operator can run any more.
            return
        with self._lock, ctrl_c_afterwards():
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
    def _taken(running: list[_Running]) -> Iterator[Piece]:
        for one in running:
            while one.pieces:
                yield one.pieces.popleft()

    def _turn(self) -> bool:
        """One turn of the loop; False if there was nothing to do."""
        with self._lock, ctrl_c_afterwards():
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


def _completion(one: _Running) -> Completion:
    req = one.req
    assert req.finish_reason is not None, "the loop ends when every request has"
    return Completion(
        "".join(one.text),
        req.output_ids,
        req.finish_reason,
        req.accept_lens.total(),
        dict(sorted(req.accept_lens.items())),
    )
