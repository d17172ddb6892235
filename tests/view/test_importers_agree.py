"""The page's importer and its accounts, in the browser's language, say of a trace what refimpl says."""

import gzip
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from refimpl.program import UserError, read_programs
from refimpl.timeline import from_profiler, schedule, to_chrome
from refimpl.timeline.reports.report import report
from refimpl.timeline.writing.columns import columns
from tests.view import traces

HERE = Path(__file__).parent
RECORDED = sorted((HERE.parents[1] / "results" / "traces").glob("*.json*"))
FEW, MANY = 60, 400


def judge(files: Iterable[Path]) -> list[dict[str, Any]]:
    """What the page makes of each file."""
    told = json.dumps([str(file) for file in files])
    command = ["node", HERE / "judge_traces.mjs"]
    done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    said: list[dict[str, Any]] = json.loads(done.stdout)
    return said


def expected(file: Path) -> dict[str, Any]:
    """What refimpl says: columns and report, or a sentence."""
    try:
        kernels, launches = (from_profiler(file, merge_launches=merged) for merged in (False, True))
    except UserError as error:
        return {"error": str(error)}
    return {"columns": columns(kernels, title=file.name), "report": report(launches, file.name).to_json()}


def differences(files: list[Path]) -> list[str]:
    """Where the two differ, in words; empty when they agree."""
    found = []
    for file, said in zip(files, judge(files), strict=True):
        right = expected(file)
        if "error" in right or "error" in said:
            found += [f"{file.name}: {right.get('error')} | {said.get('error')}"] * (
                ("error" in right) != ("error" in said)
            )
            continue
        found += [
            f"{file.name}: columns, {key}" for key, value in right["columns"].items() if said["columns"][key] != value
        ]
        found += [
            f"{file.name}: report, {key}" for key, value in right["report"].items() if said["report"][key] != value
        ]
    return found


def write(folder: Path, made: Iterable[tuple[str, Any]]) -> list[Path]:
    """Each trace as a file, every second one packed."""
    files = []
    for number, (name, data) in enumerate(made):
        text = json.dumps(data, indent=None if number % 3 else 2).encode()
        file = folder / (f"{name}.json.gz" if number % 2 else f"{name}.json")
        file.write_bytes(gzip.compress(text) if number % 2 else text)
        files.append(file)
    return files


def test_on_random_profiles(tmp_path: Path) -> None:
    files = write(tmp_path, ((f"profile-{seed}", traces.profile(seed)) for seed in range(MANY)))
    assert differences(files) == []


def test_on_random_traces_of_other_tools(tmp_path: Path) -> None:
    files = write(tmp_path, ((f"foreign-{seed}", traces.foreign(seed)) for seed in range(FEW)))
    assert differences(files) == []


def test_on_traces_that_this_project_exported(tmp_path: Path) -> None:
    told = list(read_programs(HERE.parent / "cases" / "stream-programs.json"))[:FEW]
    made = ((f"own-{number}", to_chrome(schedule(program))) for number, program in enumerate(told))
    assert differences(write(tmp_path, made)) == []


def test_on_odd_traces(tmp_path: Path) -> None:
    """Of one name two threads, an export that begins before 0, line ends in names, no GPU, times far apart."""
    assert differences(write(tmp_path, traces.odd())) == []


def test_the_random_profiles_are_of_every_kind(tmp_path: Path) -> None:
    files = write(tmp_path, ((f"profile-{seed}", traces.profile(seed)) for seed in range(FEW)))
    reports = [said["report"] for said in map(expected, files) if "report" in said]
    lanes = {lane["lane"].split(" ")[0] for made in reports for lane in made["lanes"]}
    assert {"host", "thread", "process", "GPU", "forward", "stream"} <= lanes
    causes = {cause["cause"].split(":")[0] for made in reports for cause in made["gpu_idle"]["by_cause"]}
    assert len(causes) > 6
    kinds = {part["kind"] for made in reports for part in made["critical_path"]["parts"]}
    assert kinds == {"run", "blocked", "host", "launch", "idle"}


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.name)
def test_on_recorded_traces(file: Path) -> None:
    assert differences([file]) == []
