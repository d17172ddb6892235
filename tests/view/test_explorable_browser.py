"""The explorable in a real browser: predict first, fences off and moved, the state in the address, why it waits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from refimpl.view import page as one_file
from tests.book.conftest import Watched
from tests.view.rest import at_rest
from tests.view.test_timeline_browser import op, sentence

pytestmark = pytest.mark.browser
Visit = Callable[..., Watched]
Open = Callable[..., Page]
GUESS = "I commit to this: show the answer"


@pytest.fixture
def opened(browser: Browser, tmp_path: Path, verify_done: dict[str, Any]) -> Any:
    """``opened("#verify_done.variant=wait", predict="step")`` opens the example from disk in one file; it must say
    nothing in the console."""
    contexts, wrong = [], []

    def open_page(hash_: str = "", width: int = 1280, scheme: str = "light", **more: Any) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 1000}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.on("console", lambda message: wrong.append(message.text))
        file = tmp_path / "one.html"
        file.write_text(one_file({**verify_done, **more}), encoding="utf-8")
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(file.as_uri() + hash_)
        page.wait_for_selector("html[data-widgets=live]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def hash_of(page: Page, has: str) -> str:
    """The address's fragment, once it speaks of something; it is written when the reader pauses."""
    page.wait_for_function("(has) => location.hash.includes(has)", arg=has)
    return str(page.evaluate("location.hash"))


def take(page: Page, fence: str) -> None:
    page.get_by_text("Change the fences").click()
    page.get_by_label("Fence", exact=True).last.select_option(label=fence)


# ── predict first ──
def everything_a_reader_can_get(page: Page) -> str:
    """Text on screen, labels, titles and the accessibility tree."""
    marks = page.evaluate("""() => [...document.querySelectorAll("main *")].flatMap((el) =>
        ["title", "aria-label", "aria-valuetext", "aria-description", "alt"].map((k) => el.getAttribute(k) ?? ""))""")
    return "\n".join([page.locator("main").inner_text(), *marks, page.locator("main").aria_snapshot()])


@pytest.mark.parametrize("about", ["race", "step", "blocked", "waits", "fastest"])
def test_before_the_guess_nothing_answers(opened: Open, about: str) -> None:
    told = {"alt": "It races: RAW.", "caption": "The host stands still."}
    page = opened(predict={"about": about}, initial="none", **told)
    everything = everything_a_reader_can_get(page)
    for spoiler in ("RAW", "race.", "unordered", "by luck", "host late", "step 1 ·", "stands still.", "It races", "%"):
        assert spoiler not in everything, spoiler
    assert page.locator(".pill, .tl-hz").count() == 0
    assert page.locator("table").is_hidden()
    page.keyboard.press("f")
    page.keyboard.press("w")
    assert page.locator(".tl-ans").is_hidden()
    assert "host late" not in everything_a_reader_can_get(page)


def test_the_guess_then_stands_beside_the_answer(opened: Open) -> None:
    page = opened(predict=True, initial="none")
    commit = page.get_by_role("button", name=GUESS)
    assert commit.is_disabled()
    page.get_by_label("No: every pair that shares a byte is ordered").check()
    commit.click()
    told = page.locator(".tl-guess").inner_text()
    assert told.startswith("You predicted No: every pair that shares a byte is ordered.")
    assert "Yes: gather may read new_seq_lens before forward has written it" in told
    assert sentence(page).startswith("No fence: a race.")
    assert page.locator("table").is_visible()
    assert page.evaluate("document.activeElement.className") == "tl-guess"
    page.keyboard.press("r")
    assert page.locator(".tl-guess").is_visible(), "what is known stays known"


def test_a_right_guess_is_told_so_and_the_keyboard_is_enough(opened: Open) -> None:
    page = opened(predict="step")
    assert "One step, in the order in which the host issues it" in page.locator(".tl-listing").inner_text()
    assert page.locator(".tl-fig").is_hidden(), "a picture with times would answer"
    page.get_by_role("radio", name="As long as the longer").focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    told = page.locator(".tl-guess").inner_text()
    assert told == "You predicted As long as both together: they take turns. That is so."
    assert page.locator(".tl-op").count() > 10


def test_a_link_carries_the_guess(opened: Open) -> None:
    page = opened(predict=True)
    page.get_by_role("radio", name="D2H may read").check()
    page.get_by_role("button", name=GUESS).click()
    again = opened(hash_of(page, "guess="), predict=True)
    assert again.locator(".tl-guess").inner_text() == page.locator(".tl-guess").inner_text()


# ── fences off and moved ──
def test_turning_the_fence_off_shows_the_race_and_undo_takes_it_back(opened: Open) -> None:
    page = opened("#verify_done.variant=wait")
    take(page, "wait(verify_done) on schedule")
    page.get_by_role("button", name="Turn off").click()
    assert sentence(page).startswith("wait, changed: a race.")
    assert "compared with" in page.locator(".tl-fig svg").text_content()
    assert page.locator("tbody th").all_inner_texts() == ["none", "synchronize", "wait, changed", "wait, as given"]
    page.get_by_role("button", name="Undo the last change").click()
    assert sentence(page).startswith("wait: safe.")
    assert page.locator("tbody th").all_inner_texts() == ["none", "synchronize", "wait"]


def test_a_fence_is_moved_by_keys_and_says_where_it_stands(opened: Open) -> None:
    page = opened()
    take(page, "synchronize(verify_done)")
    assert "before prepare of step 2" in page.locator(".tl-where").inner_text()
    was = page.locator("tr.on td").first.inner_text()
    page.locator(".tl").focus()
    page.keyboard.press(".")
    assert "after prepare of step 2" in page.locator(".tl-where").inner_text()
    assert page.locator("tr.on td").first.inner_text() != was
    page.keyboard.press(",")
    assert sentence(page).startswith("synchronize: safe.")
    page.keyboard.press("o")
    assert sentence(page).startswith("synchronize, changed: a race.")
    page.keyboard.press("u")
    assert sentence(page).startswith("synchronize: safe.")


def test_a_fence_is_dragged_by_its_sign_or_its_bar(opened: Open) -> None:
    page = opened("#verify_done.variant=wait")
    take(page, "wait(verify_done) on schedule")
    sign = page.locator(".handle.on").first.bounding_box()
    assert sign is not None
    x, y = sign["x"] + sign["width"] / 2, sign["y"] + sign["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=5)
    assert "wait(verify_done) on schedule is issued later" in sentence(page)
    page.mouse.up()
    assert "a race" in sentence(page)
    page.get_by_role("radio", name="synchronize").check()
    bar = page.locator('.tl-op[aria-label^="host blocked: verify_done 0"] .f').bounding_box()
    assert bar is not None
    page.mouse.move(bar["x"] + 8, bar["y"] + 8)
    page.mouse.down()
    page.mouse.move(bar["x"] + bar["width"] + 80, bar["y"] + 8, steps=5)
    page.mouse.up()
    assert "synchronize(verify_done) is issued later" in sentence(page)


def test_only_one_step_can_be_changed(opened: Open) -> None:
    page = opened("#verify_done.variant=wait")
    take(page, "wait(verify_done) on schedule")
    page.get_by_label("Where", exact=True).select_option(label="only step 3")
    page.get_by_role("button", name="Turn off").click()
    assert "in each step" not in sentence(page)
    assert page.get_by_label("Where", exact=True).locator("option", has_text="off").all_inner_texts() == [
        "only step 3: off"
    ]


def test_a_missing_fence_can_be_added_to_a_plain_program(visit: Visit, site: Path, verify_done: dict[str, Any]) -> None:
    racy = next(v["program"] for v in verify_done["variants"] if v["id"] == "none")
    (site / "plain.html").write_text(one_file(racy), encoding="utf-8")
    page = visit("plain.html").page
    assert sentence(page).startswith("A race.")
    assert page.locator("table").is_hidden()
    page.get_by_role("button", name="Is forward 1 before gather 2?").click()
    page.get_by_role("button", name="Add the missing fence").click()
    assert sentence(page).startswith("Changed: safe.")
    assert page.locator("tbody th").all_inner_texts() == ["changed", "as given"]
    assert [int(cell) for cell in page.locator("tbody td:last-child").all_inner_texts()] == [0, 1]


# ── the state in the address ──
def test_what_was_chosen_comes_back_from_the_address(opened: Open) -> None:
    page = opened()
    page.get_by_role("radio", name="none").check()
    page.get_by_label("host work").fill("1500")
    op(page, "forward 1").click()
    op(page, "gather 1").click()
    page.get_by_role("button", name="Zoom in").click()
    again = opened(hash_of(page, "view="))
    for place in (".tl-say", ".tl-ans", "table", ".tl-time output"):
        assert again.locator(place).inner_text() == page.locator(place).inner_text(), place
    assert again.get_by_label("host work").input_value() == "1500"
    assert op(again, "forward 1").get_attribute("transform") == op(page, "forward 1").get_attribute("transform")


def test_edits_and_the_forced_order_come_back_and_reset_clears_the_address(opened: Open) -> None:
    page = opened("#section&verify_done.variant=wait")
    take(page, "wait(verify_done) on schedule")
    page.get_by_role("button", name="Turn off").click()
    page.get_by_role("button", name="Force the bad order").click()
    again = opened(hash_of(page, "forced="))
    assert sentence(again) == sentence(page)
    assert "gather 2 found lengths of step 0" in again.locator(".tl-ans").inner_text()
    again.get_by_role("button", name="Reset").click()
    again.wait_for_function("location.hash === '#section'")


def test_back_leaves_the_page_whatever_was_toggled(opened: Open) -> None:
    page = opened()
    before = page.evaluate("history.length")
    for name in ("none", "wait", "synchronize", "none"):
        page.get_by_role("radio", name=name).check()
    hash_of(page, "variant=none")
    assert page.evaluate("history.length") == before


@pytest.mark.parametrize(
    "junk",
    ["#verify_done.variant=nope&verify_done.us=host-x&verify_done.fences=9999x", "#%zz&&=&verify_done.=", "#a.b.c=1"],
)
def test_a_malformed_address_is_passed_over(opened: Open, junk: str) -> None:
    assert sentence(opened(junk)).startswith("synchronize: safe.")


def test_timelines_of_one_page_do_not_share_a_state(visit: Visit, site: Path, verify_done: dict[str, Any]) -> None:
    text = (site / "saved.html").read_text(encoding="utf-8")
    spec = json.dumps(verify_done)
    twice = text.replace("</main>", f'<script type="application/json" class="timeline-spec">{spec}</script></main>')
    (site / "twice.html").write_text(twice, encoding="utf-8")
    seen = visit("twice.html")
    seen.page.locator(".tl").last.get_by_role("radio", name="none").check()
    assert "verify_done-2.variant=none" in hash_of(seen.page, "variant")
    seen.page.reload()
    seen.page.wait_for_selector("html[data-widgets=live]")
    said = seen.page.locator(".tl-say").all_inner_texts()
    assert [words.split(":")[0] for words in said] == ["synchronize", "No fence"]
    assert seen.wrong == []


def test_a_link_in_the_page_moves_the_timeline(visit: Visit) -> None:
    page = visit("saved.html").page
    page.evaluate("location.hash = '#verify_done.variant=wait'")
    page.wait_for_function("document.querySelector('.tl-say').textContent.startsWith('wait: safe.')")


def test_the_link_is_copied_or_shown(opened: Open) -> None:
    page = opened("#verify_done.variant=wait")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_function("/link/.test(document.querySelector('.tl-ans').textContent)")


def test_in_a_notebook_the_address_is_not_ours(visit: Visit) -> None:
    page = visit("anywidget.html").page
    page.get_by_role("radio", name="none").check()
    at_rest(page, 600)
    assert page.evaluate("location.hash") == ""
    assert page.get_by_role("button", name="Copy link").count() == 0


# ── why it waits ──
def test_every_gap_tells_its_cause_by_key_and_under_the_pointer(opened: Open) -> None:
    page = opened("#verify_done.variant=wait")
    op(page, "forward 0").focus()
    told = []
    for _ in range(60):
        page.keyboard.press("w")
        told.append(page.locator(".tl-ans").inner_text())
    for cause in ("Host late", "It waits for verify_done", "Drained: nothing more comes"):
        assert any(cause in answer for answer in told), cause
    assert len(set(told)) > 10
    band = page.locator(".tl-fig svg rect[rx='5'][fill*='plan'], .tl-fig svg rect[fill*='schedule']").first
    box = band.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 4, box["y"] + box["height"] / 2)
    assert "schedule idle" in page.locator(".tl-card.on").inner_text()


def test_work_that_waited_for_its_own_stream_says_so_with_its_step(opened: Open) -> None:
    page = opened("#verify_done.variant=none")
    op(page, "forward 2").hover()
    told = page.locator(".tl-card.on").inner_text()
    assert "same stream busy (forward)" in told
    assert "step\n2" in told or "step 2" in told.replace("\n", " ")


# ── looks ──
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_question_and_fences_are_accessible_and_fit(opened: Open, width: int, scheme: str) -> None:
    page = opened(width=width, scheme=scheme, predict=True)

    def check(state: str) -> None:
        found = Axe().run(page).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"][:120]) for v in found] == [], state
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, state

    check("asked")
    page.get_by_role("radio", name="No: every pair").check()
    page.get_by_role("button", name=GUESS).click()
    take(page, "synchronize(verify_done)")
    page.get_by_role("button", name="Turn off").click()
    check("changed")
    page.get_by_role("button", name="Is forward 1 before gather 2?").click()
    check("unordered")


@pytest.mark.parametrize("width", [320, 390, 620, 690, 900, 1280])
def test_a_long_name_never_runs_into_its_numbers(opened: Open, verify_done: dict[str, Any], width: int) -> None:
    names = ["before #29556 on the other platform", "#30435-hip-without-a-single-space-anywhere", "wait"]
    variants = [{**v, "label": n} for v, n in zip(verify_done["variants"], names, strict=True)]
    page = opened(width=width, variants=variants)
    overlaps = page.evaluate("""() => {
      const range = document.createRange();
      const box = (el) => { range.selectNodeContents(el); return range.getBoundingClientRect(); };
      const near = ([a, b]) => box(a).right - box(b).left > 0 && `${a.textContent} runs into ${b.textContent}`;
      return [...document.querySelectorAll("table tr")].flatMap((row) => {
        const cells = [...row.children].filter((el) => el.offsetWidth);
        return cells.slice(1).map((cell, k) => near([cells[k], cell])).filter(Boolean);
      });
    }""")
    assert overlaps == []


def test_in_print_the_question_stands_without_its_answer(opened: Open) -> None:
    page = opened(predict=True, initial="none")
    page.emulate_media(media="print")
    assert page.get_by_text("is there a race?").is_visible()
    assert not page.get_by_role("button", name=GUESS).is_visible()
    assert "RAW" not in page.locator("main").inner_text()
