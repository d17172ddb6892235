"""The printed timeline: what it puts where, what it says, and that it says it in words too."""

import sys
import warnings
from itertools import pairwise
from pathlib import Path

import pytest

from refimpl.order import check
from refimpl.program import Launch, Program, Span, SpanKind, Stream, Trace, TraceSource, UserError
from refimpl.program.errors import printable
from refimpl.timeline import schedule
from refimpl.timeline.intervals import length, union
from refimpl.view.plot import alt_text, compare, plot
from refimpl.view.plot.dense import CROWD, Crowd, crowd, shares
from refimpl.view.plot.layout import COLOURS, fit, labels, rows_of, slots, text_on, wordings
from tests.unit.timeline.loops import of, overlapped, program
from tests.view.long_run import long_run

RACY = program(
    Launch(stream="s", name="verify", us=400, writes=(of("x"),)),
    Launch(stream="t", name="prepare", us=90, reads=(of("x"),)),
)


def texts(picture: object) -> list[str]:
    return [text.get_text() for ax in picture.figure.axes for text in ax.texts]  # type: ignore[attr-defined]


def drawn(of_program: Program, **more: object) -> list[str]:
    return texts(plot(schedule(of_program), of_program, check(of_program).races, **more))  # type: ignore[arg-type]


def test_lanes_stand_top_to_bottom_in_the_traces_order() -> None:
    picture = plot(schedule(overlapped("wait")))
    ax = picture.figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["host", "schedule", "forward"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_hazard_is_drawn_with_its_word_and_its_buffer() -> None:
    assert "RAW x" in drawn(RACY)


def test_program_without_races_shows_no_hazard() -> None:
    assert not any(word in text for text in drawn(overlapped("wait")) for word in ("RAW", "WAR", "WAW"))


def test_blocked_host_says_so_in_its_bar() -> None:
    assert any(text.startswith("blocked") for text in drawn(overlapped("synchronize")))


def test_topic_events_are_named_at_each_step_and_others_not() -> None:
    shown = drawn(overlapped("wait"), topic=["verify_done"], window=(0, 8000))
    assert {"verify_done 0", "verify_done 1"} <= set(shown)
    assert not any(text.startswith("prepared") for text in shown)


def test_steps_are_measured_below_the_lanes() -> None:
    assert any(text.startswith("step 1 ·") for text in drawn(overlapped("synchronize", steps=4), step_op="verify"))


def test_compared_traces_share_one_axis_and_their_names_are_shown() -> None:
    picture = compare({fence: schedule(overlapped(fence)) for fence in ("synchronize", "wait")})
    first, second = picture.figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert {"synchronize", "wait"} <= set(texts(picture))


def test_drawing_on_given_axes_leaves_their_figure_alone() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3))
    ax = figure.add_subplot()
    assert plot(schedule(RACY), RACY, ax=ax).figure is figure
    assert ax.patches


def test_picture_is_the_same_bytes_each_time_and_carries_its_alternative_text(tmp_path: Path) -> None:
    first, second = (plot(schedule(RACY), RACY, check(RACY).races, title="A <claim>") for _ in "12")
    assert first.png() == second.png()
    bundle = first._repr_mimebundle_()
    assert 'alt="A &lt;claim&gt;. Timeline of' in bundle["text/html"]
    first.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 1000


def test_alternative_text_tells_order_and_hazard() -> None:
    words = alt_text(schedule(RACY), check(RACY).races)
    assert "In order of start: verify (s), prepare (t)." in words
    assert "Hazard: RAW on x between verify on s and prepare on t, which nothing orders." in words
    assert alt_text(schedule(overlapped("wait")), races=()).endswith("No hazard.")


def test_alternative_text_says_nothing_of_hazards_where_nobody_looked() -> None:
    assert "azard" not in alt_text(schedule(RACY))


def test_alternative_text_tells_what_holds_the_host() -> None:
    assert "The host is held 5 times by synchronize(verify_done)" in alt_text(schedule(overlapped("synchronize")))


def test_missing_matplotlib_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "refimpl.view.plot.panel", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(UserError, match="needs matplotlib"):
        plot(schedule(RACY))


def test_nothing_to_draw_is_one_sentence() -> None:
    with pytest.raises(UserError, match="nothing to draw"):
        plot(Trace(("host",), (), TraceSource.SCHEDULED))
    with pytest.raises(UserError, match="at least one trace"):
        compare({})


def test_variant_without_anything_to_draw_is_named() -> None:
    later = Trace(("host", "forward"), (bar("verify", 900, 950),), TraceSource.SCHEDULED)
    for other, window in ((Trace(("host",), (), TraceSource.SCHEDULED), None), (later, (0.0, 500.0))):
        with pytest.raises(UserError, match="nothing to draw of 'wait'"):
            compare({"none": schedule(RACY), "wait": other}, window=window)


def chars(text: str) -> float:
    return 0.1 * len(text)


def bar(name: str, start: float, end: float, kind: SpanKind = SpanKind.RUN) -> Span:
    return Span("forward", name, kind, start, end)


def test_label_is_shortened_then_cut_then_dropped() -> None:
    assert fit(("verify 1", "verify"), 0.8, chars) == "verify 1"
    assert fit(("verify 1", "verify"), 0.7, chars) == "verify"
    assert fit(("verify 1", "verify"), 0.5, chars) == "veri…"
    assert fit(("verify 1", "verify"), 0.4, chars) == ""


def test_fitting_a_long_name_measures_it_a_few_times() -> None:
    asked = []
    name = "gather" * 100

    def measure(text: str) -> float:
        asked.append(text)
        return chars(text)

    assert fit((name,), 50.0, measure) == name[:499] + "…"
    assert fit((name,), 3.0, measure) == ""
    assert len(asked) < 30


@pytest.mark.parametrize("width", [k / 10 for k in range(1, 30)])
def test_a_name_is_cut_as_late_as_fits(width: float) -> None:
    cut = fit(("prepare for verify",), width, chars)
    assert chars(cut) <= width
    assert cut in ("", "prepare for verify") or chars(cut + "x") > width


def test_names_of_streams_keep_their_ends_and_leave_the_picture_its_room() -> None:
    names = ["copy of worker " * 7 + end for end in "01"]
    streams = {name: Stream() for name in names}
    ops = tuple(Launch(stream=name, name="draft", us=90) for name in names)
    ax = plot(schedule(Program(streams=streams, ops=ops))).figure.axes[0]
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert [shown[1][-1], shown[2][-1]] == ["0", "1"]
    assert all(name.startswith("copy") and "…" in name for name in shown[1:])
    assert ax.get_position().width > 0.6


@pytest.mark.parametrize("name", ["a$b$c", r"$\foo$", "\ud800", "a\x1b\nb", "$"])
def test_names_are_drawn_as_they_are_and_are_no_formulas(name: str) -> None:
    ops = (Launch(stream=name, name=name, us=900),)
    picture = plot(schedule(Program(streams={name: Stream()}, ops=ops)))
    assert picture.png()
    assert printable(name) in texts(picture)
    assert printable(name) in [label.get_text() for label in picture.figure.axes[0].get_yticklabels()]


def test_small_bar_is_named_at_its_right_only_where_that_is_free() -> None:
    first, second = bar("draft", 0, 10), bar("verify", 40, 900)
    assert first not in labels([first, second], slots([first, second]), (0, 1000), 1000, chars)
    far = bar("verify", 800, 900)
    placed = labels([first, far], slots([first, far]), (0, 1000), 1000, chars)[first]
    assert (placed.text, placed.inside) == ("draft", False)
    assert placed.x > 10


def test_blocked_bar_is_called_by_what_it_waits_for() -> None:
    assert wordings(bar("synchronize(verify_done 3)", 0, 1, SpanKind.BLOCKED))[1] == "blocked: verify_done"


def test_rows_do_not_touch_and_texts_have_contrast() -> None:
    rows = list(rows_of(("host", "schedule", "forward")).values())
    assert all(lower.top > upper.end for upper, lower in pairwise(rows))
    assert [text_on(COLOURS[lane]) for lane in ("host", "schedule", "forward")] == ["#ffffff", "#1a1a1a", "#ffffff"]


def test_bars_that_overlap_on_one_lane_share_its_height() -> None:
    root, left, right, after = bar("root", 0, 10), bar("left", 10, 30), bar("right", 10, 60), bar("after", 60, 70)
    assert slots([root, left, right, after]) == {root: (0, 1), left: (0, 2), right: (1, 2), after: (0, 1)}


# ── runs of many spans ──


def test_a_lane_of_few_spans_is_drawn_span_by_span_however_short_they_are() -> None:
    bars = [bar("draft", 10.0 * k, 10.0 * k + 1) for k in range(CROWD)]
    assert crowd(bars, (0, 1e6), 1e5) == Crowd(bars, [], [])


def test_a_crowd_is_summed_up_and_what_can_be_seen_in_it_is_drawn_as_itself() -> None:
    short = [bar("draft", 2.0 * k, 2.0 * k + 1) for k in range(4000)]
    held = [bar("synchronize(e)", 10_000 + 4.0 * k, 10_001 + 4.0 * k, SpanKind.BLOCKED) for k in range(500)]
    long = bar("verify", 8000, 9000)
    shown = crowd([*short, long, *held], (0, 12_000), 12_000 / 4.0)
    assert shown.bars == [long]
    assert len(shown.busy) == len(shown.held) == 400
    assert {round(share, 6) for share in shown.busy[:260]} == {0.5}
    assert set(shown.busy[270:]) == set(shown.held[:330]) == {0.0}
    assert {round(share, 1) for share in shown.held[340:]} <= {0.2, 0.3}


def test_the_shares_of_all_columns_are_the_time_that_is_covered() -> None:
    times = [(0.3 * k, 0.3 * k + 0.07 * (k % 5)) for k in range(1000)]
    window = (13.7, 251.2)
    covered = length(union(times, window))
    for count in (1, 7, 400, 5000):
        found = shares(times, window, count)
        assert sum(found) * (window[1] - window[0]) / count == pytest.approx(covered)
        assert all(0 <= share <= 1 for share in found)


def test_a_run_of_many_spans_has_few_shapes_and_says_what_a_band_is() -> None:
    run = long_run(20_000)
    picture = plot(run, step_op="prepare")
    (ax,) = picture.figure.axes
    assert len(ax.patches) + len(ax.collections) + len(ax.lines) < 400
    assert any("height of a band: share of the time" in text.get_text() for text in picture.figure.texts)
    steps = sum(span.name.startswith("prepare") for span in run.spans) - 1
    assert any(text.startswith(f"{steps} steps · median 0.") for text in texts(picture))
    assert "Busy: host " in picture.alt


def test_more_arrows_than_can_be_told_apart_are_left_out_and_counted() -> None:
    many, few = overlapped("wait", steps=200), overlapped("wait", steps=4)
    left_out = [any("arrows left out" in t.get_text() for t in plot(schedule(p), p).figure.texts) for p in (many, few)]
    assert left_out == [True, False]


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_a_picture_is_the_same_bytes_in_every_format(format: str) -> None:
    first, second = (plot(schedule(RACY), RACY).encoded(format) for _ in "12")
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[format])


def test_a_picture_of_an_unknown_format_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="png, svg, pdf"):
        plot(schedule(RACY)).save(tmp_path / "a.bmp")
    assert not list(tmp_path.iterdir())


def test_letters_that_no_font_has_are_no_warning() -> None:
    trace = Trace(("host",), (Span("host", "🚀 start", SpanKind.HOST, 0, 5),), TraceSource.MEASURED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plot(trace).png().startswith(b"\x89PNG")
