"""On a narrow screen an event's name never lies on a lane's name or on what the lane does at that time."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from refimpl.program import Buffer, Launch, Program, Range, Stream
from refimpl.program import ops as o
from refimpl.view import page
from tests.view.rest import at_rest

STEPS, BYTES = 4, 64
PUBLISH_US, BEHIND_US, PREPARE_US = 120, 380, 60
COVERED = """() => {
    const shown = [...document.querySelectorAll("svg text")].filter((t) => t.textContent && t.getClientRects().length);
    const named = shown.filter((t) => /^publish_ready/.test(t.textContent));
    const meet = (p, q) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 2
        && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3;
    return [named.length, named.flatMap((t) => shown.filter((other) => other !== t
        && meet(t.getBoundingClientRect(), other.getBoundingClientRect())).map((other) =>
            `${t.textContent} lies on ${other.textContent}`))];
}"""


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def published() -> Program:
    """Forward publishes early in each step, and schedule reads behind a wait."""
    ops: list[o.Op] = []
    for step in range(STEPS):
        event, lengths = f"publish_ready {step}", Range("seq_lens", BYTES * step, BYTES)
        ops += [
            Launch(stream="forward", name=f"verify {step}", writes=(lengths,), us=PUBLISH_US),
            o.EventRecord(event=event, stream="forward"),
            Launch(stream="forward", name=f"draft_extend {step}", us=BEHIND_US),
            o.StreamWaitEvent(event=event, stream="schedule"),
            Launch(stream="schedule", name=f"prepare {step}", reads=(lengths,), us=PREPARE_US),
        ]
    streams = {"schedule": Stream(), "forward": Stream()}
    return Program(id="published", streams=streams, buffers={"seq_lens": Buffer(BYTES * STEPS)}, ops=tuple(ops))


@pytest.mark.browser
def test_an_events_name_lies_on_no_other_word_at_any_time(phone: Page) -> None:
    phone.set_content(page(published()))
    step = phone.locator("button", has_text="›")
    named = 0
    for _ in range(2 * STEPS):
        names, covered = phone.evaluate(COVERED)
        assert covered == []
        named += names
        step.click()
        at_rest(phone, 300)
    assert named > 0
