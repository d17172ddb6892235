"""What Python gives the timeline: spec, words, first frame, one script, one file."""

import builtins
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from refimpl.program import (
    Buffer,
    Explorable,
    Launch,
    Param,
    Program,
    Range,
    Stream,
    StreamWaitValue,
    UserError,
    Variant,
)
from refimpl.program import ops as o
from refimpl.view import Timeline, bundle, first_frame, page, write_page
from refimpl.view.spec import spec_of

LENS = Range("new_seq_lens", 0, 64)
STREAMS = {"forward": Stream(), "schedule": Stream()}
BUFFERS = {"new_seq_lens": Buffer(64)}
VERIFY = Launch(stream="forward", name="verify", writes=(LENS,), us=400, param="verify")
GATHER = Launch(stream="schedule", name="gather", reads=(LENS,), us=50)
RECORD = o.EventRecord(event="verify_done", stream="forward")
WAIT = o.StreamWaitEvent(event="verify_done", stream="schedule")
RACY = Program(id="racy", streams=STREAMS, buffers=BUFFERS, ops=(VERIFY, GATHER))
SAFE = Program(id="safe", streams=STREAMS, buffers=BUFFERS, ops=(VERIFY, RECORD, WAIT, GATHER))
STUCK = Program(id="stuck", streams=STREAMS, ops=(StreamWaitValue(stream="forward", flag="go"),))
BOTH = Explorable(
    id="both",
    title="Who waits",
    variants=(Variant("none", "none", "No fence.", RACY), Variant("wait", "wait", "A wait.", SAFE)),
    params={"verify": Param("verify", 400, 0, 900), "a": Param("another", 1, 0, 2)},
    initial="none",
)


def test_a_timeline_says_in_one_line_what_it_shows() -> None:
    assert repr(Timeline(BOTH)) == "Timeline('both': host, schedule, forward; race)"
    assert repr(Timeline(SAFE)) == "Timeline('safe': host, schedule, forward; ok)"


def test_its_output_carries_the_view_the_picture_and_the_line() -> None:
    timeline = Timeline(BOTH, caption="A fence decides who waits.")
    data, _ = timeline._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == timeline.model_id
    assert data["image/svg+xml"].startswith("<svg")
    assert data["text/plain"] == repr(timeline)


def test_the_spec_keeps_the_order_of_sliders_and_carries_caption_and_alt() -> None:
    spec = Timeline(BOTH, caption="The claim.", alt="Two lanes.").spec
    assert (spec["sliders"], spec["caption"], spec["alt"]) == (["verify", "a"], "The claim.", "Two lanes.")
    assert "RAW on new_seq_lens: verify on forward and gather on schedule are unordered." in Timeline(RACY).spec["alt"]


def test_anything_else_is_one_clear_sentence() -> None:
    with pytest.raises(TypeError, match="an Explorable, a Program or the JSON of one, not int"):
        Timeline(3)  # type: ignore[arg-type]


def test_without_anywidget_only_the_timeline_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "anywidget":
            raise ModuleNotFoundError("No module named 'anywidget'", name="anywidget")
        return real(name, *rest, **more)

    for name in [name for name in sys.modules if name == "anywidget" or name.startswith("refimpl.view")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    view = real("refimpl.view", fromlist=["view"])
    assert view.first_frame(SAFE).startswith("<svg")
    with pytest.raises(ModuleNotFoundError, match="Timeline needs anywidget, which is not installed: run `pip install"):
        _ = view.Timeline


def test_the_first_frame_marks_the_hazard_and_says_it() -> None:
    picture = first_frame(BOTH)
    assert 'role="img"' in picture
    assert ">RAW new_seq_lens<" in picture
    assert "<title" in picture
    assert "<desc" in picture
    assert 'class="hazard"' not in first_frame(SAFE)
    assert "No hazard" in first_frame(SAFE)


def test_a_deadlock_is_put_in_words() -> None:
    assert "Deadlock" in first_frame(STUCK)
    assert repr(Timeline(STUCK)).endswith("deadlock)")


def test_pictures_share_no_ids_and_every_reference_has_its_target() -> None:
    pictures = [first_frame(RACY), first_frame(SAFE)]
    ids = [set(re.findall(r'\bid="([^"]+)"', picture)) for picture in pictures]
    assert not ids[0] & ids[1]
    for picture, known in zip(pictures, ids, strict=True):
        used = re.findall(r"url\(#([^)]+)\)", picture) + re.findall(r'aria-labelledby="(\S+) (\S+)"', picture)[0:0]
        assert set(used) <= known


def test_names_in_a_picture_and_a_page_are_text() -> None:
    evil = Program(id="</script><b>", streams={"a": Stream()}, ops=(Launch(stream="a", name="<b>&", us=900),))
    assert "<b>" not in first_frame(evil)
    assert page(evil).count("</script>") == 2


def test_a_name_in_a_page_cannot_open_a_comment_or_a_script() -> None:
    evil = Program(id="<!--<script>", streams={"\ud800": Stream()}, ops=(Launch(stream="\ud800", name="<!--"),))
    text = page(evil)
    assert "<!--" not in text.replace("<!doctype", "")
    assert text.count("<script") == 2
    assert json.loads(re.search('id="spec">(.*)</script>', text)[1])["id"] == evil.id  # type: ignore[index]


def test_a_page_is_written_whatever_its_names_hold(tmp_path: Path) -> None:
    odd = Program(id="\ud800 µ", streams={"a": Stream()}, ops=(Launch(stream="a"),))
    assert "µ" in write_page(odd, tmp_path / "odd.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("us", [0.0, 1e-9, 1.0, 999.0, 1e6, 1e12, 1e15])
def test_the_axis_of_a_picture_has_a_few_marks_whatever_it_spans(us: float) -> None:
    picture = first_frame(Program(id="long", streams={"a": Stream()}, ops=(Launch(stream="a", us=us),) * 9))
    assert 1 <= len(re.findall(r">[\d.e+]+(?: µs| ms)?</text>", picture)) <= 16


def test_a_long_name_of_a_lane_keeps_both_ends_and_its_place() -> None:
    names = ("copy of worker " * 9 + "0", "copy of worker " * 9 + "1")
    streams = {name: Stream() for name in names}
    lanes = re.findall('class="name"[^>]*>([^<]+)', first_frame(Program(streams=streams, ops=tuple(map(_on, names)))))
    assert lanes == ["host", "copy of…orker 0", "copy of…orker 1"]


def _on(stream: str) -> Launch:
    return Launch(stream=stream)


EMPTY = {"id": "a", "program": {"ops": []}}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"variants": []}, "at least one variant"),
        ({"variants": {}}, "at least one variant"),
        ({"variants": [{"id": "a"}]}, "each with id and program"),
        ({"variants": [EMPTY], "initial": "b"}, "names no variant; there are a"),
        ({"variants": [EMPTY], "params": {"host": {"us": float("nan")}}}, "cannot be written as JSON"),
        ({"ops": [{"op": "launch", "stream": "legacy", "us": float("inf")}]}, "'us'"),
        ({"ops": [{"op": "launch", "stream": "legacy", "us": float("nan")}]}, "'us'"),
        ({"ops": [{"op": "launch", "stream": "legacy", "us": 1e300}]}, "'us'"),
        ({"ops": [{"op": "launch", "stream": "legacy", "us": 2**62}]}, "'us'"),
    ],
)
def test_a_spec_that_cannot_be_shown_is_one_sentence(spec: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        page(spec)
    assert "\n" not in str(caught.value)


def test_a_null_for_the_initial_variant_means_the_first() -> None:
    assert first_frame({"variants": [EMPTY], "initial": None}).startswith("<svg")


def test_a_page_needs_no_other_file(tmp_path: Path) -> None:
    text = write_page(BOTH, tmp_path / "both.html").read_text(encoding="utf-8")
    assert "<title>Who waits</title>" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=\"(?!data:)", text)


def test_modules_come_after_what_they_import_and_only_the_entry_keeps_its_exports() -> None:
    order = bundle.modules()
    assert order[-1] == bundle.ENTRY
    assert order.index("model/ranges.js") < order.index("model/order.js") < order.index(bundle.ENTRY)
    assert re.findall(r"^export .*", bundle.esm(), re.MULTILINE)[-1] == "export default { render };"
    assert not re.search(r"^(import|export) ", bundle.classic(), re.MULTILINE)


def test_modules_that_import_each_other_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    monkeypatch.setattr(bundle, "source", texts.__getitem__)
    with pytest.raises(ValueError, match=r"circle: a\.js → b\.js → a\.js"):
        bundle.modules("a.js")


def test_the_json_of_an_explorable_is_as_good_as_the_explorable() -> None:
    assert first_frame(spec_of(BOTH)) == first_frame(BOTH)
