"""The committed chapters: their outputs are theirs, from a real device, and the cells run on the simulated one too."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from refimpl.lessons import notebooks
from tests.conftest import ROOT

SIMULATED = ROOT / "_build" / "notebooks-on-sim"
ABOUT_THE_SIMULATOR = {"the_simulated_device"}
CHAPTERS = sorted(notebooks.FOLDER.glob("*.ipynb"))
each_chapter = pytest.mark.parametrize(
    "path", CHAPTERS or [notebooks.FOLDER / "no notebook"], ids=lambda path: path.stem
)


def test_every_chapter_stands_in_the_table_of_contents_and_the_other_way_round() -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = {chapter["file"] for part in toc["parts"] for chapter in part["chapters"]}
    assert {name for name in listed if name.startswith("notebooks/")} == {f"notebooks/{path.stem}" for path in CHAPTERS}


@each_chapter
def test_the_outputs_belong_to_the_cells(path: Path) -> None:
    assert notebooks.check(path).errors == ()


@each_chapter
def test_the_outputs_are_a_gpus_unless_the_simulator_is_the_subject(path: Path) -> None:
    kind = json.loads(path.read_text())["metadata"]["stream_order"]["kind"]
    assert kind == ("sim" if path.stem in ABOUT_THE_SIMULATOR else "cuda")


@each_chapter
def test_the_cells_run_on_the_simulated_device(path: Path, refimpl: Callable[..., object]) -> None:
    done = refimpl("notebooks", "run", path, "--device", "sim", "--out", SIMULATED)
    assert done.returncode == 0, done.stderr
    assert notebooks.check(SIMULATED / path.name).errors == ()
    assert json.loads((SIMULATED / path.name).read_text())["metadata"]["stream_order"]["kind"] == "sim"
