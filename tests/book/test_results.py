"""Results: every figure has an origin, and a quotation that leads nowhere is an error."""

import json
from pathlib import Path

import pytest

from refimpl.lessons import results
from refimpl.program.errors import UserError

ORIGIN = {"device": "NVIDIA H200", "driver": "580.159", "torch": "2.11.0", "command": "python -m refimpl bench order"}
ROWS = [
    {"variant": "wait", "host_ms": 0.5, "step_ms": 4.6384},
    {"variant": "synchronize", "host_ms": 0.5, "step_ms": 5.21},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    results.write("loop", {"rows": ROWS, "medians": {"wait": 4.64}}, folder=tmp_path, **ORIGIN)
    return tmp_path


@pytest.mark.parametrize(
    ("quotation", "text"),
    [
        ("loop:medians.wait|.1f ms", "4.6 ms"),
        ("loop:rows[variant=wait,host_ms=0.5].step_ms|.3f", "4.638"),
        ("loop:rows[1].variant", "synchronize"),
        ("loop:rows[0].host_ms|.0%", "50%"),
        ("loop:device", "NVIDIA H200"),
    ],
)
def test_a_quotation_gives_the_figure_as_prose_shows_it(folder: Path, quotation: str, text: str) -> None:
    assert results.quote(quotation, folder) == text


@pytest.mark.parametrize(
    ("quotation", "says"),
    [
        ("loop", "write file:path"),
        ("lop:medians.wait", "there: loop"),
        ("loop:medians.wit", "there: wait"),
        ("loop:rows[host_ms=0.5].step_ms", "matches 2 rows"),
        ("loop:rows[9].step_ms", "there are 2 rows"),
        ("loop:medians[0]", "has no rows"),
        ("loop:rows[0].variant|.3f", "cannot format"),
        ("loop:rows[0]!", "is no path"),
    ],
)
def test_a_quotation_that_leads_nowhere_says_what_is_there(folder: Path, quotation: str, says: str) -> None:
    with pytest.raises(UserError, match=says.replace("[", r"\[")):
        results.quote(quotation, folder)


@pytest.mark.parametrize("field", results.ORIGIN)
def test_a_figure_without_an_origin_is_refused(folder: Path, field: str) -> None:
    file = folder / "loop.json"
    found = json.loads(file.read_text())
    del found[field]
    file.write_text(json.dumps(found))
    with pytest.raises(UserError, match=field):
        results.load("loop", folder)


def test_a_figure_that_is_no_number_is_refused_and_the_old_file_stays(folder: Path) -> None:
    before = (folder / "loop.json").read_bytes()
    with pytest.raises(UserError, match="no measurement"):
        results.write("loop", {"rows": [{"step_ms": float("nan")}]}, folder=folder, **ORIGIN)
    assert (folder / "loop.json").read_bytes() == before


@pytest.mark.parametrize("name", ["../evil", "a/b", "a\\b", ".hidden", "", "-x", "a\n"])
def test_a_name_that_is_no_file_s_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="a name has letters"):
        results.write(name, {}, folder=tmp_path / "results", **ORIGIN)
    assert list(tmp_path.iterdir()) == []


def test_every_committed_result_says_where_it_comes_from() -> None:
    names = sorted(path.stem for path in results.FOLDER.glob("*.json"))
    assert names, "no results are committed"
    assert all(results.load(name).device for name in names)


def test_what_cannot_be_saved_is_refused_before_it_is_measured(folder: Path) -> None:
    (folder / "taken.json").mkdir()
    results.check_writable("loop", folder)
    results.check_writable("new", folder)
    for name, says in (("taken", "cannot be written"), ("../loop", "a name has")):
        with pytest.raises(UserError, match=says):
            results.check_writable(name, folder)


def test_a_file_that_could_not_be_written_leaves_nothing_behind(folder: Path) -> None:
    (folder / "taken.json").mkdir()
    with pytest.raises(OSError, match="taken"):
        results.write("taken", {"rows": ROWS}, folder=folder, **ORIGIN)
    assert sorted(path.name for path in folder.iterdir()) == ["loop.json", "taken.json"]
