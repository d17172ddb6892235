"""Pages that are made narrower, and names that have no end: nothing reaches out of the page."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from refimpl.program import Span, SpanKind, Trace, TraceSource
from refimpl.timeline.writing.columns import columns
from refimpl.view import page as html_page
from refimpl.view.trace_page import trace_page
from tests.book.conftest import Watched
from tests.view.long_run import long_run
from tests.view.rest import at_rest

pytestmark = pytest.mark.browser

ENDLESS = "x" * 10_000
WIDTHS = (390, 1400, 390)


@pytest.fixture
def run_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[[Trace], Page]]:
    """``run_page(trace)`` opens the one-file page of a recorded run."""
    context = browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")

    def opened(trace: Trace) -> Page:
        file = tmp_path / "run.html"
        file.write_text(trace_page(trace, columns(trace, title="A run")), encoding="utf-8")
        page = context.new_page()
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-widgets=live]", timeout=30_000)
        return page

    yield opened
    context.close()


def beyond(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide


def resized(page: Page) -> dict[int, int]:
    """For each width, by how much the page is too wide once it has settled."""
    found = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        at_rest(page, 150)
        found[width] = beyond(page)
    return found


def point_at(page: Page, target: str, x: float, y: float) -> None:
    """Point at a place of an element, given as shares of it."""
    place: Any = page.locator(target).first.bounding_box()
    page.mouse.move(place["x"] + x * place["width"], place["y"] + y * place["height"])


def test_a_card_that_was_shown_does_not_widen_a_page_made_narrower(visit: Callable[..., Watched]) -> None:
    page = visit("one-file.html").page
    boxes = [op.bounding_box() for op in page.locator(".tl-op").all()]
    seen = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes if box is not None]
    page.mouse.move(*max(place for place in seen if place[0] < 1200))
    page.wait_for_selector(".tl-card.on")
    assert resized(page) == dict.fromkeys(WIDTHS, 0)
    page.mouse.move(1, 1)
    assert resized(page) == dict.fromkeys(WIDTHS, 0)


def test_a_card_of_a_run_does_not_widen_a_page_made_narrower(run_page: Callable[[Trace], Page]) -> None:
    page = run_page(long_run(300))
    point_at(page, ".rn-fig canvas", 0.97, 0.5)
    page.wait_for_selector(".tl-card.on")
    page.mouse.move(1, 1)
    assert resized(page) == dict.fromkeys(WIDTHS, 0)


def test_names_without_an_end_open_at_once_and_stay_in_the_page(run_page: Callable[[Trace], Page]) -> None:
    work = Span(ENDLESS, ENDLESS, SpanKind.RUN, 5, 900, None, 1, 3, ENDLESS)
    held = Span("host", ENDLESS, SpanKind.BLOCKED, 4, 950, call=ENDLESS)
    page = run_page(Trace(("host", ENDLESS), (held, work), TraceSource.MEASURED))
    for summary in page.locator("summary").all():
        summary.click()
    page.locator(".rn-fig").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert resized(page) == dict.fromkeys(WIDTHS, 0)


def test_tens_of_thousands_of_races_leave_the_page_usable(browser: Browser, tmp_path: Path) -> None:
    """Every pair of ops races: the table counts them all, the picture draws what can be told apart."""
    streams: dict[str, Any] = {f"s{n}": {} for n in range(60)}
    buffer = {"buf": "x", "off": 0, "len": 8}
    ops = [{"op": "launch", "stream": name, "name": f"write {name}", "us": 50, "writes": [buffer]} for name in streams]
    file = tmp_path / "many.html"
    file.write_text(
        html_page({"schema": 1, "id": "many", "streams": streams, "buffers": {"x": {"bytes": 8}}, "ops": ops}),
        encoding="utf-8",
    )
    page = browser.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-widgets=live]", timeout=30_000)
    arcs = page.locator(".tl-hz .arc").count()
    page.close()
    assert 100 < arcs <= 200
