"""Lines of printed text, as wide as a page shows them whole."""

from textwrap import fill

WIDTH = 82
"""Characters; a line that is longer is read by scrolling sideways."""
HANGS = 2


def wrapped(line: str) -> str:
    """A line of words in as many lines as it takes; those behind the first hang a little further in.

    >>> print(wrapped("  schedule: " + "prepare_for_decode 1, resolve_seq_lens 1, " * 2 + "upload_rows 1"))
      schedule: prepare_for_decode 1, resolve_seq_lens 1, prepare_for_decode 1,
        resolve_seq_lens 1, upload_rows 1
    """
    indent = len(line) - len(line.lstrip())
    return fill(
        line.strip(),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + HANGS),
        break_long_words=False,
        break_on_hyphens=False,
    )
