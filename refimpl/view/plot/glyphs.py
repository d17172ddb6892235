"""Letters that no font of the machine has."""

from collections.abc import Iterator
from contextlib import contextmanager
from warnings import catch_warnings, filterwarnings

_SAID = "Glyph .* missing from|Matplotlib currently does not support"


@contextmanager
def unknown_glyphs() -> Iterator[None]:
    """Draws them as boxes without a warning for each: names in a trace may hold anything, and the words have them.

    Example:
        >>> from warnings import warn
        >>> with unknown_glyphs():
        ...     warn("Glyph 128640 missing from font(s) DejaVu Sans.", stacklevel=1)
    """
    with catch_warnings():
        filterwarnings("ignore", _SAID, UserWarning)
        yield
