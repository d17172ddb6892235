"""Axes with time in microseconds to the right and inches downwards, and the shapes that a timeline is made of."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, MaxNLocator

from refimpl.program.errors import printable
from refimpl.view.plot.glyphs import unknown_glyphs
from refimpl.view.plot.layout import INK, PALE, Row

SIZE = 9.5
SMALL = 8.5
_CORNER = 0.05
_LONG = 150
_THIN = 0.012
"""Inches of a band that is hardly there: one that is there at all is seen."""
_RULE = "#b5b5b5"
Point = tuple[float, float]


@cache
def text_inches(text: str, size: float = SIZE, weight: str = "normal") -> float:
    """Width of a text in inches; of one longer than any figure is wide, an estimate from its beginning."""
    if not text.strip():
        return 0.0
    if len(text) > _LONG:
        return text_inches(text[:_LONG], size, weight) * len(text) / _LONG
    font = FontProperties(weight=weight, size=size)
    with unknown_glyphs():
        width, _, _ = text_to_path.get_text_width_height_descent(printable(text), font, ismath=False)
    return float(width) / 72


class Canvas:
    """Axes to draw a window of time on.

    Args:
        ax: the axes, whose limits become the canvas's.
        window: from and to, in microseconds.
        height: of what is drawn, in inches; other axes than ours stretch it.
    """

    def __init__(self, ax: Axes, window: Point, height: float) -> None:
        figure = ax.get_figure(root=True)
        assert figure is not None, "axes outside any figure have no size"
        self.ax, self.window, self.height, self.figure = ax, window, height, figure
        box, dpi = ax.get_window_extent(), figure.dpi
        self.us_per_inch = (window[1] - window[0]) / (box.width / dpi)
        self._aspect = height / (box.height / dpi) / self.us_per_inch
        self._taken: list[tuple[float, float, float]] = []
        ax.set_xlim(*window)
        ax.set_ylim(height, 0)

    def frame(self, rows: dict[str, Row], names: Sequence[str]) -> None:
        """The time axis below and the names of the lanes' rows at the left."""
        ax = self.ax
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.spines["bottom"].set_color(_RULE)
        ax.set_yticks([row.middle for row in rows.values()], names)
        ax.tick_params(axis="y", length=0, pad=4, labelsize=SIZE, labelcolor=INK)
        ax.tick_params(axis="x", length=3, color=_RULE, labelsize=SMALL, labelcolor=PALE)
        for name in ax.get_yticklabels():
            name.set_parse_math(False)
            name.set_fontweight("bold")
        in_ms = self.window[1] - self.window[0] >= 2000
        ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda us, _: f"{us / 1000:g}" if in_ms else f"{us:g}"))
        unit = ax.set_xlabel("ms" if in_ms else "µs", fontsize=SMALL, color=PALE, ha="right", va="center")
        ax.xaxis.set_label_coords(-0.1 * self.us_per_inch / (self.window[1] - self.window[0]), -0.135 / self.height)
        unit.set_verticalalignment("center")

    def shows(self, us: float) -> bool:
        """True when the window holds that time."""
        return self.window[0] <= us <= self.window[1]

    def cut(self, start: float, end: float) -> Point:
        """The part of a stretch of time that the window holds."""
        return max(start, self.window[0]), min(end, self.window[1])

    # ── shapes ──

    def box(self, times: Point, top: float, end: float, **style: Any) -> None:
        """A box whose corners are equally round on both axes."""
        left, right = self.cut(*times)
        corner = min(_CORNER * self.us_per_inch, (right - left) / 2)
        shape = f"round,pad=0,rounding_size={corner}"
        style = {"zorder": 2, **style}
        self.ax.add_patch(
            FancyBboxPatch((left, top), right - left, end - top, boxstyle=shape, mutation_aspect=self._aspect, **style)
        )

    def band(self, foot: Sequence[float], head: Sequence[float], row: Row, **style: Any) -> None:
        """A band across the whole window, in equal columns: each from one share of the row's height to another."""
        if not any(high > low for low, high in zip(foot, head, strict=True)):
            return
        least = _THIN / (row.end - row.top)
        tall = [max(high, low + least) if high > low else low for low, high in zip(foot, head, strict=True)]
        width = (self.window[1] - self.window[0]) / len(tall)
        edges = [self.window[0] + k * width for k in range(len(tall) + 1)]
        tops, ends = ([row.end - part * (row.end - row.top) for part in (*parts, parts[-1])] for parts in (tall, foot))
        self.ax.fill_between(edges, tops, ends, step="post", zorder=2, **style)

    def dots(self, times: Point, y: float, colour: str) -> None:
        """A dotted line: a stream that waits."""
        style: dict[str, Any] = {"linestyle": (0, (0.6, 1.4)), "linewidth": 2.6}
        self.ax.plot(self.cut(*times), (y, y), color=colour, zorder=2, **style)

    def curve(self, start: Point, end: Point, **style: Any) -> None:
        """A curve that leaves and enters the lanes at a right angle."""
        bend = (end[1] - start[1]) * 0.55
        points = [start, (start[0], start[1] + bend), (end[0], end[1] - bend), end]
        path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        self.ax.add_patch(PathPatch(path, facecolor="none", **style))

    def triangle(self, at: Point, down: bool, size: float, colour: str, filled: bool) -> None:
        """A mark on a lane's edge: filled for a record, hollow for a wait."""
        style: dict[str, Any] = {"markersize": size, "markeredgecolor": colour, "markeredgewidth": 0.9, "zorder": 7}
        face = colour if filled else "white"
        self.ax.plot([at[0]], [at[1]], "v" if down else "^", markerfacecolor=face, clip_on=False, **style)

    # ── texts ──

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """A text, in ink and centred on its height unless the style says otherwise."""
        style = {"fontsize": SMALL, "color": INK, "va": "center", "zorder": 8, **style}
        self.ax.text(x, y, printable(text), parse_math=False, **style)

    def note(self, text: str, x: float, y: float, sides: tuple[int, ...]) -> bool:
        """A text beside a point, at the first side (-1 left, 1 right) where nothing stands yet; else it is dropped."""
        width = (text_inches(text, SMALL) + 0.12) * self.us_per_inch
        for side in sides:
            low, high = (x, x + width) if side > 0 else (x - width, x)
            if self.take(low, high, y):
                halo = [withStroke(linewidth=2.5, foreground="white")]
                align = "left" if side > 0 else "right"
                self.text(x + side * 0.09 * self.us_per_inch, y, text, ha=align, path_effects=halo)
                return True
        return False

    def pill(self, text: str, x: float, y: float, colour: str, ink: str) -> bool:
        """A bold text in a pill, moved into the window; dropped where something stands already."""
        half = (text_inches(text, SMALL, "bold") / 2 + 0.07) * self.us_per_inch
        x = min(max(x, self.window[0] + half), self.window[1] - half)
        if not self.take(x - half, x + half, y):
            return False
        shape = {"boxstyle": "round,pad=0.25,rounding_size=0.7", "facecolor": "white", "edgecolor": colour}
        self.text(x, y, text, ha="center", color=ink, fontweight="bold", bbox={**shape, "linewidth": 1.1}, zorder=11)
        return True

    def take(self, low: float, high: float, y: float) -> bool:
        """Claim a stretch of a gutter; False, and nothing claimed, when it is not free or leaves the window."""
        clash = any(abs(y - other) < 0.1 and low < end and start < high for start, end, other in self._taken)
        if clash or low < self.window[0] or high > self.window[1]:
            return False
        self._taken.append((low, high, y))
        return True
