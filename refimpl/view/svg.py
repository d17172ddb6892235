"""The first frame as an SVG drawn in Python: what stands in print, with scripts off, and in viewers without widgets.

Plain on purpose: lanes, bars, event arrows, the hazard with its word. Text and lines follow the page's colours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from math import floor, log10
from textwrap import wrap

from refimpl.order import Race, Report, Touch, check
from refimpl.program import Program, ProgramError, Span, SpanKind, Trace, Verdict
from refimpl.timeline import drawn_edges, schedule, stem
from refimpl.view.plot.layout import HAZARD, HAZARD_TEXT, INK, colour_of, lane_name, text_on
from refimpl.view.predict import about_times, unspoiled
from refimpl.view.spec import Shown, first_program, spec_of

WIDTH, LEFT, TOP, LANE, GUTTER = 880, 104, 12, 24, 26
STEPS_SHOWN, HAZARDS_TOLD = 3, 4
_INK = "var(--pst-color-text-base,currentColor)"
_STYLE = {
    "text": f"font:11px system-ui,sans-serif;fill:{_INK}",
    ".name": "font-weight:650",
    ".white": "fill:#fff",
    ".dark": f"fill:{INK}",
    ".line": f"stroke:{_INK};fill:none",
    ".ink": f"fill:{_INK}",
    ".hazard": f"stroke:{HAZARD};stroke-width:2;stroke-dasharray:6 5;fill:none",
    ".pill": f"fill:#fff;stroke:{HAZARD}",
    ".word": f"fill:{HAZARD_TEXT};font-weight:650",
}
_HATCH = (
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M1 0v6" stroke="#777" stroke-width="2"/></pattern>'
)


@dataclass(frozen=True)
class _Frame:
    """Where times and lanes lie."""

    lanes: tuple[str, ...]
    end_us: float

    def x(self, us: float) -> float:
        return LEFT + min(us, self.end_us) / self.end_us * (WIDTH - LEFT)

    def y(self, lane: str) -> float:
        return TOP + self.lanes.index(lane) * (LANE + GUTTER)

    @property
    def axis(self) -> float:
        return TOP + len(self.lanes) * (LANE + GUTTER) - 6

    def colour(self, lane: str) -> str:
        return colour_of(lane, self.lanes)


def first_frame(shown: Shown, alt: str | None = None) -> str:
    """The scheduled program (an explorable's initial variant) as SVG, its hazards marked; a deadlock is put in words.

    Where the reader is asked first, nothing in it answers: no hazard and no verdict, and where the question is about
    time, no times.

    Args:
        shown: what to draw.
        alt: text for readers who do not see it; by default verdict, hazards and lanes in words.

    Example:
        >>> from refimpl.program import Launch, Stream
        >>> ops = (Launch(stream="forward", name="verify", us=50),)
        >>> picture = first_frame(Program(id="tiny", streams={"forward": Stream()}, ops=ops))
        >>> picture.startswith("<svg"), ">verify<" in picture
        (True, True)
    """
    spec, program = spec_of(shown), first_program(shown)
    report = check(program)
    title = str(spec.get("title") or spec.get("id") or "Stream program")
    question = spec.get("predict")
    words = unspoiled(program.lanes, question) if question else alt or in_words(program, report)
    try:
        trace = schedule(program)
    except ProgramError:
        trace = None
    if trace is None or (question and about_times(question)):
        lines = wrap(words, 130)
        told = [f'<text x="0" y="{28 + 18 * k}">{escape(line)}</text>' for k, line in enumerate(lines)]
        return _document(title, words, max(76, 30 + 18 * len(lines)), told)
    frame = _Frame(_busy_lanes(trace), _window(trace, spec.get("step_op")))
    parts = [*_lanes(frame), *_bars(frame, trace), *_arrows(frame, trace, program)]
    parts += [*_hazards(frame, trace, () if question else report.races), *_axis(frame)]
    return _document(title, words, frame.axis + 26, parts)


def in_words(program: Program, report: Report) -> str:
    """Verdict, hazards and lanes in a few sentences: the text alternative of a picture."""
    lanes = ", ".join(program.lanes)
    if report.verdict is Verdict.DEADLOCK and report.deadlock is not None:
        return f"Lanes {lanes}. Deadlock: {report.deadlock.words}."
    if not report.races:
        return f"Lanes {lanes}. No hazard: every conflicting pair of ops is ordered."
    hazards = dict.fromkeys(
        f"{r.kind} on {r.bytes.buf}: {_short(r.first)} and {_short(r.second)} are unordered." for r in report.races
    )
    return f"Lanes {lanes}. {' '.join(list(hazards)[:HAZARDS_TOLD])}"


def _short(touch: Touch) -> str:
    """The family of an op and its lane; of a graph's node, the node."""
    return f"{stem(touch.name.rsplit('/', 1)[-1])} on {touch.lane}"


def _document(title: str, words: str, height: float, parts: Sequence[str]) -> str:
    body = "".join(parts)
    # ids are the page's, and a page has many pictures
    key = f"f{sha256((title + words + body).encode(errors='backslashreplace')).hexdigest()[:8]}"
    style = "".join(f".first-frame {name}{{{rules}}}" for name, rules in _STYLE.items())
    drawn = f"<defs>{_HATCH}</defs>{body}".replace('id="hatch"', f'id="{key}h"').replace("url(#hatch)", f"url(#{key}h)")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" class="first-frame" role="img"'
        f' aria-labelledby="{key}t {key}d">'
        f'<title id="{key}t">{escape(title)}</title><desc id="{key}d">{escape(words)}</desc>'
        f"<style>{style}</style>{drawn}</svg>"
    )


def _busy_lanes(trace: Trace) -> tuple[str, ...]:
    busy = {span.lane for span in trace.spans} | {"host"}
    return tuple(lane for lane in trace.lanes if lane in busy)


def _window(trace: Trace, step_op: str | None) -> float:
    """Until when the frame shows: a few steps of a loop, else everything."""
    runs = [span for span in trace.spans if span.kind is SpanKind.RUN and stem(span.name) == step_op]
    return runs[STEPS_SHOWN].start_us if len(runs) > STEPS_SHOWN + 1 else max(trace.end_us * 1.02, 1.0)


def _rect(x: float, y: float, width: float, height: float, **attributes: object) -> str:
    more = "".join(f' {name.strip("_").replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}"{more}/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _lanes(frame: _Frame) -> Iterator[str]:
    for lane in frame.lanes:
        y = frame.y(lane)
        yield _rect(LEFT, y, WIDTH - LEFT, LANE, rx=4, fill=frame.colour(lane), fill_opacity=0.1)
        yield _text(0, y + 16, lane_name(lane, LEFT - 6, _name_width), "name", "start")


def _name_width(text: str) -> float:
    return len(text) * 6.4


def _bars(frame: _Frame, trace: Trace) -> Iterator[str]:
    for span in trace.spans:
        held = span.kind is SpanKind.BLOCKED
        if span.start_us >= frame.end_us or not (held or span.kind in (SpanKind.RUN, SpanKind.HOST)):
            continue
        x, colour = frame.x(span.start_us), "#777" if held else frame.colour(span.lane)
        width = max(frame.x(span.end_us) - x, 0.0 if held else 2.5)
        if width >= 1:
            yield _rect(x, frame.y(span.lane), width, LANE, rx=3, fill="url(#hatch)" if held else colour, stroke=colour)
            yield from _label(frame, span, x, width)


def _label(frame: _Frame, span: Span, x: float, width: float) -> Iterator[str]:
    held = span.kind is SpanKind.BLOCKED
    for text in ("blocked",) if held else (span.name, stem(span.name)):
        room, middle = len(text) * 6.4 + 8, x + width / 2
        if room > width:
            continue
        if held:
            yield _rect(middle - room / 2, frame.y(span.lane) + 4, room, 16, rx=3, fill="#fff")
        kind = "dark" if held or text_on(frame.colour(span.lane)) == INK else "white"
        yield _text(middle, frame.y(span.lane) + 16, text, kind)
        return


def _arrows(frame: _Frame, trace: Trace, program: Program) -> Iterator[str]:
    for _, mark, wait in drawn_edges(trace, program):
        if max(mark.end_us, wait.end_us) >= frame.end_us or mark.lane == wait.lane:
            continue
        sign = 1 if frame.y(wait.lane) > frame.y(mark.lane) else -1
        x0, x1 = frame.x(mark.end_us), frame.x(wait.end_us)
        y0, y1 = (frame.y(span.lane) + (LANE if sign == side else 0) for span, side in ((mark, 1), (wait, -1)))
        bends = f"C{x0:.1f},{y0 + 12 * sign} {x1:.1f},{y1 - 12 * sign} {x1:.1f},{y1}"
        yield f'<path class="line" opacity=".6" d="M{x0:.1f},{y0}{bends}"/>'
        yield f'<path class="ink" d="M{x1 - 3:.1f},{y1 - 5 * sign}h6l-3,{5 * sign}z"/>'


def _hazards(frame: _Frame, trace: Trace, races: Sequence[Race]) -> Iterator[str]:
    by_op: dict[int, Span] = {}
    for span in trace.spans:
        if span.op is not None and span.kind in (SpanKind.RUN, SpanKind.HOST):
            by_op[span.op] = span
    outlined: dict[Span, None] = {}
    pills: list[_Pill] = []
    for race in races:
        a, b = by_op.get(race.first.op), by_op.get(race.second.op)
        if a is None or b is None or max(a.start_us, b.start_us) >= frame.end_us:
            continue
        outlined |= dict.fromkeys((a, b))
        pill = _Pill.of(frame, a, b, f"{race.kind}" if pills else f"{race.kind} {race.bytes.buf}")
        for k, other in enumerate(pills):
            if other.covers(pill):
                pills[k] = replace(other, more=other.more + 1)
                break
        else:
            pills.append(pill)
    for span in outlined:
        x = frame.x(span.start_us) - 3
        yield _rect(x, frame.y(span.lane) - 3, max(frame.x(span.end_us) - x, 6) + 3, LANE + 6, rx=6, class_="hazard")
    for pill in pills:
        yield from pill.drawn()


@dataclass(frozen=True)
class _Pill:
    """The word of a hazard between its two lanes, and how many more would lie on it.

    Args:
        middle, y: where its middle lies.
        word: its text.
        more: hazards that it stands for besides its own.
    """

    middle: float
    y: float
    word: str
    more: int = 0

    @classmethod
    def of(cls, frame: _Frame, a: Span, b: Span, word: str) -> "_Pill":
        """The word of a hazard of two blocks: between their lanes, under the upper one."""
        upper, lower = sorted((a, b), key=lambda span: frame.y(span.lane))
        middle = (frame.x(upper.start_us) + frame.x(upper.end_us)) / 2
        half = cls(0, 0, word).half
        return cls(min(max(middle, LEFT + half), WIDTH - half), frame.y(lower.lane) - GUTTER / 2, word)

    @property
    def half(self) -> float:
        """Half of its width, with room for a count."""
        return (len(self.word) + 3) * 3.5 + 8

    def covers(self, other: "_Pill") -> bool:
        """Whether the other would lie on it."""
        return self.y == other.y and abs(self.middle - other.middle) < self.half + other.half

    def drawn(self) -> Iterator[str]:
        text = f"{self.word} +{self.more}" if self.more else self.word
        width = len(text) * 7 + 16
        yield _rect(self.middle - width / 2, self.y - 8.5, width, 17, rx=8.5, class_="pill")
        yield _text(self.middle, self.y + 4, text, "word")


def _axis(frame: _Frame) -> Iterator[str]:
    unit, scale = ("ms", 1000.0) if frame.end_us >= 2000 else ("µs", 1.0)
    per_pixel = frame.end_us / (WIDTH - LEFT)
    least = 60 * per_pixel
    decade = 10.0 ** floor(log10(least))
    step = max(1.0, next(m * decade for m in (1, 2, 5, 10) if m * decade >= least))
    yield f'<path class="line" opacity=".4" d="M{LEFT},{frame.axis}H{WIDTH}"/>'
    ticks = [k * step for k in range(int(frame.end_us / step) + 1) if frame.x(k * step) < WIDTH - 30]
    for us in ticks:
        yield _text(frame.x(us), frame.axis + 17, f"{us / scale:g}" + (f" {unit}" if us == ticks[-1] else ""))
