"""A recorded run as a still SVG: what stands in print, with scripts off, and in viewers without widgets."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from math import floor, log10

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.reading.places import is_host
from refimpl.view.plot.layout import colour_of, lane_name

WIDTH, LEFT, TOP, LANE, PITCH = 880, 104, 6, 20, 30
_INK = "var(--pst-color-text-base,currentColor)"
_STYLE = (
    f".run-frame text{{font:11px system-ui,sans-serif;fill:{_INK}}}"
    ".run-frame .name{font-weight:650}"
    f".run-frame .line{{stroke:{_INK};fill:none;opacity:.4}}"
)
_HATCH = (
    '<pattern id="{key}h" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M1 0v6" stroke="#777" stroke-width="2"/></pattern>'
)
_LEVELS = 6
"""Columns of pixels are drawn in as many shades as tell apart how much of their time a lane was at work."""


def run_frame(trace: Trace, title: str, words: str) -> str:
    """The whole run, lane by lane; each pixel as dark as the lane was busy in its time, held time hatched.

    Args:
        trace: what ran, of any length: the picture's size depends on its lanes alone.
        title: its name.
        words: text for readers who do not see it.

    Example:
        >>> from refimpl.program import TraceSource
        >>> trace = Trace(("host",), (Span("host", "build", SpanKind.HOST, 0, 5),), TraceSource.MEASURED)
        >>> run_frame(trace, "tiny", "One lane.").count("<rect")
        2
    """
    used = {span.lane for span in trace.spans}
    lanes = [lane for lane in trace.lanes if lane in used]
    end = trace.end_us or 1.0
    key = f"r{sha256((title + words).encode(errors='backslashreplace')).hexdigest()[:8]}"
    parts = [part for row, lane in enumerate(lanes) for part in _lane(trace, lane, row, end, key)]
    bottom = TOP + len(lanes) * PITCH
    body = "".join([*parts, *_axis(bottom, end)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 24}" class="run-frame" role="img"'
        f' aria-labelledby="{key}t {key}d"><title id="{key}t">{escape(title)}</title>'
        f'<desc id="{key}d">{escape(words)}</desc><style>{_STYLE}</style>'
        f"<defs>{_HATCH.format(key=key)}</defs>{body}</svg>"
    )


def shares(spans: Sequence[Span], end_us: float, columns: int) -> list[float]:
    """How much of each of so many equal parts of the time the spans take, from 0 to 1.

    Example:
        >>> shares([Span("host", "build", SpanKind.HOST, 5, 15)], 20, 4)
        [0.0, 1.0, 1.0, 0.0]
        >>> shares([Span("host", "build", SpanKind.HOST, 0, 2.5)], 20, 4)
        [0.5, 0.0, 0.0, 0.0]
    """
    part, taken = end_us / columns, [0.0] * columns
    for span in spans:
        first = min(int(span.start_us / part), columns - 1)
        last = min(int(span.end_us / part), columns - 1)
        for k in range(first, last + 1):
            taken[k] += max(0.0, min(span.end_us, (k + 1) * part) - max(span.start_us, k * part))
    return [min(1.0, us / part) for us in taken]


def _lane(trace: Trace, lane: str, row: int, end: float, key: str) -> Iterator[str]:
    y, colour = TOP + row * PITCH, colour_of("host" if is_host(lane) else lane, trace.lanes)
    spans = [span for span in trace.spans if span.lane == lane]
    yield _rect(LEFT, y, WIDTH - LEFT, f'fill="{colour}" fill-opacity="0.1" rx="3"')
    name = lane_name(lane, LEFT - 6, lambda text: len(text) * 6.4)
    yield f'<text class="name" x="0" y="{y + 14}">{escape(name)}</text>'
    held = [span for span in spans if span.kind in (SpanKind.BLOCKED, SpanKind.WAIT)]
    work = [span for span in spans if span.kind in (SpanKind.RUN, SpanKind.HOST)]
    for x, width, share in _runs(shares(work, end, WIDTH - LEFT)):
        yield _rect(LEFT + x, y, width, f'fill="{colour}" fill-opacity="{share:.2f}"')
    for x, width, share in _runs(shares(held, end, WIDTH - LEFT)):
        yield _rect(LEFT + x, y, width, f'fill="url(#{key}h)" fill-opacity="{share:.2f}"')


def _runs(columns: Sequence[float]) -> Iterator[tuple[int, int, float]]:
    """Neighbours of one shade together: where they begin, how many they are, and the shade."""
    levels = [-int(-share * _LEVELS // 1) for share in columns]
    begin = 0
    for k in range(1, len(levels) + 1):
        if k == len(levels) or levels[k] != levels[begin]:
            if levels[begin]:
                yield begin, k - begin, levels[begin] / _LEVELS
            begin = k


def _rect(x: float, y: float, width: float, more: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{LANE}" {more}/>'


def _axis(y: float, end: float) -> Iterator[str]:
    unit, scale = ("ms", 1000.0) if end >= 2000 else ("µs", 1.0)
    least = 60 * end / (WIDTH - LEFT)
    decade = 10.0 ** floor(log10(least))
    step = next(m * decade for m in (1, 2, 5, 10) if m * decade >= least)
    yield f'<path class="line" d="M{LEFT},{y}H{WIDTH}"/>'
    ticks = [k * step for k in range(int(end / step) + 1)]
    shown = [us for us in ticks if us / end * (WIDTH - LEFT) < WIDTH - LEFT - 30]
    for us in shown:
        x = LEFT + us / end * (WIDTH - LEFT)
        text = f"{us / scale:g}" + (f" {unit}" if us == shown[-1] else "")
        yield f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{text}</text>'
