"""The command line: quick to ask for help, one sentence for what went wrong, an exit code for everything."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from refimpl import cli
from refimpl.cli import COMMANDS
from refimpl.commands import chosen, tables
from refimpl.device.select import DEVICE_VARIABLE
from refimpl.program.errors import UserError
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("closes", ["> /dev/full", ">&-", "> /dev/full 2> /dev/full", ">&- 2>&-"])
def test_an_answer_that_cannot_be_written_is_one_sentence_and_exits_with_2(closes: str) -> None:
    check = f"{shlex.quote(sys.executable)} -m refimpl notebooks check --json {closes}"
    done = subprocess.run(["sh", "-c", check], stderr=subprocess.PIPE, env=ENV, cwd=ROOT, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == ("2>" not in closes)


def test_a_bug_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(args: object) -> int:
        raise KeyError("clock")

    monkeypatch.setattr("refimpl.commands.check.run", fails)
    assert cli.main(["check", "x.json"]) == cli.BUG == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.endswith("refimpl check: this is a bug in refimpl; please report it with the lines above.\n")


def test_an_error_of_a_file_is_one_sentence_that_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("refimpl.commands.check.run", lambda args: Path("/no/such/file").read_text())
    monkeypatch.setattr(cli, "_drop_output", lambda: None)
    assert cli.main(["check", "x.json"]) == 2
    said = capsys.readouterr().err
    assert said == "refimpl check: /no/such/file cannot be read or written: No such file or directory\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["demo", "--device", "cuda"], "there is no GPU"),
        (["notebooks", "run", "--device", "cuda"], "there is no GPU"),
        (["notebooks", "run", "--timeout", "-5"], "--timeout -5: give a whole number of seconds from 1"),
        (["notebooks", "run", "--timeout", "0"], "--timeout 0"),
        (["notebooks", "run", "--out", f"{__file__}/out"], "nothing can be written there"),
        (["bench", "order", "--save", "../../evil"], "a name has letters"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_refused_before_anything_starts(words: list[str], says: str) -> None:
    command = [sys.executable, "-m", "refimpl", *words]
    env = {**ENV, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, env=env, cwd=ROOT, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr


def test_a_device_that_the_environment_misspells_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "tpu")
    with pytest.raises(UserError, match=f"{DEVICE_VARIABLE}=tpu: that device is not known"):
        chosen.device(None)
    assert chosen.device("sim") == "sim"


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
    assert tables.text([{"fence": "wait", "ms": 4.5}, {"fence": "none", "ms": 10.25}]).splitlines() == [
        "fence      ms",
        "wait    4.500",
        "none   10.250",
    ]
