"""A GitHub of our own on 127.0.0.1, and the gates run as a workflow's step runs them: a process, variables, files."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.conftest import ROOT

SCRIPTS = ROOT / ".github" / "scripts"
REPOSITORY = "stream/order"
NUMBER = 7
TOKEN = "a-token-of-the-tests"

Answer = tuple[int, dict[str, str], str]
"""Status, headers and body."""


@dataclass
class GitHub:
    """The part of the API that a gate may ask for.

    Args:
        url: where it answers.
        labels: what the pull request carries now.
        embedded: how many of them come with the pull request itself.
        page: how many come in a page, at most.
        trouble: answers given before any right one, in order.
        asked: the paths asked for, and with which token.
    """

    url: str = ""
    labels: list[str] = field(default_factory=list)
    embedded: int = 100
    page: int = 100
    trouble: list[Answer] = field(default_factory=list)
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def answer(self, target: str, token: str | None) -> Answer:
        """What a request for this path and query gets."""
        self.asked.append((target, token))
        if self.trouble:
            return self.trouble.pop(0)
        path = urlsplit(target).path
        if path == f"/repos/{REPOSITORY}/pulls/{NUMBER}":
            return 200, {}, json.dumps({"number": NUMBER, "labels": named(self.labels[: self.embedded])})
        if path == f"/repos/{REPOSITORY}/issues/{NUMBER}/labels":
            return self._page(int(parse_qs(urlsplit(target).query).get("page", ["1"])[0]))
        return 404, {}, "{}"

    def _page(self, number: int) -> Answer:
        start, end = (number - 1) * self.page, number * self.page
        more = f'<{self.url}/repos/{REPOSITORY}/issues/{NUMBER}/labels?per_page=100&page={number + 1}>; rel="next"'
        return 200, {"Link": more} if end < len(self.labels) else {}, json.dumps(named(self.labels[start:end]))


def named(labels: list[str]) -> list[dict[str, str]]:
    """Labels as the API and a payload have them."""
    return [{"name": name} for name in labels]


def payload(labels: list[str], fork: str | None = None) -> dict[str, Any]:
    """What the event of a pull request leaves in the runner's file."""
    head = {"repo": {"full_name": fork or REPOSITORY}}
    base = {"repo": {"full_name": REPOSITORY}}
    return {
        "action": "labeled",
        "pull_request": {"number": NUMBER, "labels": named(labels), "head": head, "base": base},
    }


@pytest.fixture
def github() -> Iterator[GitHub]:
    """The fake, and a server for it."""
    fake = GitHub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = fake.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not the test's output."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        fake.url = f"http://127.0.0.1:{server.server_port}"
        yield fake
        server.shutdown()


Gate = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def gate(github: GitHub, tmp_path: Path) -> Gate:
    """`gate(payload)` runs the right gate on this event; `script=` names another one, other keywords are variables."""

    def run(event: object, script: str = "require_label.py", **env: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "event.json"
        file.write_text(event if isinstance(event, str) else json.dumps(event))
        runner = {
            "GITHUB_API_URL": github.url,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_EVENT_PATH": str(file),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "GH_TOKEN": TOKEN,
        }
        command = [sys.executable, str(SCRIPTS / script), "run-gpu", "--wait-s", "0.01"]
        # A proxy of the machine does not know this GitHub.
        surroundings = {**os.environ, "no_proxy": "127.0.0.1", **runner, **env}
        return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=60, check=False)

    return run
