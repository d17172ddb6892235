"""The built book, served on 127.0.0.1 and opened in a Chromium that can reach nothing else."""

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response

from tests.conftest import ROOT

HTML = Path(os.environ.get("BOOK_HTML", ROOT / "_build" / "html"))
SCREENSHOTS = ROOT / "_build" / "screenshots"


def pages() -> list[str]:
    """Every page of the built book that has a text of its own."""
    built = [path for folder in ("book", "notebooks") for path in (HTML / folder).rglob("*.html")]
    found = sorted(str(path.relative_to(HTML)) for path in built)
    return found or ["the book is not built: run `make html`"]


def chapters() -> list[str]:
    """The pages that show a timeline."""
    built = [page for page in pages() if (HTML / page).is_file() and _has_timeline(HTML / page)]
    return built or ["no page of the book has a timeline"]


def _has_timeline(file: Path) -> bool:
    """Whether it is a notebook's widget, or a page's own."""
    text = file.read_text(encoding="utf-8")
    return "application/vnd.jupyter.widget-view+json" in text or 'class="timeline-spec"' in text


@dataclass
class Watched:
    """A page, and everything that it did which a page of this book may not do."""

    page: Page
    base: str
    wrong: list[str] = field(default_factory=list)

    def open(self, name: str, base: str | None = None) -> Page:
        """Open a page by its path in the book, and wait until its widgets are live."""
        self.page.goto(f"{self.base if base is None else base}/{name}", wait_until="load")
        if self.page.locator("script[type$='widget-view+json'], script.timeline-spec").count():
            self.page.wait_for_selector(".tl .tl-op", timeout=20_000)
        self.page.wait_for_load_state("networkidle")
        return self.page

    def on_request(self, request: Request) -> None:
        """Only this machine may be asked for anything."""
        address = urlparse(request.url)
        if address.scheme in {"http", "https", "ws", "wss"} and address.hostname != "127.0.0.1":
            self.wrong.append(f"asked for {request.url}")

    def on_response(self, response: Response) -> None:
        """What is asked for exists."""
        if response.status >= 400:
            self.wrong.append(f"{response.status} {response.url}")

    def on_console(self, message: ConsoleMessage) -> None:
        """The console stays clean."""
        if message.type == "error":
            self.wrong.append(f"console: {message.text}")


@pytest.fixture(scope="session")
def html() -> Path:
    """The folder of the built book."""
    if not (HTML / "index.html").is_file():
        pytest.fail(f"no built book at {HTML.name}: run `make html`")
    return HTML


@pytest.fixture(scope="session")
def served(html: Path) -> Iterator[str]:
    """The address of the built book on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Requests are not the test's output."""

    handler = functools.partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def watch(context: BrowserContext, base: str) -> Watched:
    """A new page whose missteps are written down."""
    watched = Watched(context.new_page(), base)
    watched.page.on("request", watched.on_request)
    watched.page.on("response", watched.on_response)
    watched.page.on("console", watched.on_console)
    watched.page.on("pageerror", lambda error: watched.wrong.append(f"page error: {error}"))
    return watched


@pytest.fixture
def laptop(browser: Browser, served: str) -> Iterator[Watched]:
    """A window of 1280 by 900, light."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield watch(context, served)
    context.close()


@pytest.fixture
def dark(browser: Browser, served: str) -> Iterator[Watched]:
    """The same window, dark."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    yield watch(context, served)
    context.close()


@pytest.fixture
def phone(browser: Browser, served: str) -> Iterator[Watched]:
    """A phone of 390 by 844."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, device_scale_factor=2, has_touch=True)
    yield watch(context, served)
    context.close()


@pytest.fixture
def scriptless(browser: Browser, served: str) -> Iterator[Page]:
    """A browser that runs no script."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, java_script_enabled=False)
    yield context.new_page()
    context.close()
