"""One panel of lanes drawn on matplotlib axes: time to the right in microseconds, inches from the top downwards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, MaxNLocator

from refimpl.order import Race
from refimpl.program import Program, Span, SpanKind, Trace
from refimpl.timeline import drawn_edges, stem
from refimpl.view import plot_layout as look
from refimpl.view.plot_layout import HAZARD, HAZARD_TEXT, INK, PALE, Row

SIZE = 9.5
SMALL = 8.5
_DIMENSION = 0.2
_CORNER = 0.05
_HALO = [withStroke(linewidth=2.5, foreground="white")]


@cache
def text_inches(text: str, size: float = SIZE, weight: str = "normal") -> float:
    """Width of a text in inches."""
    extents = TextPath((0, 0), text, size=size, prop=FontProperties(weight=weight)).get_extents()
    return float(extents.width) / 72 if text.strip() else 0.0


@dataclass
class Panel:
    """A trace's lanes, ready to be drawn.

    Args:
        trace, program, races, window, topic, step_op: as for ``plot``.
        name: what the variant is called, above the lanes; nothing when empty.
    """

    trace: Trace
    program: Program | None
    races: tuple[Race, ...]
    window: tuple[float, float]
    topic: Sequence[str] | None
    step_op: str | None
    name: str = ""
    taken: list[tuple[float, float, float]] = field(default_factory=list)

    @property
    def top(self) -> float:
        """Inches above the first lane."""
        return 0.3 if self.name else 0.04

    @property
    def height(self) -> float:
        """Inches that the panel needs."""
        lanes = len(self.trace.lanes) * (look.LANE + look.GUTTER) - look.GUTTER
        return self.top + lanes + (_DIMENSION + 0.24 if self.step_op else 0.08)

    def draw(self, ax: Axes) -> Figure:
        """Draw on the axes, whose limits become the panel's; returns their figure."""
        self.ax, figure = ax, ax.get_figure(root=True)
        assert figure is not None, "axes outside any figure have no size"
        box, dpi = ax.get_window_extent(), figure.dpi
        self.us_per_inch = (self.window[1] - self.window[0]) / (box.width / dpi)
        self.inch = self.height / (box.height / dpi)
        self.rows = look.rows_of(self.trace.lanes, self.top)
        ax.set_xlim(*self.window)
        ax.set_ylim(self.height, 0)
        self._frame()
        for lane, row in self.rows.items():
            self._lane(lane, row)
        self._hazards()
        self._marks()
        self._dimensions()
        return figure

    # ── lanes and bars ──

    def _frame(self) -> None:
        ax = self.ax
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.spines["bottom"].set_color("#b5b5b5")
        ax.set_yticks([row.middle for row in self.rows.values()], list(self.rows))
        ax.tick_params(axis="y", length=0, pad=4, labelsize=SIZE, labelcolor=INK)
        ax.tick_params(axis="x", length=3, color="#b5b5b5", labelsize=SMALL, labelcolor=PALE)
        for tick in ax.get_yticklabels():
            tick.set_fontweight("bold")
        in_ms = self.window[1] - self.window[0] >= 2000
        ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda us, _: f"{us / 1000:g}" if in_ms else f"{us:g}"))
        unit = ax.set_xlabel("ms" if in_ms else "µs", fontsize=SMALL, color=PALE, ha="right")
        ax.xaxis.set_label_coords(-0.1 * self.us_per_inch / (self.window[1] - self.window[0]), -0.135 / self.height)
        unit.set_verticalalignment("center")
        if self.name:
            ax.text(self.window[0], 0.1, self.name, fontsize=10, fontweight="bold", color=INK, va="center")

    def _lane(self, lane: str, row: Row) -> None:
        colour = look.colour_of(lane, self.trace.lanes)
        self._box(self.window, row.top, row.end, facecolor=colour, alpha=0.1, linewidth=0)
        for wait in self._spans(lane, SpanKind.WAIT):
            held = (max(wait.start_us, self.window[0]), min(wait.end_us, self.window[1]))
            y = row.end - 0.035
            self.ax.plot(held, (y, y), color=colour, linestyle=(0, (0.6, 1.4)), linewidth=2.6, solid_capstyle="butt", zorder=2)
        bars = look.shown_bars(self.trace, lane, self.window)
        for bar in bars:
            self._bar(bar, row, colour)
        for bar, label in look.labels(bars, self.window, self.us_per_inch, text_inches).items():
            plain = bar.kind is not SpanKind.BLOCKED and label.inside
            text = self.ax.text(
                label.x,
                row.middle,
                label.text,
                fontsize=SIZE,
                color=look.text_on(colour) if plain else INK,
                ha="center" if label.inside else "left",
                va="center_baseline",
                zorder=5,
            )
            if bar.kind is SpanKind.BLOCKED:
                text.set_bbox({"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"})

    def _bar(self, bar: Span, row: Row, colour: str) -> None:
        times = (bar.start_us, bar.end_us)
        if bar.kind is SpanKind.BLOCKED:
            self._box(times, row.top, row.end, facecolor="white", edgecolor=colour, hatch="/////", linewidth=0.9)
        else:
            self._box(times, row.top, row.end, facecolor=colour, edgecolor="white", linewidth=0.6)

    def _box(self, times: tuple[float, float], top: float, end: float, **style: Any) -> FancyBboxPatch:
        """A box with round corners of the same size on both axes, cut at the window."""
        start, stop = max(times[0], self.window[0]), min(times[1], self.window[1])
        corner = min(_CORNER * self.us_per_inch, (stop - start) / 2)
        patch = FancyBboxPatch(
            (start, top),
            stop - start,
            end - top,
            boxstyle=f"round,pad=0,rounding_size={corner}",
            mutation_aspect=self.inch / self.us_per_inch,
            **{"zorder": 2, **style},
        )
        self.ax.add_patch(patch)
        return patch

    # ── records, waits and the arrows between ──

    def _marks(self) -> None:
        if self.program is None:
            return
        named: set[str] = set()
        for event, source, target in drawn_edges(self.trace, self.program):
            if source.lane == target.lane or not self._shows(source.end_us) or not self._shows(target.end_us):
                continue
            inked = self.topic is None or stem(event) in self.topic
            self._arrow(source, target, inked)
            name = event if self.topic is not None else stem(event)
            if inked and name not in named:
                named.add(name)
                self._event_name(name, source, target)

    def _arrow(self, source: Span, target: Span, inked: bool) -> None:
        down = self.rows[target.lane].top > self.rows[source.lane].top
        y0 = self.rows[source.lane].end if down else self.rows[source.lane].top
        y1 = self.rows[target.lane].top if down else self.rows[target.lane].end
        colour, width, alpha = (INK, 1.2, 0.9) if inked and self.topic else (PALE, 0.9, 0.55)
        self._curve((source.end_us, y0), (target.end_us, y1), edgecolor=colour, linewidth=width, alpha=alpha, zorder=6)
        shape, size = ("v" if down else "^"), (5.5 if inked and self.topic else 4.2)
        nudge = 0.035 * (1 if down else -1)
        style: dict[str, Any] = {
            "linestyle": "none",
            "markeredgecolor": colour,
            "markeredgewidth": 0.9,
            "clip_on": False,
            "zorder": 7,
        }
        self.ax.plot([source.end_us], [y0 + nudge], shape, markersize=size, markerfacecolor=colour, **style)
        self.ax.plot([target.end_us], [y1 - nudge], shape, markersize=size, markerfacecolor="white", **style)

    def _curve(self, start: tuple[float, float], end: tuple[float, float], **style: Any) -> None:
        """A curve that leaves and enters the lanes at a right angle."""
        bend = (end[1] - start[1]) * 0.55
        points = [start, (start[0], start[1] + bend), (end[0], end[1] - bend), end]
        path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        self.ax.add_patch(PathPatch(path, facecolor="none", **style))

    def _event_name(self, event: str, source: Span, target: Span) -> None:
        down = self.rows[target.lane].top > self.rows[source.lane].top
        row = self.rows[source.lane]
        y = row.end + look.GUTTER / 2 if down else row.top - look.GUTTER / 2
        side = 1 if target.end_us <= source.end_us + 1 or not self._fits(event, source.end_us, y, -1) else -1
        if self._fits(event, source.end_us, y, side):
            x = source.end_us + side * 0.09 * self.us_per_inch
            self._take(event, source.end_us, y, side)
            align = "left" if side > 0 else "right"
            self.ax.text(x, y, event, fontsize=SMALL, color=INK, ha=align, va="center", zorder=8, path_effects=_HALO)

    # ── hazards ──

    def _hazards(self) -> None:
        spelled = False
        for race in self.races:
            first, second = self._extent(race.first.op), self._extent(race.second.op)
            if first is None or second is None:
                continue
            for span in dict.fromkeys((first, second)):
                row = self.rows[span.lane]
                style: dict[str, Any] = {
                    "facecolor": "none",
                    "edgecolor": HAZARD,
                    "linewidth": 1.6,
                    "linestyle": (0, (3, 1.6)),
                    "zorder": 9,
                }
                self._box((span.start_us, span.end_us), row.top - 0.035, row.end + 0.035, **style)
            words = f"{race.kind} {race.bytes.buf}" if not spelled else str(race.kind)
            spelled = self._hazard_word(words, first, second) or spelled

    def _hazard_word(self, words: str, first: Span, second: Span) -> bool:
        """The dashed arc between two lanes, and the hazard's word in the gutter beside it."""
        upper, lower = sorted((first, second), key=lambda s: self.rows[s.lane].top)
        x0, x1 = self._centre(upper), self._centre(lower)
        y0, y1 = self.rows[upper.lane].end, self.rows[lower.lane].top
        if upper.lane != lower.lane:
            self._curve((x0, y0), (x1, y1), edgecolor=HAZARD, linewidth=1.4, linestyle=(0, (3, 1.6)), zorder=9)
        y = y1 - look.GUTTER / 2 if upper.lane != lower.lane else y0 + look.GUTTER / 2
        half = (text_inches(words, SMALL, "bold") / 2 + 0.07) * self.us_per_inch
        x = min(max((0.25 * x0 + 0.75 * x1), self.window[0] + half), self.window[1] - half)
        if any(abs(y - other) < 0.1 and x - half < end and start < x + half for start, end, other in self.taken):
            return False
        self.taken.append((x - half, x + half, y))
        box = {
            "boxstyle": "round,pad=0.25,rounding_size=0.7",
            "facecolor": "white",
            "edgecolor": HAZARD,
            "linewidth": 1.1,
        }
        style: dict[str, Any] = {
            "fontsize": SMALL,
            "fontweight": "bold",
            "color": HAZARD_TEXT,
            "ha": "center",
            "va": "center",
        }
        self.ax.text(x, y, words, bbox=box, zorder=11, **style)
        return True

    # ── steps ──

    def _dimensions(self) -> None:
        if self.step_op is None:
            return
        runs = [s for s in self.trace.spans if s.kind is SpanKind.RUN and self.step_op in (s.name, stem(s.name))]
        starts = sorted(s.start_us for s in runs)
        y = self.height - 0.16
        for step, (start, end) in enumerate(pairwise(starts)):
            if self._shows(start) and self._shows(end):
                arrow = {
                    "arrowstyle": "|-|,widthA=0.25,widthB=0.25",
                    "color": PALE,
                    "shrinkA": 0,
                    "shrinkB": 0,
                    "linewidth": 0.9,
                }
                self.ax.annotate("", (start, y), (end, y), arrowprops=arrow)
                texts = (
                    f"step {step} · {(end - start) / 1000:.2f} ms",
                    f"{(end - start) / 1000:.2f} ms",
                    f"{(end - start) / 1000:.2f}",
                )
                text = look.fit(texts, (end - start) / self.us_per_inch - 0.2, lambda t: text_inches(t, SMALL))
                style: dict[str, Any] = {"fontsize": SMALL, "color": INK, "ha": "center", "va": "center"}
                plate = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
                self.ax.text((start + end) / 2, y, text, bbox=plate, **style)

    # ── helpers ──

    def _shows(self, us: float) -> bool:
        return self.window[0] <= us <= self.window[1]

    def _spans(self, lane: str, kind: SpanKind) -> Iterator[Span]:
        low, high = self.window
        return (
            s for s in self.trace.spans if s.lane == lane and s.kind is kind and s.end_us > low and s.start_us < high
        )

    def _centre(self, span: Span) -> float:
        return (max(span.start_us, self.window[0]) + min(span.end_us, self.window[1])) / 2

    def _extent(self, op: int) -> Span | None:
        """The span of an op, or of all nodes of a graph, if the window shows it."""
        spans = [s for s in self.trace.spans if s.op == op and s.kind in (SpanKind.RUN, SpanKind.HOST)]
        if not spans:
            return None
        start, end = min(s.start_us for s in spans), max(s.end_us for s in spans)
        least = 0.06 * self.us_per_inch
        if end - start < least:
            start, end = (start + end - least) / 2, (start + end + least) / 2
        if end <= self.window[0] or start >= self.window[1]:
            return None
        return Span(spans[0].lane, spans[0].name, SpanKind.RUN, start, end, op)

    def _reach(self, text: str, x: float, side: int) -> tuple[float, float]:
        width = (text_inches(text, SMALL) + 0.12) * self.us_per_inch
        return (x, x + width) if side > 0 else (x - width, x)

    def _fits(self, text: str, x: float, y: float, side: int) -> bool:
        low, high = self._reach(text, x, side)
        free = all(abs(y - other) > 0.1 or high <= start or end <= low for start, end, other in self.taken)
        return free and self.window[0] <= low and high <= self.window[1]

    def _take(self, text: str, x: float, y: float, side: int) -> None:
        self.taken.append((*self._reach(text, x, side), y))
