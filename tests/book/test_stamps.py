"""A notebook's stamp: it holds while cells and modules are what they were, and no longer."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from refimpl.lessons import notebooks, running
from refimpl.lessons.canonical import STATE, UNTIL_RUN, VIEW, canonical
from refimpl.lessons.sources import ROOT, module_hashes

CODE = "from refimpl.program.ranges import Range\nprint(object(), Range)"


def notebook(*cells: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=list(cells))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small notebook that was run and stamped."""
    path = tmp_path_factory.mktemp("ran") / "small.ipynb"
    nbformat.write(notebook(nbformat.v4.new_markdown_cell("# Small"), nbformat.v4.new_code_cell(CODE)), path)
    running.run(path, path, None, lambda number, of: None)
    return path


@pytest.fixture
def copy(ran: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    return Path(shutil.copy(ran, tmp_path))


def edited(path: Path, edit: Callable[[nbformat.NotebookNode], None]) -> Path:
    found = nbformat.read(path, as_version=4)
    edit(found)
    nbformat.write(found, path)
    return path


def test_a_notebook_that_was_run_is_clean(copy: Path) -> None:
    assert notebooks.check(copy) == notebooks.Findings("small", (), ())


def test_the_stamp_says_where_the_outputs_come_from(copy: Path) -> None:
    stamp = json.loads(copy.read_text())["metadata"]["stream_order"]
    assert stamp["kind"] == "cpu"
    assert {"device", "driver", "torch", "python", "date"} < set(stamp)
    assert {"refimpl", "refimpl.program", "refimpl.program.ranges"} <= set(stamp["modules"])


def test_two_runs_give_the_same_bytes(ran: Path, tmp_path: Path) -> None:
    running.run(ran, tmp_path / "again.ipynb", None, lambda number, of: None)
    assert (tmp_path / "again.ipynb").read_bytes() == ran.read_bytes()


def test_an_edited_cell_is_an_error(copy: Path, refimpl: Callable[..., object]) -> None:
    edited(copy, lambda nb: nb.cells[1].update(source=CODE + "  # faster"))
    done = refimpl("notebooks", "check", copy)
    assert done.returncode == 1
    assert "edited" in done.stdout


def test_edited_words_are_no_error(copy: Path) -> None:
    edited(copy, lambda nb: nb.cells[0].update(source="# Smaller"))
    assert notebooks.check(copy).errors == ()


def test_cells_run_out_of_order_are_an_error(copy: Path) -> None:
    edited(copy, lambda nb: nb.cells[1].update(execution_count=7))
    assert "from top to bottom: [7]" in notebooks.check(copy).errors[0]


def test_an_error_output_is_an_error_unless_the_cell_says_that_it_raises(copy: Path) -> None:
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    edited(copy, lambda nb: nb.cells[1].update(outputs=[error]))
    assert notebooks.check(copy).errors == ("code cell 1 shows ValueError: no",)
    edited(copy, lambda nb: nb.cells[1].metadata.update(tags=["raises-exception"]))
    assert notebooks.check(copy).errors == ()


def test_a_picture_without_words_is_an_error(copy: Path) -> None:
    edited(copy, lambda nb: nb.cells[0].update(source="![](x.png)"))
    assert "no alt text" in notebooks.check(copy).errors[0]


def test_a_plot_without_words_is_an_error(copy: Path) -> None:
    plot = nbformat.v4.new_output("display_data", {"image/png": "aGk="})
    edited(copy, lambda nb: nb.cells[1].update(outputs=[plot]))
    assert "mystnb.image.alt" in notebooks.check(copy).errors[0]
    edited(copy, lambda nb: nb.cells[1].metadata.update(mystnb={"image": {"alt": "step time against host work"}}))
    assert notebooks.check(copy).errors == ()


def test_a_picture_in_html_without_words_is_an_error(copy: Path) -> None:
    plot = nbformat.v4.new_output("display_data", {"text/html": "<p><img src='data:,'></p>"})
    edited(copy, lambda nb: nb.cells[1].update(outputs=[plot]))
    assert "no alt text for <img" in notebooks.check(copy).errors[0]


def test_a_run_in_place_keeps_figures_and_a_run_elsewhere_does_not(tmp_path: Path) -> None:
    path = tmp_path / "asks.ipynb"
    cell = nbformat.v4.new_code_cell("import os; print(os.environ.get('STREAM_ORDER_KEEP'))")
    nbformat.write(notebook(cell), path)
    for out, says in ((tmp_path / "out" / "asks.ipynb", "None\n"), (path, "asks\n")):
        running.run(path, out, None, lambda number, of: None)
        assert nbformat.read(out, as_version=4).cells[0].outputs[0].text == says


def test_a_widget_without_a_first_frame_is_an_error(copy: Path) -> None:
    widget = nbformat.v4.new_output("display_data", {VIEW: {"model_id": "0" * 32}})
    edited(copy, lambda nb: nb.cells[1].update(outputs=[widget]))
    assert "no picture" in notebooks.check(copy).errors[0]


def test_a_notebook_without_a_stamp_is_an_error(copy: Path) -> None:
    edited(copy, lambda nb: nb.metadata.pop("stream_order"))
    assert "has no stamp" in notebooks.check(copy).errors[0]


def test_a_changed_module_is_listed_and_is_an_error_when_strict(copy: Path, refimpl: Callable[..., object]) -> None:
    edited(copy, lambda nb: nb.metadata.stream_order.modules.update({"refimpl.program.ranges": "0" * 16}))
    assert notebooks.check(copy) == notebooks.Findings("small", (), ("refimpl.program.ranges",))
    assert refimpl("notebooks", "check", copy).returncode == 0
    strict = refimpl("notebooks", "check", "--strict", "--json", copy)
    assert strict.returncode == 1
    assert json.loads(strict.stdout)["notebooks"][0]["outdated"] == ["refimpl.program.ranges"]


def test_a_docstring_or_a_comment_changes_no_hash_and_code_does(tmp_path: Path) -> None:
    package = tmp_path / "refimpl"
    package.mkdir()
    (package / "__init__.py").write_text("")
    hashes = []
    for text in ('"""A."""\nx = 1', '"""B."""\nx = 1  # one', '"""A."""\nx = 2'):
        (package / "a.py").write_text(text)
        hashes.append(module_hashes(["from refimpl import a"], tmp_path)["refimpl.a"])
    assert hashes[0] == hashes[1] != hashes[2]


def test_modules_are_found_through_modules_and_the_view_is_left_out() -> None:
    found = module_hashes(
        ["import refimpl.lessons.notebooks as n, refimpl.view", "%matplotlib inline\nimport os"], ROOT
    )
    assert {"refimpl.lessons.sources", "refimpl.program.errors"} <= set(found)
    assert not [name for name in found if name.startswith("refimpl.view")]


def test_a_run_that_fails_leaves_the_notebook_as_it_was_and_shows_the_cell(
    tmp_path: Path, refimpl: Callable[..., object]
) -> None:
    path = tmp_path / "bad.ipynb"
    nbformat.write(notebook(nbformat.v4.new_code_cell("x = 1"), nbformat.v4.new_code_cell("x / 0")), path)
    before = path.read_bytes()
    done = refimpl("notebooks", "run", path)
    assert done.returncode == 1
    assert "code cell 2 raised ZeroDivisionError" in done.stderr
    assert "    x / 0" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_widget_ids_are_renumbered_and_our_own_source_is_not_saved() -> None:
    def with_ids(ours: str, layout: str) -> nbformat.NotebookNode:
        cell = nbformat.v4.new_code_cell(
            "w", outputs=[nbformat.v4.new_output("display_data", {VIEW: {"model_id": ours}})], id="a"
        )
        state = {
            layout: {"model_name": "LayoutModel", "state": {}},
            ours: {
                "state": {"_anywidget_id": "refimpl.view.T", "_esm": "x", "_css": "y", "layout": f"IPY_MODEL_{layout}"}
            },
        }
        found = notebook(cell)
        found.metadata["widgets"] = {STATE: {"state": state, "version_major": 2, "version_minor": 0}}
        return found

    one, other = canonical(with_ids("a" * 32, "b" * 32)), canonical(with_ids("f" * 32, "0" * 32))
    assert nbformat.writes(one) == nbformat.writes(other)
    shown = one.cells[0].outputs[0].data[VIEW]["model_id"]
    saved = one.metadata.widgets[STATE]["state"][shown]["state"]
    assert (saved["_esm"], saved["_css"]) == (UNTIL_RUN, "")
    assert saved["layout"].removeprefix("IPY_MODEL_") in one.metadata.widgets[STATE]["state"]


def written(*words: tuple[str, str]) -> list[tuple[str, str]]:
    """What the canonical form makes of these words on these streams, each a message of its own."""
    outputs = [nbformat.v4.new_output("stream", name=name, text=text) for name, text in words]
    shown = canonical(notebook(nbformat.v4.new_code_cell("x", outputs=outputs))).cells[0].outputs
    return [(output.name, output.text) for output in shown]


def test_how_a_kernel_cuts_its_words_into_messages_does_not_show() -> None:
    once = written(("stdout", "step 0\nstep 1\n"), ("stderr", "warm\n"))
    assert once == [("stdout", "step 0\nstep 1\n"), ("stderr", "warm\n")]
    assert written(("stderr", "wa"), ("stdout", "step 0\nst"), ("stderr", "rm\n"), ("stdout", "ep 1\n")) == once


def test_of_a_line_that_was_written_over_the_last_words_stay() -> None:
    assert written(("stdout", "10%\r"), ("stdout", "99%\rdone\n\rx\r\n\n")) == [("stdout", "done\nx\r\n\n")]


def test_a_cell_that_writes_one_long_line_runs_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "long.ipynb"
    nbformat.write(notebook(nbformat.v4.new_code_cell("print('x' * 1_000_000)")), path)
    running.run(path, path, None, lambda number, of: None, timeout_s=60)
    assert len(nbformat.read(path, as_version=4).cells[0].outputs[0].text) == 1_000_001


def test_a_file_that_is_no_notebook_is_one_sentence(tmp_path: Path, refimpl: Callable[..., object]) -> None:
    (tmp_path / "x.ipynb").write_text("{")
    done = refimpl("notebooks", "check", tmp_path / "x.ipynb")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
