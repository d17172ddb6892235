"""The continuations of several prompts, which come interleaved, as a reader wants them: one after the other."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from refimpl.program.errors import printable

if TYPE_CHECKING:
    from refimpl.engine import Completion, Piece

LABEL = 60
"""Characters of a prompt that its label shows."""


class Answers:
    """Prints the first prompt's text as it comes, and keeps that of the others until their turn.

    Args:
        prompts: in the order in which they are answered.
        print_text: where text goes; None where only the completions are wanted.

    Attributes:
        tokens: that have come so far, over all prompts.
        completions: of the prompts that ended, by their index.
    """

    def __init__(self, prompts: Sequence[str], print_text: Callable[[str], None] | None) -> None:
        self._prompts, self._print = prompts, print_text
        self._kept: list[list[str]] = [[] for _ in prompts]
        self._current = 0
        self._last = ""
        self.tokens = 0
        self.completions: dict[int, Completion] = {}
        self._label()

    def take(self, piece: "Piece") -> None:
        """What a step brought one of the prompts."""
        self.tokens += len(piece.token_ids)
        if piece.completion is not None:
            self.completions[piece.index] = piece.completion
        if piece.index > self._current:
            self._kept[piece.index].append(piece.text)
            return
        self._write(piece.text)
        while self._current in self.completions and self._current + 1 < len(self._prompts):
            self.end_line()
            self._current += 1
            self._label()
            self._write("".join(self._kept[self._current]))

    def tokens_at_most(self, max_new_tokens: int) -> int:
        """Tokens over all prompts in the end, if those that still run get all they ask for."""
        ended = self.completions.values()
        return sum(len(one.token_ids) for one in ended) + (len(self._prompts) - len(ended)) * max_new_tokens

    def end_line(self) -> None:
        """Ends the last line, if there is one and the text did not."""
        if self._last not in ("", "\n"):
            self._write("\n")

    def _label(self) -> None:
        """Says whose text comes now, where that is a question."""
        count = len(self._prompts)
        if count > 1:
            prompt = printable(self._prompts[self._current])
            short = prompt if len(prompt) <= LABEL else f"{prompt[: LABEL - 1]}…"
            self._write(f"== prompt {self._current + 1} of {count}: {short}\n")

    def _write(self, text: str) -> None:
        if self._print is not None and text:
            self._print(text)
            self._last = text[-1]
