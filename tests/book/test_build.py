"""The build of the book: a planted error turns it red."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from refimpl.lessons.canonical import STATE, VIEW
from tests.conftest import ROOT

FLAGS = ["--all", "--quiet", "--warningiserror", "--nitpick", "--keep-going"]
STAMP = {
    "stream_order": dict.fromkeys(("device", "driver", "torch", "python", "date", "cells_sha256"), "x")
    | {"kind": "sim", "modules": {}}
}
WIDGET = {VIEW: {"model_id": "0" * 32, "version_major": 2, "version_minor": 0}}


def build(folder: Path, words: str, *outputs: dict[str, object], stamp: dict[str, Any] = STAMP) -> tuple[int, str]:
    """Build a book of one page and one notebook with the project's own configuration; returns exit code and output."""
    for name in ("book/_ext", "book/_static"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "_config.yml", folder)
    (folder / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n  - file: notebooks/one\n")
    (folder / "book" / "index.md").write_text(f"# A book\n\n{words}\n")
    stamp = stamp | {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    code = nbformat.v4.new_code_cell("1", execution_count=1)
    code.outputs = [nbformat.v4.new_output("display_data", data) for data in outputs]
    chapter = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# One"), code], metadata=stamp)
    (folder / "notebooks").mkdir()
    nbformat.write(chapter, folder / "notebooks" / "one.ipynb")
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", ".", *FLAGS]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_makefile_builds_with_these_flags() -> None:
    assert f"jupyter-book build . {' '.join(FLAGS)}" in (ROOT / "Makefile").read_text()


def test_a_book_without_errors_is_green_and_shows_origin_download_and_first_frame(tmp_path: Path) -> None:
    frame = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><title>host waits</title></svg>'
    state = {"0" * 32: {"model_name": "AnyModel", "state": {"spec": {"id": "<!--<script></script>"}}}}
    saved = {"widgets": {STATE: {"state": state, "version_major": 2, "version_minor": 0}}}
    words = "See [one](../notebooks/one.ipynb)."
    code, said = build(tmp_path, words, {**WIDGET, "image/svg+xml": frame}, stamp={**STAMP, **saved})
    assert code == 0, said
    page = (tmp_path / "_build" / "html" / "notebooks" / "one.html").read_text()
    assert "Ran on x (driver x, torch x), x." in page
    assert "Download this notebook" in page
    assert f'<div class="timeline-fallback">{frame}</div><script type="{VIEW}">' in page
    inert = re.search(f'<script type="{re.escape(STATE)}">([^<]*)</script>', page)
    assert inert is not None, "a name in the state of a widget can end its script or open a comment"
    assert json.loads(inert[1])["state"] == state


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("See [two](../notebooks/two.ipynb).", "two.ipynb"),
        ("See {ref}`nowhere`.", "nowhere"),
        ("It takes {result}`no_such_result:step_ms|.1f ms`.", "no result 'no_such_result'"),
        ("![a picture of two lanes](_static/none.png)", "none.png"),
        ("```{made-table} refimpl.lessons:no_such_table\n```", "no table refimpl.lessons:no_such_table"),
    ],
)
def test_what_leads_nowhere_turns_the_build_red(tmp_path: Path, words: str, says: str) -> None:
    code, said = build(tmp_path, words)
    assert code != 0
    assert says in said


def test_a_notebook_without_a_stamp_turns_the_build_red(tmp_path: Path) -> None:
    code, said = build(tmp_path, "Words.", stamp={})
    assert code != 0
    assert "has no stamp" in said


def test_a_widget_without_a_first_frame_turns_the_build_red(tmp_path: Path) -> None:
    code, said = build(tmp_path, "Words.", WIDGET)
    assert code != 0
    assert "no picture for readers without scripts" in said
