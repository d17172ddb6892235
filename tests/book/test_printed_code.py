"""The Python and the JSON that the pages print do what the pages say."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT

PAGE = (ROOT / "book" / "check-your-own.md").read_text(encoding="utf-8")
ENGINE_PAGE = (ROOT / "book" / "the-engine.md").read_text(encoding="utf-8")


def block(language: str, page: str = PAGE) -> str:
    found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def run(code: str, folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_printed_python_finds_its_race_and_none_once_the_stream_waits(tmp_path: Path) -> None:
    code = block("python")
    assert run(code, tmp_path).startswith("RAW on lens")
    assert "<svg" in (tmp_path / "mine.html").read_text(encoding="utf-8")
    fenced = code.replace(
        "    with dev.stream(schedule):", "    schedule.wait_stream(forward)\n    with dev.stream(schedule):"
    )
    assert run(fenced, tmp_path) == ""


def test_the_printed_program_races_and_is_ok_with_the_wait(
    tmp_path: Path, refimpl: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(block("json"))
    assert refimpl("check", file).returncode == 1
    program = json.loads(block("json"))
    (wait,) = re.findall(r'`(\{"op": "stream_wait_event".*?\})`', PAGE, re.DOTALL)
    program["ops"].insert(2, json.loads(wait))
    file.write_text(json.dumps(program))
    assert refimpl("check", file).returncode == 0


def test_the_printed_engine_decodes_and_streams(tmp_path: Path) -> None:
    said = run(block("python", ENGINE_PAGE), tmp_path)
    assert re.search(r"^[01] ", said, re.MULTILINE), said
    assert re.search(r" \d\.\d+$", said, re.MULTILINE), said


def test_the_printed_commands_of_the_engine_are_commands() -> None:
    from refimpl.cli import _parser

    for line in block("bash", ENGINE_PAGE).splitlines():
        python, dash_m, package, name, *rest = shlex.split(line)
        assert (python, dash_m, package) == ("python", "-m", "refimpl")
        assert _parser(name).parse_args([name, *rest])
