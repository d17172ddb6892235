"""The widget of a recorded run, its first frame, and what the views weigh."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from refimpl.program import Span, SpanKind, Trace, TraceSource
from refimpl.view import Run, bundle
from refimpl.view.bundle import COMPONENTS, ENTRY, RUN, classic, esm, modules, write_static
from refimpl.view.run_frame import run_frame, shares
from tests.view.long_run import long_run

PAGE_BYTES = 300_000


def trace(*spans: Span) -> Trace:
    return Trace(tuple(dict.fromkeys(s.lane for s in spans)), spans, TraceSource.MEASURED, "a GPU")


LOOP = trace(
    Span("host", "build", SpanKind.HOST, 0, 40),
    Span("host", "synchronize(done)", SpanKind.BLOCKED, 40, 80, call="cudaEventSynchronize"),
    Span("forward", "verify", SpanKind.RUN, 40, 80, None, 36, 40, "cudaLaunchKernel"),
)


def test_a_short_run_stands_in_the_notebook_as_it_is() -> None:
    spec = Run(LOOP, title="tiny").spec
    assert spec["title"] == "tiny"
    assert spec["calls"] == ["cudaEventSynchronize", "cudaLaunchKernel"]


def test_a_long_run_is_packed_to_less_than_half() -> None:
    spec = Run(long_run(3_000), title="long").spec
    assert list(spec) == ["packed"]
    plain = len(str(Run(long_run(300)).spec)) * 10
    assert len(spec["packed"]) < plain / 2


def test_two_runs_travel_together() -> None:
    spec = Run(LOOP, before=LOOP, title="pair").spec
    assert set(spec) == {"before", "after"}


def test_a_notebook_tells_a_run_from_a_timeline() -> None:
    assert Run(LOOP).view == "run"


def test_without_widgets_there_is_a_picture_and_words() -> None:
    data, _ = Run(LOOP, title="tiny", alt="The host is held.")._repr_mimebundle_()
    assert "<desc" in data["image/svg+xml"]
    assert "The host is held." in data["image/svg+xml"]
    assert data["text/plain"] == "Run('tiny': host, forward; 3 spans)"


def test_the_first_frame_hatches_what_is_held_and_nothing_else() -> None:
    picture = run_frame(LOOP, "tiny", "words")
    hatched = re.findall(r'<rect x="([\d.]+)" y="6" width="([\d.]+)"[^>]*url', picture)
    assert len(hatched) == 1
    middle = 104 + (880 - 104) / 2
    assert float(hatched[0][0]) == pytest.approx(middle, abs=1), "the host is held in the second half"
    assert "url(" not in picture.split('y="36"', 1)[1].split("<path")[0], "the stream is never held"


def test_the_first_frame_of_a_long_run_is_no_larger_than_its_pixels_allow() -> None:
    assert len(run_frame(long_run(30_000), "long", "words")) < 200_000


def test_shares_of_time_are_exact() -> None:
    spans = [Span("host", "a", SpanKind.HOST, 0, 3), Span("host", "b", SpanKind.HOST, 8, 10)]
    assert shares(spans, 10, 5) == [1.0, 0.5, 0.0, 0.0, 1.0]


def test_names_of_a_hostile_run_do_not_leave_the_picture() -> None:
    hostile = trace(Span("<b>lane", "</svg><script>", SpanKind.RUN, 0, 5))
    assert "<b>" not in run_frame(hostile, "</title><script>", "</desc>")


def test_a_page_with_both_views_stays_light() -> None:
    size = sum(len(classic(entry).encode()) for entry in COMPONENTS)
    assert size < PAGE_BYTES, size


def test_the_two_views_are_parts_of_their_own() -> None:
    assert RUN not in modules(ENTRY)
    assert "model/model.js" not in modules(RUN), "the run's view draws what was recorded and carries no model"


def test_a_static_page_gets_both_scripts(tmp_path: Path) -> None:
    write_static(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"timeline.bundle.js", "run.bundle.js"}


@pytest.mark.parametrize("entry", [ENTRY, RUN])
def test_the_joined_modules_are_javascript(entry: str, tmp_path: Path) -> None:
    module, script = tmp_path / "view.mjs", tmp_path / "view.cjs"
    module.write_text(esm(entry), encoding="utf-8")
    script.write_text(f"globalThis.window = globalThis;\n{classic(entry)}", encoding="utf-8")
    for file in (module, script):
        subprocess.run(["node", file], check=True, capture_output=True)


def test_an_import_of_what_is_not_exported_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "a.js": 'import { one, two } from "./b.js";\n',
        "b.js": "export const one = 1, two = 2;\n",
    }
    monkeypatch.setattr(bundle, "source", files.__getitem__)
    with pytest.raises(ValueError, match=r"a.js imports two from b.js"):
        modules("a.js")


@pytest.mark.parametrize("shown", [None, "trace.json", {"traceEvents": []}], ids=str)
def test_what_is_no_trace_is_refused_in_one_sentence(shown: Any) -> None:
    other: Any = shown or 7
    with pytest.raises(TypeError, match="a run shows a Trace, not "):
        Run(shown)
    with pytest.raises(TypeError, match="a run shows a Trace, not "):
        Run(long_run(20), before=other)
