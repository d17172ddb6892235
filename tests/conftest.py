"""What every test may lean on: where the repository is, refimpl's command line as a process, and a browser."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

if "PYTEST_XDIST_WORKER" in os.environ:
    # There is a worker for each core, so that a second thread of torch, here or in a process started from here, would
    # only wait for one. Read when torch is loaded, which is after this file.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell, which has Ctrl-C ignored, and all its children too: some tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[1]
FLAGS = [
    *["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
    *["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]


@pytest.fixture
def refimpl() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`refimpl("check", "file.json")` runs `python -m refimpl check file.json` and returns what came of it."""

    def run(*words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "refimpl", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=900, check=False, **options)

    return run


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """An installed Chromium; playwright's own download is not needed."""
    # Here, so that the tests of a GPU run where there is no browser.
    from playwright.sync_api import sync_playwright

    names = os.environ.get("CHROMIUM", "chromium chromium-browser google-chrome google-chrome-stable").split()
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.fail(f"none of {', '.join(names)} is installed: `make browser` finds or installs one")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield launched
        launched.close()
