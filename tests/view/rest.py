"""When a page has come to rest: counted on its own clock, so that a busy machine makes a test slow, never wrong."""

from playwright.sync_api import Page

REST = """(ms) => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, ms))))"""
"""What was asked for is drawn in the first frame; timers set until the second end before one that is set after it."""


def at_rest(page: Page, ms: int) -> None:
    """Wait until the page has drawn, and until every timer of up to ``ms`` that it had set has ended."""
    page.evaluate(REST, ms)
