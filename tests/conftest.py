"""What every test may lean on: where the repository is, and a process that runs refimpl's command line."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def refimpl() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`refimpl("check", "file.json")` runs `python -m refimpl check file.json` and returns what came of it."""

    def run(*words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "refimpl", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False, **options)

    return run
