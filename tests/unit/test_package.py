"""What is installed with refimpl, what is shipped in it, and what an import brings along."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WEIGHTS = ROOT / "refimpl" / "model" / "weights"
OWN_TORCH = "torch"
"""A GPU instance keeps its own, with the packages that its CUDA needs: neither its version nor they are pinned here."""

INSTALLERS = {"setuptools", "wheel"}
"""Tools that install: no run of the book depends on their version."""


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """What requirements.txt pins, by plain name."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    named = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {plain(name): pinned for name, pinned in named}


def brought_in(name: str) -> Iterator[str]:
    """Plain names of what a package requires here, without its extras."""
    for line in distribution(name).requires or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield plain(requirement.name)


def test_what_a_pinned_package_brings_in_is_pinned() -> None:
    pinned = pins()
    loose = {other for name in pinned if name != OWN_TORCH for other in brought_in(name) if other not in pinned}
    assert loose - INSTALLERS == set()


def test_the_tests_run_on_the_versions_that_are_pinned() -> None:
    assert {name: version(name) for name in pins() if name != OWN_TORCH} == {
        name: pinned for name, pinned in pins().items() if name != OWN_TORCH
    }


def test_a_pin_is_in_the_range_of_the_package() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    for line in [*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pins()[plain(requirement.name)]), line


def test_every_file_of_the_weights_is_shipped() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["refimpl.model"]
    model = WEIGHTS.parent
    shipped = {file for pattern in patterns for file in model.glob(pattern)}
    assert shipped >= {file for file in WEIGHTS.rglob("*") if file.is_file()}
    assert WEIGHTS / "tokenizer.json" in shipped


def imported_by(code: str) -> set[str]:
    """Top-level packages that a new process has imported after this code."""
    tells = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", tells]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("absent", ["transformers", "huggingface_hub", "matplotlib", "IPython"])
def test_the_engine_needs_no_oracle_no_network_and_no_notebook(absent: str, engine_imports: set[str]) -> None:
    assert absent not in engine_imports


@pytest.fixture(scope="module")
def engine_imports() -> set[str]:
    found = imported_by("import refimpl.engine, refimpl.model.registry, refimpl.model.tokenizer")
    assert {"torch", "tokenizers", "safetensors"} <= found
    return found


def test_a_proof_imports_neither_torch_nor_what_came_with_the_models(tmp_path: Path) -> None:
    program = sorted((ROOT / "tests" / "cases").glob("*.json"))[0]
    found = imported_by(f"from refimpl.cli import main\nmain(['check', {str(program)!r}])")
    assert found & {"torch", "numpy", "tokenizers", "safetensors", "transformers"} == set()
