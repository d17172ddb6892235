"""``Engine``: text in, text out, over the scheduler. The one name of this room that most callers need."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.build import build_scheduler
from refimpl.engine.config import DRAFTS, EngineConfig
from refimpl.engine.errors import EngineError
from refimpl.engine.output_processor import Output
from refimpl.engine.request import SEEDS, FinishReason, Req, SamplingParams
from refimpl.model.acceptance import ForcedAcceptance
from refimpl.model.registry import WEIGHTS, load_draft, load_target
from refimpl.model.tokenizer import TOKENIZER_PATH, TextStream, Tokenizer

Prompt = str | Sequence[int]
"""Text, or tokens as they are."""


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
        The constructor captures graphs and blocks the host. One thread at a time may call an engine.

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
        weights: Path = WEIGHTS,
        **options: Any,
    ) -> None:
        if draft not in DRAFTS:
            raise EngineError(f"unknown draft {draft!r}: use one of {', '.join(DRAFTS)}")
        self.device = device or devices.best()
        self.config = _config(options)
        try:
            devices.get(self.device)
            dtype = dtype or (torch.float32 if self.device == "sim" else torch.bfloat16)
            self.target = load_target(target, self.device, dtype, sliding_window=sliding_window, weights=weights)
            self.draft = None if draft == "none" else load_draft(draft, target, self.target, weights=weights)
            self.tokenizer = Tokenizer.load(weights / TOKENIZER_PATH.name)
        except (ValueError, RuntimeError, OSError) as error:
            raise EngineError(str(error)) from error
        self.scheduler = build_scheduler(self.target, self.draft, self.config, forced)
        self._made = 0
        self._running: dict[int, _Running] = {}
        self._loop: Iterator[list[Output]] | None = None

    def generate(self, prompts: Prompt | Sequence[Prompt], **params: Any) -> list[Completion]:
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

    def stream(self, prompts: Prompt | Sequence[Prompt], **params: Any) -> Generator[Piece, None, None]:
        """Continues prompts and yields what each step brings; closing the generator ends what still runs.

        Args, Raises: as :meth:`generate`; checked before the first piece is asked for.
        """
        return self._drive(self._admit(prompts, params))

    def _admit(self, prompts: Prompt | Sequence[Prompt], params: dict[str, Any]) -> list[_Running]:
        given = _prompts(prompts)
        if not given:
            raise EngineError("no prompts: give at least one")
        first = _params(params)
        made = []
        for index, prompt in enumerate(given):
            ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
            seeded = _params({**params, "seed": (first.seed + index) % SEEDS})
            made.append(_Running(self._request(ids, seeded, index), index, self.tokenizer.stream()))
        return made

    def _request(self, ids: list[int], params: SamplingParams, index: int) -> Req:
        """A request that fits: its prompt is in the vocabulary, its text ends where the context does."""
        vocabulary = self.target.config.vocab_size
        if not ids:
            raise EngineError(f"prompt {index} has no tokens: give at least one")
        wrong = next((token for token in ids if not (isinstance(token, int) and 0 <= token < vocabulary)), None)
        if wrong is not None:
            raise EngineError(f"prompt {index} holds {wrong!r}, which is no token: use 0 to {vocabulary - 1}")
        memory = self.scheduler.memory
        room = min(self.config.max_context, memory.num_slots - memory.reserve) - len(ids)
        if room < 1:
            raise EngineError(
                f"prompt {index} has {len(ids)} tokens, and {self.config.max_context} of context or "
                f"{memory.num_slots} KV slots leave no room for one more: shorten it, or raise max_context or num_slots"
            )
        self._made += 1
        fitting = SamplingParams(**{**vars(params), "max_new_tokens": min(params.max_new_tokens, room)})
        return Req(self._made, ids, fitting)

    def _drive(self, running: list[_Running]) -> Generator[Piece, None, None]:
        """Yields the pieces of these prompts; turns of the loop serve every other prompt that runs, too."""
        self._running |= {one.req.rid: one for one in running}
        self.scheduler.inbox.extend(one.req for one in running)
        try:
            while True:
                yield from self._taken(running)
                if all(one.req.finished() for one in running):
                    return
                self._turn()
        finally:
            for one in running:
                self.scheduler.abort(one.req)
                del self._running[one.req.rid]
            while not self._running and self._turn():
                # What is in flight lands; nobody asks for it any more.
                pass

    @staticmethod
    def _taken(running: list[_Running]) -> Iterator[Piece]:
        for one in running:
            while one.pieces:
                yield one.pieces.popleft()

    def _turn(self) -> bool:
        """One turn of the loop; False if there was nothing to do."""
        if self._loop is None:
            scheduler = self.scheduler
            self._loop = scheduler.event_loop_overlap() if self.config.overlap else scheduler.event_loop_normal()
        outputs = next(self._loop, None)
        if outputs is None:
            self._loop = None
            return False
        for output in outputs:
            if output.rid in self._running:
                self._running[output.rid].take(output)
        return True


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


def _prompts(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt is a list of one; a list of numbers is a prompt of tokens."""
    if isinstance(prompts, str) or (prompts and isinstance(prompts[0], int)):
        return [prompts]  # type: ignore[list-item]
    return list(prompts)  # type: ignore[arg-type]


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
