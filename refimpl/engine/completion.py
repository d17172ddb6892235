"""What a caller gets: pieces of text as they come, and a completion in the end."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from refimpl.engine.output_processor import Output
from refimpl.engine.request import FinishReason, Req
from refimpl.model.tokenizer import TextStream


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
class Running:
    """A prompt on its way.

    Args:
        req: its request.
        index: its place among the prompts of its caller.
        stream: makes text of its tokens.
        text: that has come so far.
        pieces: that have come, and were not asked for yet.
    """

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
        completion = None if output.finish_reason is None else self.completion()
        self.pieces.append(Piece(self.index, text, output.token_ids, output.finish_reason, completion))

    def completion(self) -> Completion:
        """All that has come; once its request has ended."""
        req = self.req
        assert req.finish_reason is not None, f"request {req.rid} still runs"
        return Completion(
            "".join(self.text),
            req.output_ids,
            req.finish_reason,
            req.accept_lens.total(),
            dict(sorted(req.accept_lens.items())),
        )
