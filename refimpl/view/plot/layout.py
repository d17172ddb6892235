"""What a still picture of a timeline puts where: rows, colours, labels that fit. Data, tested without pixels."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline import stem
from refimpl.timeline.reading.places import gpu_name, is_host

INK = "#1a1a1a"
PALE = "#6b6b6b"
HAZARD = "#D55E00"
HAZARD_TEXT = "#a84a00"
COLOURS = {"host": "#555555", "schedule": "#E69F00", "plan": "#009E73", "forward": "#0072B2", "copy": "#56B4E9"}
OTHERS = ("#CC79A7", "#B3A2E0", "#C2B280", "#8FC1B5", "#A8B0BA")
"""The lanes' colours, the same as in ``shared/timeline.css``: a stranger's lane takes the next of the others."""

LANE = 0.27
GUTTER = 0.29
"""Height in inches of a lane and of the space below it, which holds arrows, event names and hazard words."""

_SHARED = 0.8

Measure = Callable[[str], float]


@dataclass(frozen=True)
class Row:
    """A lane's place, in inches from the top."""

    top: float
    end: float

    @property
    def middle(self) -> float:
        """Where the lane's name and its labels stand."""
        return (self.top + self.end) / 2

    def slot(self, number: int, count: int) -> "Row":
        """One of ``count`` equal parts of the row, from the top."""
        part = (self.end - self.top) / count
        return Row(self.top + number * part, self.top + (number + 1) * part)


@dataclass(frozen=True)
class Label:
    """A text inside a bar, centred on ``x`` of the time axis, or beside it, from ``x`` on; ``scale`` is of its size."""

    text: str
    x: float
    inside: bool
    scale: float = 1.0


def rows_of(lanes: Sequence[str], top: float = 0.0) -> dict[str, Row]:
    """A row for each lane, top to bottom."""
    pitch = LANE + GUTTER
    return {lane: Row(top + k * pitch, top + k * pitch + LANE) for k, lane in enumerate(lanes)}


def colour_of(lane: str, lanes: Sequence[str]) -> str:
    """The lane's colour: the host's for all its threads, a stream's on every GPU; lanes without one take turns.

    Example:
        >>> lanes = ("host", "thread 7", "GPU 1 forward", "mine")
        >>> [colour_of(lane, lanes) for lane in lanes]
        ['#555555', '#555555', '#0072B2', '#CC79A7']
    """
    if _known(lane):
        return COLOURS[_known(lane)]
    others = [name for name in lanes if not _known(name)]
    return OTHERS[others.index(lane) % len(OTHERS)]


def _known(lane: str) -> str:
    """The lane of the house that this one is coloured as, or an empty string."""
    name = "host" if is_host(lane) else lane.removeprefix(gpu_name(lane)).strip()
    return name if name in COLOURS else ""


def text_on(colour: str) -> str:
    """White or ink, whichever has more contrast with the colour."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (light + 0.05) > (light + 0.05) / 0.06 else INK


def fit(texts: Sequence[str], width: float, measure: Measure) -> str:
    """The first wording that fits, else the last one cut to no less than four letters and 60 %, else nothing.

    Example:
        >>> fit(("verify 1", "verify"), 6.5, lambda text: float(len(text)))
        'verify'
        >>> fit(("extend",), 5.5, lambda text: float(len(text)))
        'exte…'
    """
    for text in texts:
        if measure(text) <= width:
            return text
    last = texts[-1]
    least = max(4, round(len(last) * 0.6))
    keep = _most(least, len(last) - 1, lambda count: measure(last[:count] + "…") <= width)
    return "" if keep < least else last[:keep] + "…"


def lane_name(lane: str, width: float, measure: Measure) -> str:
    """The name of a lane, without its middle where it is too long: names of streams often differ at their ends.

    Example:
        >>> lane_name("copy of worker 12", 9, lambda text: float(len(text)))
        'copy…r 12'
    """
    if measure(lane) <= width:
        return lane
    keep = _most(1, len(lane) // 2, lambda count: measure(f"{lane[:count]}…{lane[-count:]}") <= width)
    return f"{lane[:keep]}…{lane[-keep:]}" if keep else "…"


def _most(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The largest count from low to high that fits, found by halving; low - 1 when none does."""
    return low - 1 + bisect_left(range(low, high + 1), True, key=lambda count: not fits(count))


def wrap(text: str, width: float, measure: Measure) -> list[str]:
    """The text in lines no longer than ``width``, broken between words.

    Example:
        >>> wrap("wait holds the stream", 11, lambda text: float(len(text)))
        ['wait holds', 'the stream']
    """
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and measure(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def wordings(span: Span) -> tuple[str, ...]:
    """What a bar may be called, longest first.

    Example:
        >>> wordings(Span("host", "synchronize(verify_done 0)", SpanKind.BLOCKED, 0, 1))
        ('blocked: verify_done 0', 'blocked: verify_done', 'blocked')
    """
    if span.kind is not SpanKind.BLOCKED:
        return tuple(dict.fromkeys((span.name, stem(span.name))))
    what = (
        span.name.removeprefix("synchronize(").removesuffix(")") if span.name.startswith("synchronize(") else span.name
    )
    return tuple(dict.fromkeys((f"blocked: {what}", f"blocked: {stem(what)}", "blocked")))


def slots(bars: Sequence[Span]) -> dict[Span, tuple[int, int]]:
    """Which part of its row each bar takes, and of how many: bars that overlap, as a graph's branches do, share it.

    Args:
        bars: one lane's, in order of time.
    """
    placed: dict[Span, tuple[int, int]] = {}
    for group in _together(bars):
        ends: list[float] = []
        chosen: list[int] = []
        for bar in group:
            free = next((k for k, end in enumerate(ends) if end <= bar.start_us), len(ends))
            ends[free : free + 1] = [bar.end_us]
            chosen.append(free)
        placed.update({bar: (slot, len(ends)) for bar, slot in zip(group, chosen, strict=True)})
    return placed


def _together(bars: Sequence[Span]) -> list[list[Span]]:
    """Bars in groups that do not overlap each other."""
    groups: list[list[Span]] = []
    end = float("-inf")
    for bar in bars:
        if bar.start_us >= end:
            groups.append([])
        groups[-1].append(bar)
        end = max(end, bar.end_us)
    return groups


def labels(
    bars: Sequence[Span],
    places: Mapping[Span, tuple[int, int]],
    window: tuple[float, float],
    us_per_inch: float,
    measure: Measure,
) -> dict[Span, Label]:
    """Labels of the bars of one lane: inside where they fit, else to the right if that space is free, else dropped.

    Args:
        bars: the lane's bars in order of time.
        places: the part of the row that each bar takes; a third of it or less holds no text.
        window: what the axis shows, in microseconds.
        us_per_inch: scale of the axis.
        measure: width of a text in inches.
    """
    placed: dict[Span, Label] = {}
    pad = 0.07
    for k, bar in enumerate(bars):
        count = places[bar][1]
        if count > 2:
            continue
        scale = 1.0 if count == 1 else _SHARED
        start, end = max(bar.start_us, window[0]), min(bar.end_us, window[1])
        text = fit(wordings(bar), ((end - start) / us_per_inch - pad) / scale, measure)
        if text:
            placed[bar] = Label(text, (start + end) / 2, True, scale)
            continue
        room = (min([window[1], *(b.start_us for b in bars[k + 1 : k + 2])]) - end) / us_per_inch
        text = fit(wordings(bar)[:2], room - 2 * pad, measure) if bar.kind is SpanKind.RUN and count == 1 else ""
        if text and not text.endswith("…"):
            placed[bar] = Label(text, end + 0.05 * us_per_inch, False, scale)
    return placed


def shown_bars(trace: Trace, lane: str, window: tuple[float, float]) -> list[Span]:
    """The lane's spans with a width that the window shows, in order of time, marks and waits aside."""
    return _shown(trace, lane, window, (SpanKind.RUN, SpanKind.HOST, SpanKind.BLOCKED))


def shown_waits(trace: Trace, lane: str, window: tuple[float, float]) -> list[Span]:
    """The lane's waits that take time and that the window shows, in order of time."""
    return _shown(trace, lane, window, (SpanKind.WAIT,))


def _shown(trace: Trace, lane: str, window: tuple[float, float], kinds: tuple[SpanKind, ...]) -> list[Span]:
    spans = [s for s in trace.spans if s.lane == lane and s.kind in kinds and s.us > 0]
    return sorted((s for s in spans if s.end_us > window[0] and s.start_us < window[1]), key=lambda s: s.start_us)
