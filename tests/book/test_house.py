"""The gates themselves: each turns red on what it is there to catch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def lint_imports(folder: Path, *modules: tuple[str, str]) -> tuple[int, str]:
    """Check a small refimpl of these modules against the project's own contracts."""
    for room in ("program", "order", "timeline", *(name.split("/")[0] for name, _ in modules)):
        (folder / "refimpl" / room).mkdir(parents=True, exist_ok=True)
        (folder / "refimpl" / room / "__init__.py").touch()
    (folder / "refimpl" / "__init__.py").touch()
    for name, text in modules:
        (folder / "refimpl" / name).write_text(text)
    shutil.copy(ROOT / "pyproject.toml", folder)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_arrows_of_the_house_may_be_followed(tmp_path: Path) -> None:
    code, said = lint_imports(tmp_path, ("order/a.py", "import refimpl.program"), ("fences/a.py", "import torch"))
    assert code == 0, said


@pytest.mark.parametrize(
    ("module", "text", "says"),
    [
        ("program/a.py", "import refimpl.order", "program may not import order"),
        ("device/a.py", "from refimpl.order import x", "device may not import order"),
        ("program/a.py", "def f():\n    import torch", "torch"),
        ("attic/a.py", "", "refimpl.attic stands in no line"),
    ],
)
def test_an_import_against_the_arrows_is_an_error(tmp_path: Path, module: str, text: str, says: str) -> None:
    code, said = lint_imports(tmp_path, (module, text))
    assert code == 1
    assert says in said


@pytest.mark.parametrize(
    ("script", "env"),
    [
        ([".ci/chromium"], {"CHROMIUM": "/no/such/chromium"}),
        ([".ci/environment", "/no/such/venv", "/no/such/python"], {}),
    ],
    ids=["chromium", "python"],
)
def test_what_is_missing_is_one_sentence_and_a_failure(script: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(
        script, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "/no/such/" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_part_that_fails_fails_make_test(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements.txt").write_text("")
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    names = ("ruff", "actionlint", "zizmor", "mypy", "lint-imports", "jupyter-book", "python")
    for name in names:
        (tools / name).write_text("#!/bin/sh\nexit 0\n")
        (tools / name).chmod(0o755)
    scripts = tmp_path / ".ci"
    scripts.mkdir()
    for name in ("environment", "chromium"):
        (scripts / name).write_text("#!/bin/sh\nexit 0\n")
        (scripts / name).chmod(0o755)
    (tmp_path / "tests").mkdir()
    (tmp_path / "refimpl").mkdir()
    (tmp_path / "tests" / "ok.test.mjs").write_text("")

    def make() -> int:
        return subprocess.run(["make", "test"], cwd=tmp_path, capture_output=True, timeout=120, check=False).returncode

    assert make() == 0
    for name in names:
        (tools / name).write_text("#!/bin/sh\nexit 1\n")
        assert make() != 0, name
        (tools / name).write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "tests" / "ok.test.mjs").write_text("throw new Error('planted')")
    assert make() != 0, "javascript"
