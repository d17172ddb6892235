"""The workflows: linted, and the linters are shown to fail on what they are there to catch."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
PINNED = "actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2"
OWN = ("run-gpu", "run-gpu-chapters")


def loaded(name: str) -> dict[Any, Any]:
    """A workflow's values; its key `on` is read as True, as YAML 1.1 has it."""
    values: dict[Any, Any] = yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))
    return values


def steps_of(workflow: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", [])


def lint(folder: Path) -> dict[str, tuple[int, str]]:
    """The two linters on a repository, in the words of the Makefile: exit code and output by name."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return {name: _run(makefile, name, folder) for name in ("actionlint", "zizmor")}


def _run(makefile: str, name: str, folder: Path) -> tuple[int, str]:
    (line,) = [line.strip() for line in makefile.splitlines() if f"/{name} " in line]
    command = line.replace("$(BIN)", str(Path(sys.executable).parent))
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def planted(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """`planted("pr-gate.yml", old, new)`: a copy of the workflows with one change."""

    def plant(name: str, old: str, new: str) -> Path:
        shutil.copytree(ROOT / ".github", tmp_path / ".github", ignore=shutil.ignore_patterns("__pycache__"))
        # Both linters look for the root of a repository.
        (tmp_path / ".git").mkdir()
        file = tmp_path / ".github" / "workflows" / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        return tmp_path

    return plant


def test_the_workflows_have_no_finding(planted: Callable[[str, str, str], Path]) -> None:
    found = lint(planted("pr-gate.yml", "", ""))
    assert {name: code for name, (code, _) in found.items()} == {"actionlint": 0, "zizmor": 0}, found


def test_a_script_injection_turns_both_linters_red(planted: Callable[[str, str, str], Path]) -> None:
    found = lint(
        planted(
            "pr-test-gpu.yml",
            "- run: make environment PYTHON=python3",
            '- run: echo "${{ github.event.pull_request.title }}"',
        )
    )
    assert found["actionlint"][0] != 0
    assert "github.event.pull_request.title" in found["actionlint"][1]
    assert found["zizmor"][0] != 0
    assert "template-injection" in found["zizmor"][1]


def test_an_action_that_is_not_pinned_turns_zizmor_red(planted: Callable[[str, str, str], Path]) -> None:
    code, said = lint(planted("test.yml", PINNED, "actions/checkout@v6"))["zizmor"]
    assert code != 0
    assert "unpinned-uses" in said


def test_permissions_left_open_turn_zizmor_red(planted: Callable[[str, str, str], Path]) -> None:
    code, said = lint(planted("test.yml", "permissions:\n  contents: read\n", "permissions: write-all\n"))["zizmor"]
    assert code != 0
    assert "excessive-permissions" in said


def test_an_input_that_the_gate_does_not_have_turns_actionlint_red(planted: Callable[[str, str, str], Path]) -> None:
    code, said = lint(planted("pr-test-gpu.yml", "require-run-gpu: true", "require-run-gpus: true"))["actionlint"]
    assert code != 0
    assert "require-run-gpus" in said


@pytest.mark.parametrize("name", sorted(path.name for path in WORKFLOWS.iterdir()))
def test_every_workflow_starts_from_the_least_permissions_and_ends_in_time(name: str) -> None:
    workflow = loaded(name)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for job in workflow["jobs"].values():
        assert not any(value == "write" for value in job.get("permissions", {}).values())
        assert "uses" in job or 0 < job["timeout-minutes"] <= 60


@pytest.mark.parametrize("name", sorted(path.name for path in WORKFLOWS.iterdir()))
def test_no_workflow_uses_a_secret_or_keeps_the_token_on_disk(name: str) -> None:
    workflow = loaded(name)
    assert "secrets" not in str(workflow)
    for step in steps_of(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", sorted(path.name for path in WORKFLOWS.iterdir()))
def test_no_script_holds_an_expression_and_no_condition_reads_frozen_labels(name: str) -> None:
    workflow = loaded(name)
    assert not any("${{" in step.get("run", "") for step in steps_of(workflow))
    assert "pull_request.labels" not in (WORKFLOWS / name).read_text(encoding="utf-8")


def test_the_gpu_workflow_starts_only_when_one_of_its_own_labels_is_added() -> None:
    workflow = loaded("pr-test-gpu.yml")
    assert workflow[True] == {"pull_request": {"types": ["labeled"]}}
    gate, gpu = workflow["jobs"]["gate"], workflow["jobs"]["gpu"]
    own = "[" + ", ".join(f'"{name}"' for name in OWN) + "]"
    condition = f"contains(fromJSON('{own}'), github.event.label.name)"
    assert gate["if"] == condition
    assert condition in workflow["concurrency"]["group"]
    assert "if" not in gpu


def test_the_gpu_workflow_leaves_the_check_to_the_gate() -> None:
    jobs = loaded("pr-test-gpu.yml")["jobs"]
    assert jobs["gate"]["uses"] == "./.github/workflows/pr-gate.yml"
    assert jobs["gate"]["with"] == {"require-run-gpu": True}
    assert jobs["gpu"]["needs"] == "gate"
    assert any(step.get("run", "").endswith("-m pytest -m gpu") for step in jobs["gpu"]["steps"])


def test_the_gate_asks_when_it_runs_and_only_where_it_is_told_to() -> None:
    gate = loaded("pr-gate.yml")
    assert gate[True]["workflow_call"]["inputs"]["require-run-gpu"]["type"] == "boolean"
    (step,) = [step for step in steps_of(gate) if "run" in step]
    assert step["if"] == "inputs.require-run-gpu"
    assert step["run"].split() == ["python3", ".github/scripts/require_label.py", "run-gpu"]
    assert (ROOT / ".github" / "scripts" / "require_label.py").is_file()


def test_no_workflow_runs_the_broken_gate() -> None:
    assert not any("broken" in path.read_text(encoding="utf-8") for path in WORKFLOWS.iterdir())
