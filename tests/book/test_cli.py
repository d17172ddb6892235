"""The command line: quick to ask for help, one sentence for what went wrong, an exit code for everything."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from refimpl.cli import COMMANDS
from refimpl.commands.demo import _table
from tests.conftest import ROOT

ENV = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    "words", [[], *([name] for name in COMMANDS), ["notebooks", "run"], ["notebooks", "check"]], ids=" ".join
)
def test_every_command_explains_itself(refimpl: Callable[..., object], words: list[str]) -> None:
    done = refimpl(*words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: python -m refimpl" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_does_not_import_torch(name: str) -> None:
    asks = f"import sys; from refimpl.cli import _parser; _parser({name!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asks], env=ENV, check=False).returncode == 0


def test_version_is_the_packages(refimpl: Callable[..., object]) -> None:
    import refimpl as package

    assert refimpl("--version").stdout == f"refimpl {package.__version__}\n"


@pytest.mark.parametrize("words", [["nonsense"], [], ["notebooks"], ["notebooks", "run", "--device", "tpu"]], ids=str)
def test_a_wrong_command_line_exits_with_2_and_the_usage(refimpl: Callable[..., object], words: list[str]) -> None:
    done = refimpl(*words)
    assert done.returncode == 2
    assert "usage:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_users_error_is_one_line_and_exits_with_2(refimpl: Callable[..., object]) -> None:
    done = refimpl("notebooks", "check", "no_such_chapter")
    assert done.returncode == 2
    assert done.stderr.startswith("refimpl notebooks: no notebook 'no_such_chapter'")
    assert len(done.stderr.splitlines()) == 1


def test_a_closed_pipe_is_no_traceback() -> None:
    check = [sys.executable, "-m", "refimpl", "notebooks", "check", "--json"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(check, stdout=writer, stderr=subprocess.PIPE, env=ENV, cwd=ROOT, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_ctrl_c_exits_with_130_and_leaves_the_notebook(tmp_path: Path) -> None:
    path = tmp_path / "slow.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import time; time.sleep(60)")]), path)
    before = path.read_bytes()
    run = subprocess.Popen(
        [sys.executable, "-m", "refimpl", "notebooks", "run", str(path)],
        stderr=subprocess.PIPE,
        env=ENV,
        text=True,
        start_new_session=True,
    )
    assert run.stderr is not None
    assert "cell 1 of 1" in run.stderr.readline()
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    _, rest = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "Traceback" not in rest
    assert path.read_bytes() == before


def test_the_demonstration_shows_each_fence_beside_the_control(refimpl: Callable[..., object]) -> None:
    done = refimpl("demo", "--device", "sim", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    stale = {row["fence"]: int(row["stale steps"].split()[0]) for row in shown["rows"]}
    assert shown["device"] == "sim"
    assert stale.pop("none") > 0
    assert stale == {"one at a time": 0, "synchronize": 0, "wait": 0}


def test_the_table_lines_up_numbers_on_the_right() -> None:
    assert _table([{"fence": "wait", "ms": 4.5}, {"fence": "none", "ms": 10.25}]).splitlines() == [
        "fence      ms",
        "wait    4.500",
        "none   10.250",
    ]
