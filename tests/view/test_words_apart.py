"""Words in the picture keep apart, and the time that it rests at lies in it, on a laptop and on a phone."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from refimpl.program import Buffer, Explorable, Launch, Program, Range, Stream, Variant
from refimpl.program import ops as o
from refimpl.view import page
from tests.view.rest import at_rest

pytestmark = pytest.mark.browser

STEPS, BYTES, FADE_MS = 6, 64, 300
HOST_US, PREPARE_US, DRAFT_US, VERIFY_US = 550, 20, 400, 100
ON_WORDS = """(words) => {
    const meet = (p, q) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1
        && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3;
    const named = [...document.querySelectorAll("svg text")].filter((t) => new RegExp(words).test(t.textContent));
    const over = [...document.querySelectorAll("svg :is(.pill, .value)")];
    return [named.length, over.length, named.flatMap((t) => over.filter((r) => r.parentNode !== t.parentNode
        && meet(t.getBoundingClientRect(), r.getBoundingClientRect())).map((r) =>
            `${r.parentNode.textContent} lies on ${t.textContent}`))];
}"""
IN_SIGHT = """() => {
    const plot = document.querySelector("svg clipPath rect").getBBox();
    const line = [...document.querySelectorAll("svg > g:last-child path")].map((p) => p.getBBox().x);
    return line.length > 0 && line.every((x) => x > plot.x && x < plot.x + plot.width);
}"""


@pytest.fixture(params=[390, 1280])
def opened(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Callable[[Explorable], Page]]:
    """``opened(explorable)`` is its page, at each width."""
    context = browser.new_context(viewport={"width": request.param, "height": 844}, reduced_motion="reduce")

    def open_page(shown: Explorable) -> Page:
        made = context.new_page()
        made.set_content(page(shown))
        at_rest(made, FADE_MS)
        return made

    yield open_page
    context.close()


def early() -> Explorable:
    """read_done comes before verify reads the table, so the next prepare writes it unordered; forward idles between."""
    table = (Range("req_to_token", 0, BYTES),)
    ops: list[o.Op] = []
    for step in range(STEPS):
        ops += [
            o.HostWork(name=f"build {step}", us=HOST_US),
            *([o.StreamWaitEvent(event=f"read_done {step - 1}", stream="schedule")] if step else []),
            Launch(stream="schedule", name=f"prepare {step}", writes=table, us=PREPARE_US),
            o.StreamWaitStream(stream="forward", on="schedule"),
            Launch(stream="forward", name=f"draft {step}", us=DRAFT_US),
            o.EventRecord(event=f"read_done {step}", stream="forward"),
            Launch(stream="forward", name=f"verify {step}", reads=table, us=VERIFY_US),
        ]
    streams = {"schedule": Stream(), "forward": Stream()}
    program = Program(id="early", streams=streams, buffers={"req_to_token": Buffer(BYTES)}, ops=tuple(ops))
    variants = (Variant(id="early", label="early", words="", program=program),)
    return Explorable(id="early", title="Recorded early", variants=variants, topic=("read_done",), step_op="verify")


def test_a_hazards_word_lies_on_no_events_name_at_any_time(opened: Callable[[Explorable], Page]) -> None:
    shown = opened(early())
    step = shown.locator("button", has_text="›")
    names = hazards = 0
    for _ in range(2 * STEPS):
        named, over, covered = shown.evaluate(ON_WORDS, "^read_done")
        assert covered == []
        names, hazards = names + named, hazards + over
        step.click()
        at_rest(shown, FADE_MS)
    assert hazards > 0
    assert names > 0 or shown.evaluate("innerWidth") < 620, "beside the hazards' words a phone has room for none"


def test_the_time_that_the_picture_rests_at_lies_in_it(opened: Callable[[Explorable], Page]) -> None:
    shown = opened(early())
    assert shown.evaluate(IN_SIGHT)
    shown.get_by_role("button", name="Force the bad order").click()
    at_rest(shown, FADE_MS)
    assert shown.evaluate(IN_SIGHT)


def test_what_a_forced_read_finds_covers_no_name_of_a_block(opened: Callable[[Explorable], Page]) -> None:
    shown = opened(early())
    shown.get_by_role("button", name="Force the bad order").click()
    at_rest(shown, FADE_MS)
    assert shown.locator(".value").count() == 1
    _, _, covered = shown.evaluate(ON_WORDS, "^(build|prepare|draft|verify|WAR) ?")
    assert covered == []
