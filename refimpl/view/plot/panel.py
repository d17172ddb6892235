"""One panel of a printed timeline: lanes, bars, marks with their arrows, hazards, steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from refimpl.order import Race
from refimpl.program import Program, Span, SpanKind, Trace
from refimpl.program.errors import printable
from refimpl.timeline import drawn_edges, stem
from refimpl.view.plot import dense as dense
from refimpl.view.plot import layout as look
from refimpl.view.plot.canvas import SIZE, Canvas, text_inches
from refimpl.view.plot.layout import GUTTER, HAZARD, HAZARD_TEXT, INK, LANE, PALE, Row
from refimpl.view.plot.steps import PLATE as _PLATE
from refimpl.view.plot.steps import mark_steps

_STEPS = 0.44
_NAMES = 1.4
"""Most inches for the names of the lanes: what is beyond them is the picture's."""
_NUDGE = 0.035
_STROKE = 0.028
_ARROWS = 150
"""Arrows that a picture can hold: more are a smear."""
_DASHES = (0, (3, 1.6))


def _bold_inches(text: str) -> float:
    return text_inches(text, SIZE, "bold")


@dataclass(frozen=True)
class Panel:
    """A trace's lanes, ready to be drawn.

    Args:
        trace, program, races, window, topic: as for ``plot``.
        steps: when each step begins, in microseconds; empty when none are marked.
        name: what the variant is called, above the lanes; nothing when empty.
    """

    trace: Trace
    program: Program | None
    races: tuple[Race, ...]
    window: tuple[float, float]
    topic: Sequence[str] | None
    steps: tuple[float, ...] = ()
    name: str = ""

    @property
    def top(self) -> float:
        """Inches above the first lane."""
        return 0.3 if self.name else 0.04

    @property
    def height(self) -> float:
        """Inches that the panel needs."""
        return self.top + len(self.trace.lanes) * (LANE + GUTTER) - GUTTER + (_STEPS if self.steps else 0.1)

    @property
    def gutter(self) -> float:
        """Inches that the names of the lanes need."""
        return max(map(_bold_inches, self.lane_names))

    @property
    def lane_names(self) -> list[str]:
        """The names of the lanes as they stand at the left."""
        return [look.lane_name(printable(lane), _NAMES, _bold_inches) for lane in self.trace.lanes]

    def signs(self, width: float) -> list[str]:
        """What has to be explained in so many inches: dotted lines, bands, arrows that are left out."""
        scale = (self.window[1] - self.window[0]) / width
        lanes = {lane: (look.shown_waits(self.trace, lane, self.window), self.bars(lane)) for lane in self.trace.lanes}
        said = ["dotted: the stream waits"] if any(waits for waits, _ in lanes.values()) else []
        if any(dense.crowd(bars, self.window, scale).busy for _, bars in lanes.values()):
            said.append("height of a band: share of the time")
        arrows = len(self.arrows) if self.program is not None else 0
        return [*said, f"{arrows:,} arrows left out"] if arrows > _ARROWS else said

    def bars(self, lane: str) -> list[Span]:
        """The lane's spans that the window shows, in order of time."""
        return look.shown_bars(self.trace, lane, self.window)

    @cached_property
    def arrows(self) -> list[tuple[str, Span, Span]]:
        """From records to waits, both ends in the window."""
        if self.program is None:
            return []
        low, high = self.window
        edges = drawn_edges(self.trace, self.program)
        return [edge for edge in edges if all(low <= span.end_us <= high for span in edge[1:])]

    def draw(self, ax: Axes) -> Figure:
        """Draw on the axes, whose limits become the panel's; returns their figure."""
        canvas = Canvas(ax, self.window, self.height)
        rows = look.rows_of(self.trace.lanes, self.top)
        canvas.frame(rows, self.lane_names)
        if self.name:
            canvas.text(self.window[0], 0.1, self.name, fontsize=10, fontweight="bold")
        _Drawing(self, canvas, rows).all()
        return canvas.figure


@dataclass(frozen=True)
class _Drawing:
    """A panel on its canvas."""

    panel: Panel
    canvas: Canvas
    rows: dict[str, Row]

    def all(self) -> None:
        for lane in self.rows:
            self.lane(lane)
        for number, race in enumerate(self.panel.races):
            self.hazard(race, spell=number == 0)
        if self.panel.program is not None:
            self.fences()
        if self.panel.steps:
            mark_steps(self.canvas, self.panel.steps, self.panel.height - 0.16)

    # ── lanes and bars ──

    def lane(self, lane: str) -> None:
        canvas, row, trace = self.canvas, self.rows[lane], self.panel.trace
        colour = look.colour_of(lane, trace.lanes)
        canvas.box(canvas.window, row.top, row.end, facecolor=colour, alpha=0.1, linewidth=0)
        for wait in look.shown_waits(trace, lane, canvas.window):
            canvas.dots((wait.start_us, wait.end_us), row.end - _NUDGE, colour)
        shown = dense.crowd(self.panel.bars(lane), canvas.window, canvas.us_per_inch)
        if shown.busy:
            self.bands(shown, row, colour)
        places = look.slots(shown.bars)
        for bar in shown.bars:
            self.bar(bar, row.slot(*places[bar]), colour)
        for bar, label in look.labels(shown.bars, places, canvas.window, canvas.us_per_inch, text_inches).items():
            if label.inside or not shown.busy:  # beside a bar of a crowd stands the crowd
                self.label(bar, label, row.slot(*places[bar]), colour)

    def bands(self, shown: dense.Crowd, row: Row, colour: str) -> None:
        """Of spans too short to be seen, how much of each column's time they take, from the lane's foot up."""
        tall = [busy + held for busy, held in zip(shown.busy, shown.held, strict=True)]
        blocked = {"facecolor": "white", "edgecolor": colour, "hatch": "/////"}
        self.canvas.band(shown.busy, tall, row, linewidth=0, **blocked)
        self.canvas.band([0.0] * len(tall), shown.busy, row, facecolor=colour, linewidth=0)

    def label(self, bar: Span, label: look.Label, row: Row, colour: str) -> None:
        on_bar = label.inside and bar.kind is not SpanKind.BLOCKED
        ink, align = look.text_on(colour) if on_bar else INK, "center" if label.inside else "left"
        plate = {"bbox": _PLATE} if bar.kind is SpanKind.BLOCKED else {}
        style = {"fontsize": SIZE * label.scale, "color": ink, "ha": align, "va": "center_baseline", "zorder": 5}
        self.canvas.text(label.x, row.middle, label.text, **style, **plate)

    def bar(self, bar: Span, row: Row, colour: str) -> None:
        """A bar, hatched where the host is held; one too short to be seen is drawn as wide as a stroke."""
        least = _STROKE * self.canvas.us_per_inch
        times = (bar.start_us, max(bar.end_us, bar.start_us + least))
        if bar.kind is SpanKind.BLOCKED:
            self.canvas.box(times, row.top, row.end, facecolor="white", edgecolor=colour, hatch="/////", linewidth=0.9)
        else:
            edge = ("white", 0.6) if bar.us > 2 * least else (colour, 0.0)
            self.canvas.box(times, row.top, row.end, facecolor=colour, edgecolor=edge[0], linewidth=edge[1])

    # ── records, waits and the arrows between ──

    def fences(self) -> None:
        """Arrows from records to waits, and the marks that have none; of more than can be told apart, none."""
        arrows = self.panel.arrows
        if len(arrows) > _ARROWS:
            return
        joined = {span for _, *ends in arrows for span in ends}
        named: set[str] = set()
        for event, source, target in arrows:
            if source.lane == target.lane:
                continue
            in_topic = self.panel.topic is not None and stem(event) in self.panel.topic
            self.arrow(source, target, strong=in_topic)
            name = event if in_topic else stem(event)
            if (in_topic or self.panel.topic is None) and name not in named:
                named.add(name)
                self.event_name(name, source, target)
        for span in self.panel.trace.spans:
            alone = span.kind is SpanKind.RECORD or (span.kind is SpanKind.WAIT and span.us == 0)
            if alone and span not in joined and self.canvas.shows(span.end_us):
                row, is_record = self.rows[span.lane], span.kind is SpanKind.RECORD
                y = row.end + _NUDGE if is_record else row.top - _NUDGE
                self.canvas.triangle((span.end_us, y), True, 4.2, PALE, filled=is_record)

    def arrow(self, source: Span, target: Span, strong: bool) -> None:
        """From the record's edge of its lane to the waiting lane's; the hollow triangle is the arrow's head."""
        down = self.rows[target.lane].top > self.rows[source.lane].top
        nudge = _NUDGE if down else -_NUDGE
        start, end = self.facing(source, down), self.facing(target, not down)
        colour, width, alpha, size = (INK, 1.2, 0.9, 5.5) if strong else (PALE, 0.9, 0.55, 4.2)
        self.canvas.curve(start, end, edgecolor=colour, linewidth=width, alpha=alpha, zorder=6)
        self.canvas.triangle((start[0], start[1] + nudge), down, size, colour, filled=True)
        self.canvas.triangle((end[0], end[1] - nudge), down, size, colour, filled=False)

    def facing(self, span: Span, below: bool) -> tuple[float, float]:
        row = self.rows[span.lane]
        return span.end_us, row.end if below else row.top

    def event_name(self, name: str, source: Span, target: Span) -> None:
        down = self.rows[target.lane].top > self.rows[source.lane].top
        x, edge = self.facing(source, down)
        sides = (1, -1) if target.end_us <= source.end_us + 1 else (-1, 1)
        self.canvas.note(name, x, edge + (GUTTER / 2 if down else -GUTTER / 2), sides)

    # ── hazards ──

    def hazard(self, race: Race, spell: bool) -> None:
        """Both ops in dashes, a dashed arc between their lanes, and the hazard's word in the gutter."""
        first, second = self.extent(race.first.op), self.extent(race.second.op)
        if first is None or second is None:
            return
        dashed = {"edgecolor": HAZARD, "linestyle": _DASHES, "zorder": 9}
        for span in {first, second}:
            row, times = self.rows[span.lane], (span.start_us, span.end_us)
            self.canvas.box(times, row.top - _NUDGE, row.end + _NUDGE, facecolor="none", linewidth=1.6, **dashed)
        upper, lower = sorted((first, second), key=lambda s: self.rows[s.lane].top)
        (x0, y0), (x1, y1) = (
            (self.centre(upper), self.rows[upper.lane].end),
            (self.centre(lower), self.rows[lower.lane].top),
        )
        if upper.lane != lower.lane:
            self.canvas.curve((x0, y0), (x1, y1), linewidth=1.4, **dashed)
        y = y1 - GUTTER / 2 if upper.lane != lower.lane else y0 + GUTTER / 2
        words = f"{race.kind} {race.bytes.buf}" if spell else str(race.kind)
        self.canvas.pill(words, 0.25 * x0 + 0.75 * x1, y, HAZARD, HAZARD_TEXT)

    def extent(self, op: int) -> Span | None:
        """The stretch of an op, all nodes of a graph included, wide enough to be seen; None outside the window."""
        kinds = (SpanKind.RUN, SpanKind.HOST)
        spans = [s for s in self.panel.trace.spans if s.op == op and s.kind in kinds]
        if not spans:
            return None
        start, end = min(s.start_us for s in spans), max(s.end_us for s in spans)
        grow = max(0.0, 0.06 * self.canvas.us_per_inch - (end - start)) / 2
        if end + grow <= self.canvas.window[0] or start - grow >= self.canvas.window[1]:
            return None
        return Span(spans[0].lane, spans[0].name, SpanKind.RUN, start - grow, end + grow, op)

    def centre(self, span: Span) -> float:
        return sum(self.canvas.cut(span.start_us, span.end_us)) / 2
