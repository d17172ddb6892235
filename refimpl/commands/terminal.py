"""A line of progress beneath text that streams to the same terminal."""

import shutil
import sys
import time
import unicodedata
from typing import TextIO

CELLS = 24
"""How long a full bar is."""
PAUSE_S = 0.1
"""A bar that is drawn more often than this would only flicker."""
TAB = 8

ERASE_LINE, ERASE_BELOW = "\r\x1b[K", "\x1b[J"
# Down and up: at the foot of the screen this scrolls first, so that the place saved is still the text's afterwards.
BENEATH, BACK = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[K", "\x1b8"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is there, and shows what is written to someone."""
    return stream is not None and stream.isatty()


def shown(text: str) -> str:
    """The text with what a terminal would obey escaped; lines and tabs stay.

    Example:
        >>> shown("a\\x1b[2J\\n")
        'a\\\\x1b[2J\\n'
    """
    return "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)


def column_after(column: int, text: str, columns: int) -> int:
    """Where the cursor stands after a text, on a terminal so many columns wide.

    Returns:
        0 to ``columns``; ``columns`` after a full line, where the next character begins another.

    Example:
        >>> column_after(3, "ab", 5), column_after(3, "abc", 5), column_after(3, "a日", 5)
        (5, 1, 2)
    """
    for character in text:
        if character == "\n":
            column = 0
        elif character == "\t":
            column = min(column // TAB * TAB + TAB, columns - 1)
        else:
            width = _width(character)
            column = column + width if column + width <= columns else width
    return column


def bar(done: int, of: int, seconds: float) -> str:
    """A bar, the tokens done of those asked for, and how fast they come.

    Example:
        >>> bar(32, 64, 2.0)
        '[############............] 32 of 64 tokens, 16.0 tokens/s'
    """
    rate = f", {done / seconds:.1f} tokens/s" if done and seconds > 0 else ""
    return f"{filled(done, of)} {done} of {of} tokens{rate}"


def filled(done: int, of: int) -> str:
    """A bar alone.

    Example:
        >>> filled(1, 3)
        '[########................]'
    """
    full = CELLS * done // of if of else CELLS
    return f"[{'#' * full}{'.' * (CELLS - full)}]"


class StatusLine:
    """One line on stderr that rewrites itself; nothing where stderr is no terminal.

    Args:
        beneath_text: whether stdout streams text to the same terminal: the line then stands beneath it.
    """

    def __init__(self, beneath_text: bool) -> None:
        self._on = is_terminal(sys.stderr)
        self._beneath = beneath_text and is_terminal(sys.stdout)
        self._column = 0
        self._drawn_at, self._drawn = 0.0, False

    def draw(self, words: str) -> None:
        """Shows these words, unless others stand there since a moment ago."""
        now = time.monotonic()
        columns = shutil.get_terminal_size().columns
        # After a full line the cursor hangs between two, and a terminal does not say where it would come back to.
        if not self._on or self._column == columns or (self._drawn and now - self._drawn_at < PAUSE_S):
            return
        line = words[: columns - 1]
        _write(sys.stderr, f"{BENEATH}{line}{BACK}" if self._beneath else f"{ERASE_LINE}{line}")
        self._drawn_at, self._drawn = now, True

    def erase(self) -> None:
        """Leaves nothing of the line."""
        if self._drawn:
            _write(sys.stderr, ERASE_BELOW if self._beneath else ERASE_LINE)
            self._drawn = False

    def print_text(self, text: str) -> None:
        """Text to stdout; on a terminal above the line, and with nothing in it that a terminal would obey."""
        if not text:
            return
        self.erase()
        if is_terminal(sys.stdout):
            text = shown(text)
            self._column = column_after(self._column, text, shutil.get_terminal_size().columns)
        _write(sys.stdout, text)

    def say(self, words: str) -> None:
        """A line that stays, where a bar would be seen."""
        self.erase()
        if self._on:
            _write(sys.stderr, f"{words}\n")


def _write(stream: TextIO, text: str) -> None:
    print(text, end="", file=stream, flush=True)


def _width(character: str) -> int:
    """Columns that a character takes."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
