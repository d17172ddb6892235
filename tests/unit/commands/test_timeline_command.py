"""``python -m refimpl timeline``: a file's kind shows in it, the form of what is written in its name."""

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refimpl.cli import main
from refimpl.program import program_to_json
from refimpl.timeline import schedule
from refimpl.timeline.writing.columns import columns
from tests.unit.timeline.loops import overlapped
from tests.view.long_run import long_run

CASES = Path(__file__).parents[2] / "cases" / "stream-programs.json"
Run = Callable[..., subprocess.CompletedProcess[str]]

LOOP = overlapped("wait", steps=3)
PROGRAM = program_to_json(LOOP)
EXPLORABLE = {
    "id": "fences",
    "title": "Two fences",
    "step_op": "verify",
    "variants": [
        {"id": fence, "label": fence, "program": program_to_json(overlapped(fence, steps=3))}
        for fence in ("wait", "synchronize")
    ],
}
PROFILE = [
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 50.0, "dur": 9.0, "args": {"stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "gelu", "pid": 0, "tid": 7, "ts": 60.0, "dur": 9.0, "args": {"stream": 7}},
]
NEVER = {"op": "stream_wait_value", "stream": "forward", "flag": "never"}
STUCK = {"schema": 1, "id": "stuck", "streams": {"forward": {}}, "buffers": {}, "ops": [NEVER]}
FIRST = {
    ".html": b"<!doctype html>",
    ".json": b"{",
    ".pftrace": b"\n",
    ".png": b"\x89PNG",
    ".svg": b"<?xml",
    ".pdf": b"%PDF",
}


@pytest.fixture
def timeline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, which is quicker; `test_a_page_is_written…` starts one of its own."""

    def run(*words: str | Path, input: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(input.encode())))
        command = ["timeline", *map(str, words)]
        code = main(command)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(command, code, said.out, said.err)

    return run


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    def _put(data: Any, name: str = "in.json") -> Path:
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        file = tmp_path / name
        file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return file

    return _put


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """What a refusal says: one line on stderr, exit code 2."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("refimpl timeline: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("ending", FIRST)
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PROGRAM, "program"),
        (EXPLORABLE, "explorable"),
        (columns(schedule(LOOP), LOOP, id="test"), "run"),
        ({"schemaVersion": 1, "deviceProperties": [{"name": "a GPU"}], "traceEvents": PROFILE}, "profile"),
    ],
    ids=["program", "explorable", "run", "profile"],
)
def test_every_kind_is_known_by_its_content_and_written_in_every_form(
    timeline: Run, put: Callable[..., Path], tmp_path: Path, data: Any, kind: str, ending: str
) -> None:
    out = tmp_path / f"out{ending}"
    said = told(timeline(put(data, "anything"), "-o", out, "--json"))
    written = out.read_bytes()
    assert written.startswith(FIRST[ending])
    assert (said["path"], said["kind"], said["of"]) == (str(out), ending[1:], kind)
    assert said["bytes"] == len(written)
    assert said["spans"] == (len(PROFILE) if kind == "profile" else len(schedule(LOOP).spans))
    assert said["lanes"] == (["host", "stream 7"] if kind == "profile" else ["host", "schedule", "forward"])
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["anything", out.name])


def test_gzip_is_known_by_its_content_too_and_a_list_is_a_profile(timeline: Run, put: Callable[..., Path]) -> None:
    for data, kind in ((PROGRAM, "program"), (PROFILE, "profile")):
        file = put(data, f"{kind}.json.gz")
        assert told(timeline(file, "--json")) | {"of": kind} == told_of(file, kind)


def told_of(file: Path, kind: str) -> dict[str, Any]:
    """What was said of a page beside its file."""
    page = file.with_name(f"{kind}.html")
    trace = schedule(LOOP)
    lanes, spans = (["host", "stream 7"], 2) if kind == "profile" else (list(trace.lanes), len(trace.spans))
    head = {"path": str(page), "kind": "html", "of": kind, "id": "test" if kind == "program" else kind}
    return {**head, "bytes": page.stat().st_size, "spans": spans, "lanes": lanes}


def test_a_page_is_written_beside_its_file_and_replaces_none(refimpl: Run, put: Callable[..., Path]) -> None:
    file = put(PROGRAM, "mine.json")
    done = refimpl("timeline", file)
    page = file.with_name("mine.html")
    size = f"{page.stat().st_size / 1000:,.0f} kB"
    spans = len(schedule(LOOP).spans)
    assert done.stdout == f"wrote {page}: program test, {spans} spans on 3 lanes, {size}\n"
    page.write_text("my own")
    assert "mine.html is there already: name it with -o to replace it" in sentence(refimpl("timeline", file))
    assert page.read_text() == "my own"
    assert refimpl("timeline", file, "-o", page).returncode == 0
    assert page.read_text() != "my own"


def test_one_case_of_many_and_one_variant_of_an_explorable(
    timeline: Run, put: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.html"
    assert told(timeline(CASES, "--case", "02_event/fixed", "-o", out, "--json"))["id"] == "02_event/fixed"
    assert "name one with --case; there are 02_event/missing" in sentence(timeline(CASES, "-o", out))
    assert "no case 'nope'" in sentence(timeline(CASES, "--case", "nope", "-o", out))
    file = put(EXPLORABLE)
    chrome = tmp_path / "out.json"
    assert timeline(file, "--case", "synchronize", "-o", chrome).returncode == 0
    assert "synchronize(verify_done 0)" in chrome.read_text()
    assert "names no variant; there are wait, synchronize" in sentence(timeline(file, "--case", "nope", "-o", out))


def test_standard_input_is_read_and_needs_a_name_to_write(timeline: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    for data, kind in ((PROGRAM, "program"), (PROFILE, "profile")):
        said = told(timeline("-", "-o", out, "--json", input=json.dumps(data)))
        assert said["of"] == kind
    assert "say with -o what to write" in sentence(timeline("-", input="{}"))


def test_two_runs_are_compared_on_one_page(timeline: Run, put: Callable[..., Path], tmp_path: Path) -> None:
    after, before = (
        put(columns(long_run(300, synchronizes=s), id=n), f"{n}.json") for n, s in (("a", False), ("b", True))
    )
    out = tmp_path / "out.html"
    timeline(after, "-o", out)
    alone = len(out.read_bytes())
    assert told(timeline(after, "--before", before, "-o", out, "--json"))["id"] == "a"
    assert len(out.read_bytes()) > alone
    assert "compare runs with runs" in sentence(timeline(after, "--before", put(PROGRAM), "-o", out))
    for words in ((put(PROGRAM), "-o", out), (after, "-o", tmp_path / "out.json")):
        assert "--before is for the page" in sentence(timeline(*words, "--before", before))


def test_steps_are_marked_by_the_op_that_is_named(timeline: Run, put: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "out.svg"
    table = columns(long_run(300), id="run")
    plain = told(timeline(put(table), "-o", out, "--json"))["bytes"]
    assert told(timeline(put(table), "-o", out, "--step-op", "prepare", "--json"))["bytes"] > plain


def test_a_program_that_stands_still_has_a_page_and_no_times(
    timeline: Run, put: Callable[..., Path], tmp_path: Path
) -> None:
    file = put(STUCK)
    said = told(timeline(file, "-o", tmp_path / "out.html", "--json"))
    assert (said["spans"], said["lanes"]) == (None, ["host", "forward"])
    why = sentence(timeline(file, "-o", tmp_path / "out.png"))
    assert "deadlocks" in why
    assert "its page (.html) shows where" in why


@pytest.mark.parametrize(
    ("data", "name", "why"),
    [
        (b"", "in.json", "is empty"),
        (b"  \n", "in.json", "is empty"),
        (b"hello", "in.json", "is not JSON"),
        (b"\x00\x01\x02", "in.json", "is not JSON"),
        ({"hello": 1}, "in.json", "nothing that can be drawn: it has none of ops, cases, variants, traceEvents, spans"),
        ({"inner": {"ops": []}}, "in.json", "nothing that can be drawn"),
        (b'{"schema": 1, "ops": [', "in.json", "is not JSON"),
        (b'{"schema": "trace/1", "spans": {', "in.json", "is cut off or not JSON"),
        ({"schema": "trace/9", "spans": {}}, "in.json", "is no recorded run of schema trace/1"),
        ({"variants": []}, "in.json", "at least one variant"),
        ({"variants": [{"id": "a", "program": {"ops": [{"op": "fly"}]}}]}, "in.json", "fly"),
        ({"ops": [{"op": "launch", "stream": "nowhere"}]}, "in.json", "unknown stream 'nowhere'"),
        ({"traceEvents": []}, "in.json", "in.json"),
        ({"traceEvents": 3}, "in.json", "in.json"),
        ([PROFILE[0], PROFILE[0] | {"ts": 1e300}], "in.json", "no time of a run"),
        (gzip.compress(json.dumps(PROGRAM).encode())[:-30], "in.json", "cut off"),
        (b"\x1f\x8bgarbage", "in.json", "damaged"),
    ],
)
def test_a_bad_file_is_one_sentence_and_nothing_is_written(
    timeline: Run, put: Callable[..., Path], tmp_path: Path, data: Any, name: str, why: str
) -> None:
    file = put(data, name)
    for ending in (".html", ".json"):
        said = sentence(timeline(file, "-o", tmp_path / f"out{ending}"))
        assert why in said
        assert "in.json" in said
    assert list(tmp_path.iterdir()) == [file]


def test_a_bad_name_to_write_is_refused_before_anything_is_read(
    timeline: Run, put: Callable[..., Path], tmp_path: Path
) -> None:
    file = put(PROGRAM)
    for out, why in (
        (tmp_path / "out.gif", "is one of .html, .json, .pftrace, .png, .svg, .pdf"),
        (tmp_path / "nowhere" / "out.html", "there is no such folder"),
        (file, "is the file that is read"),
    ):
        assert why in sentence(timeline(file, "-o", out))
    (tmp_path / "dir.html").mkdir()
    assert "is a directory" in sentence(timeline(file, "-o", tmp_path / "dir.html"))
    assert "cannot be read" in sentence(timeline(tmp_path / "absent.json"))
    assert "is a directory" in sentence(timeline(tmp_path, "-o", tmp_path / "a.html"))
    assert "it has no cases" in sentence(timeline(put({"traceEvents": PROFILE}), "--case", "a"))
    assert json.loads(file.read_bytes())["traceEvents"]
