"""``plot``: a Trace as a picture for print. ``compare``: several on one axis. ``alt_text``: the same in words."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refimpl.order import Race
from refimpl.program import Program, Trace, UserError
from refimpl.timeline.writing.columns import steps_of
from refimpl.view.plot.glyphs import unknown_glyphs
from refimpl.view.plot.layout import INK, PALE, wrap
from refimpl.view.plot.words import alt_text, source_words
from refimpl.view.write import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from refimpl.view.plot.panel import Panel

__all__ = ["Picture", "alt_text", "compare", "plot"]

WIDTH = 6.4
"""Width of a figure in inches: with 10 point type it stays readable on a screen of 390 pixels."""
_RIGHT, _BELOW, _BETWEEN = 0.14, 0.46, 0.16
_NOTES_LINE = 0.13
_DATELESS: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""What a file would say of its making: nothing, so that the same picture is the same bytes."""
_LEAST_PX = 560
"""Below this width a picture's letters are too small: on a narrow screen it scrolls sideways instead."""


@dataclass(frozen=True)
class Picture:
    """A drawn timeline with its alternative text; a notebook shows it as an image that screen readers can read.

    Args:
        figure: the matplotlib figure.
        alt: order and hazards in words.
    """

    figure: "Figure"
    alt: str

    def save(self, path: str | PathLike[str], dpi: int = 200) -> None:
        """Write the figure to a file; its ending names the format."""
        ending = Path(path).suffix.lower().removeprefix(".")
        write_whole(self.encoded(ending, dpi), path)

    def png(self, dpi: int = 200) -> bytes:
        """The figure as PNG, the same bytes at each call."""
        return self.encoded("png", dpi)

    def encoded(self, format: str, dpi: int = 200) -> bytes:
        """The figure as ``"png"``, ``"svg"`` or ``"pdf"``, the same bytes at each call.

        Raises:
            UserError: another format.
        """
        if format not in _DATELESS:
            raise UserError(f"a picture is written as {', '.join(_DATELESS)}, not as {format!r}")
        from matplotlib import rc_context

        buffer = BytesIO()
        fonts = rc_context({"svg.hashsalt": "stream order", "svg.fonttype": "path", "pdf.fonttype": 42})
        with fonts, unknown_glyphs():
            self.figure.savefig(buffer, format=format, dpi=dpi, metadata=_DATELESS[format])
        return buffer.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        data = b64encode(self.png()).decode("ascii")
        size = f"width:{round(self.figure.get_figwidth() * 110)}px;max-width:max(100%,{_LEAST_PX}px);height:auto"
        image = f'<img alt="{escape(self.alt)}" style="{size}" src="data:image/png;base64,{data}">'
        name = f"Picture. {self.alt.split('. ')[0].removesuffix('.')}"
        scroller = f'style="overflow-x:auto" tabindex="0" role="region" aria-label="{escape(name)}"'
        return {"text/html": f'<div class="timeline-picture" {scroller}>{image}</div>', "text/plain": self.alt}


def plot(
    trace: Trace,
    program: Program | None = None,
    races: Sequence[Race] | None = None,
    ax: "Axes | None" = None,
    title: str = "",
    window: tuple[float, float] | None = None,
    topic: Sequence[str] | None = None,
    step_op: str | None = None,
    width: float = WIDTH,
    steps: Sequence[float] = (),
) -> Picture:
    """Draw a trace: lanes top to bottom, bars, what holds the host, records and waits with arrows between, hazards.

    Args:
        trace: scheduled, simulated or measured.
        program: what ran; without it there are no arrows from record to wait.
        races: hazards of that program to mark, from ``refimpl.order.check(program).races``; None when not checked.
        ax: where to draw, instead of on a new figure.
        title: the claim that the picture makes.
        window: from and to in microseconds; all of the trace when None.
        topic: events under study, without their step's number: drawn in full ink, the others pale. All when None.
        step_op: name of the op whose starts mark the steps: their durations are written below the lanes.
        width: of a new figure, in inches.
        steps: when each step begins, in microseconds, in place of ``step_op``.

    Returns:
        The figure with its alternative text.

    Raises:
        UserError: matplotlib is not installed, or the trace is empty.
    """
    panel = _panel(trace, program, races, window, topic, steps or _steps(trace, step_op), name="")
    figure = panel.draw(ax) if ax is not None else _figure([panel], title, width, source_words(trace))
    return Picture(figure, _sentence(title) + alt_text(trace, races))


def compare(
    traces: Mapping[str, Trace],
    programs: Mapping[str, Program] | None = None,
    races: Mapping[str, Sequence[Race]] | None = None,
    title: str = "",
    window: tuple[float, float] | None = None,
    topic: Sequence[str] | None = None,
    step_op: str | None = None,
    width: float = WIDTH,
) -> Picture:
    """Draw traces one above the other on a common axis, so that what got longer is seen to be longer.

    Args:
        traces: by the name of the variant, top to bottom.
        programs, races: of the variants, by the same names.
        title, window, topic, step_op, width: as for ``plot``.

    Raises:
        UserError: matplotlib is not installed, or there is nothing to draw.
    """
    if not traces:
        raise UserError("compare needs at least one trace")
    window = window or (0.0, max(trace.end_us for trace in traces.values()))
    panels, alts = [], []
    for name, trace in traces.items():
        hazards = (races or {}).get(name)
        panels.append(_panel(trace, (programs or {}).get(name), hazards, window, topic, _steps(trace, step_op), name))
        alts.append(f"{name}: {alt_text(trace, hazards)}")
    sources = "; ".join(dict.fromkeys(source_words(trace) for trace in traces.values()))
    return Picture(_figure(panels, title, width, sources), _sentence(title) + " ".join(alts))


def _panel(
    trace: Trace,
    program: Program | None,
    races: Sequence[Race] | None,
    window: tuple[float, float] | None,
    topic: Sequence[str] | None,
    steps: Sequence[float],
    name: str,
) -> "Panel":
    try:
        from refimpl.view.plot.panel import Panel
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matplotlib"):
            raise
        raise UserError(f"a picture needs matplotlib ({error.name} is missing): pip install 'refimpl[book]'") from None
    low, high = window or (0.0, trace.end_us)
    shown = sum(span.start_us <= high and span.end_us >= low for span in trace.spans)
    if not shown or high <= low:
        of = f" of {name!r}" if name else ""
        raise UserError(f"there is nothing to draw{of}: {shown} spans in the window from {low} to {high} µs")
    return Panel(trace, program, tuple(races or ()), (low, high), topic, tuple(steps), name)


def _steps(trace: Trace, step_op: str | None) -> Sequence[float]:
    return steps_of(trace, None, step_op) if step_op is not None else ()


def _sentence(title: str) -> str:
    return "" if not title else f"{title} " if title.endswith((".", "?", "!")) else f"{title}. "


def _figure(panels: "Sequence[Panel]", title: str, width: float, source: str) -> "Figure":
    """A figure with the panels below each other, the title above and the source of the times below."""
    from matplotlib.figure import Figure

    from refimpl.view.plot.canvas import text_inches

    lines = wrap(title, width - 0.2, lambda text: text_inches(text, 11, "bold"))
    left = max(panel.gutter for panel in panels) + 0.14
    signs = dict.fromkeys(sign for panel in panels for sign in panel.signs(width - left - _RIGHT))
    notes = wrap(" · ".join([source, *signs]), width - left - _RIGHT, lambda text: text_inches(text, 8))
    above, below = 0.1 + 0.2 * len(lines), _BELOW + _NOTES_LINE * (len(notes) - 1)
    height = above + sum(panel.height for panel in panels) + _BETWEEN * (len(panels) - 1) + below
    figure = Figure(figsize=(width, height), facecolor="white")
    top = height - above
    for number, panel in enumerate(panels):
        box = (left / width, (top - panel.height) / height, (width - left - _RIGHT) / width, panel.height / height)
        ax = figure.add_axes(box)
        panel.draw(ax)
        if number < len(panels) - 1:
            ax.tick_params(labelbottom=False)
            ax.set_xlabel("")
        top -= panel.height + _BETWEEN
    figure.text(0.08 / width, 1 - 0.06 / height, "\n".join(lines), fontsize=11, fontweight="bold", color=INK, va="top")
    figure.text(left / width, 0.05 / height, "\n".join(notes), fontsize=8, color=PALE, va="bottom")
    return figure
