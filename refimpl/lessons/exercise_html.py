"""Cards: what predictions and exercises show in a notebook, as HTML without a script and as plain text."""

import html
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from refimpl.lessons.lines import WIDTH

_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Card:
    """Something to show in a cell: HTML where there is a page, text elsewhere.

    Args:
        body: HTML for the page.
        plain: the same in text.
    """

    body: str
    plain: str

    def _repr_html_(self) -> str:
        return framed(self.body)

    def __repr__(self) -> str:
        return self.plain


def framed(body: str) -> str:
    """HTML with the one style sheet of these cards beside it: each output stands alone, offline as well."""
    # Lumino hears arrow keys before the radio buttons do, unless it is told not to.
    return f'<div class="so" data-lm-suppress-shortcuts="true"><style>{_style()}</style>\n{body}\n</div>'


def inline(text: str) -> str:
    """Escaped text in which `backticks` mark code.

    Example:
        >>> inline("`a < b`")
        '<code>a &lt; b</code>'
    """
    return _CODE.sub(r"<code>\1</code>", html.escape(text, quote=True))


def paragraphs(text: str) -> str:
    """Paragraphs, which a blank line parts."""
    return "\n".join(f"<p>{inline(part.strip())}</p>" for part in re.split(r"\n\s*\n", text.strip()))


def plain(text: str, width: int = WIDTH) -> str:
    """The same paragraphs for a terminal, filled to a width."""
    parts = (" ".join(part.split()).replace("`", "") for part in re.split(r"\n\s*\n", text.strip()))
    return "\n\n".join(textwrap.fill(part, width) for part in parts)


def code(source: str, label: str) -> str:
    """A listing; it scrolls sideways where it is too wide, by keyboard too."""
    return f'<pre tabindex="0" role="region" aria-label="{html.escape(label)}"><code>{html.escape(source)}</code></pre>'


def folded(summary: str, body: str) -> str:
    """HTML that the reader unfolds."""
    return f"<details><summary>{inline(summary)}</summary>\n{body}\n</details>"


@cache
def _style() -> str:
    sheet = files("refimpl.lessons").joinpath("exercise_page.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/\n?", "", sheet)
