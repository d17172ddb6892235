"""The chapter's exercise cells are the exercises that are proved: a stub that fails stands in the notebook as it is."""

from pathlib import Path

import nbformat
import pytest

from refimpl.lessons.exercise import Exercise
from refimpl.lessons.exercises import exercises

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def _cells(name: str) -> list[str]:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("exercise", exercises().values(), ids=list(exercises()))
def test_every_exercise_stands_in_a_chapter_with_its_stub_its_check_and_its_fold(exercise: Exercise) -> None:
    cells = [cell for path in NOTEBOOKS.glob("*.ipynb") for cell in _cells(path.stem)]
    assert f"exercises.{exercise.name}" in cells
    (answer,) = [cell for cell in cells if f"exercises.{exercise.name}.check(" in cell]
    assert answer.startswith(exercise.stub_source.strip())
    assert f"display(exercises.{exercise.name}.hint(), exercises.{exercise.name}.solution())" in cells
