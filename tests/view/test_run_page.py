"""The one-file page of a recorded run: opens from disk, alone, small or large."""

import gzip
import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from refimpl.program import Trace
from refimpl.timeline import columns
from refimpl.view.trace_page import PLAIN_BYTES, trace_page
from tests.book.conftest import Watched, watch
from tests.view.long_run import long_run

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]

SHORT, LONG = long_run(60), long_run(5000)


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """``opened(html, size=(390, 844), java_script_enabled=False)`` opens a page from disk."""
    contexts = []

    def open_page(html: str, size: tuple[int, int] = (1200, 900), **options: Any) -> Watched:
        (tmp_path / "run.html").write_text(html, encoding="utf-8")
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        contexts.append(context)
        watched = watch(context, tmp_path.as_uri())
        watched.page.goto(f"{watched.base}/run.html")
        if options.get("java_script_enabled", True):
            watched.page.wait_for_selector("html[data-widgets=live]", timeout=30_000)
        return watched

    yield open_page
    for context in contexts:
        context.close()


def page_of(run: Trace, **named: str) -> str:
    return trace_page(run, columns(run, **named))  # type: ignore[arg-type]


def words(page: Page) -> str:
    return page.locator("main").inner_text()


def test_a_short_run_stands_in_the_page_as_it_is_and_a_long_one_packed() -> None:
    short, long = page_of(SHORT), page_of(LONG)
    assert '<script type="application/json" id="columns">' in short
    assert '<script type="application/gzip" id="columns">' in long
    packed = long.split('id="columns">')[1].split("</script>")[0]
    table = columns(LONG)
    assert json.loads(gzip.decompress(b64decode(packed))) == table
    assert PLAIN_BYTES < 2 * len(packed) < len(json.dumps(table))


@pytest.mark.parametrize("run", [SHORT, LONG], ids=["plain", "packed"])
@pytest.mark.parametrize("size", [(1200, 900), (390, 844)], ids=["laptop", "phone"])
def test_a_page_opens_from_disk_and_asks_for_nothing(opened: Open, run: Trace, size: tuple[int, int]) -> None:
    watched = opened(page_of(run, title="A run", words="What it shows."), size=size)
    assert f"{len(run.spans):,} spans" in words(watched.page)
    assert "What it shows." in words(watched.page)
    assert watched.page.title() == "A run"
    assert watched.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert watched.wrong == []


def test_two_runs_stand_on_one_page(opened: Open) -> None:
    before = long_run(2000, synchronizes=True)
    after = long_run(2000)
    html = trace_page(after, columns(after, step_op="prepare"), columns(before, step_op="prepare"))
    watched = opened(html)
    assert "before" in words(watched.page)
    assert "after" in words(watched.page)
    assert watched.wrong == []


def test_without_scripts_the_page_tells_the_run_in_words(opened: Open) -> None:
    watched = opened(page_of(LONG), java_script_enabled=False)
    told = watched.page.locator("noscript").inner_text()
    assert "Lanes: host, schedule, plan, forward, copy" in told
    assert "The host is held" in told
    assert "Busy: host" in told


def test_a_name_in_a_run_ends_no_element_of_the_page(opened: Open) -> None:
    evil = "</script><script>document.title = 'taken'</script><b>"
    watched = opened(page_of(SHORT, title=evil, id=evil, words=evil))
    assert watched.page.title() == evil
    assert watched.page.locator("h1").inner_text() == evil
    assert watched.wrong == []


def test_a_browser_that_cannot_unpack_says_so(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "old.html").write_text(page_of(LONG), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(f"{tmp_path.as_uri()}/old.html")
    assert "has no DecompressionStream" in page.get_by_role("alert").inner_text()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Open, scheme: str) -> None:
    watched = opened(page_of(LONG, title="A run"), color_scheme=scheme, reduced_motion="reduce")
    found = Axe().run(watched.page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:120]) for v in found] == []
