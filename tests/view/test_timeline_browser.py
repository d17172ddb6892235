"""The timeline in a real browser: every gesture by mouse and keyboard, laptop and phone, over HTTP and from disk."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page

from tests.book.conftest import Watched

pytestmark = pytest.mark.browser
Visit = Callable[..., Watched]


def sentence(page: Page) -> str:
    return page.locator(".tl-say").first.inner_text()


def drawn(page: Page) -> str:
    return page.locator(".tl-fig svg").first.text_content() or ""


def op(page: Page, name: str) -> Locator:
    return page.locator(f'.tl-op[aria-label^="{name} on "]').first


def center(place: Locator) -> tuple[float, float]:
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def now(page: Page) -> float:
    return float(page.get_by_label("Time", exact=True).first.input_value())


@pytest.mark.parametrize("disk", [False, True], ids=["http", "file"])
@pytest.mark.parametrize("name", ["saved.html", "one-file.html"])
def test_it_is_live_over_http_and_from_disk_and_asks_nobody(visit: Visit, name: str, disk: bool) -> None:
    seen = visit(name, disk=disk)
    assert seen.page.locator(".tl-op").count() > 10
    assert sentence(seen.page).startswith("synchronize: safe.")
    assert seen.wrong == []


def test_anywidget_gets_one_module_that_draws_redraws_and_lets_go(visit: Visit) -> None:
    seen = visit("anywidget.html")
    assert seen.page.locator(".tl-op").count() > 10
    seen.page.evaluate("values.spec = { ...values.spec, initial: 'wait' }; heard['change:spec']()")
    assert sentence(seen.page).startswith("wait: safe.")
    assert seen.page.locator(".tl").count() == 1
    seen.page.evaluate("stop()")
    assert seen.page.locator(".tl").count() == 0
    assert seen.wrong == []


def test_the_picture_gives_way_and_a_foreign_widget_is_one_sentence(visit: Visit) -> None:
    page = visit("saved.html").page
    assert not page.locator(".timeline-fallback").is_visible()
    assert page.get_by_text("This widget needs a running notebook").is_visible()


def test_without_scripts_the_picture_is_there_with_its_words(visit: Visit) -> None:
    page = visit("saved.html", java_script_enabled=False).page
    assert page.locator(".timeline-fallback svg").is_visible()
    assert "No hazard" in page.locator(".timeline-fallback svg desc").text_content()


def test_toggling_the_fence_moves_the_lanes_and_the_verdict(visit: Visit) -> None:
    seen = visit("saved.html")
    before = op(seen.page, "gather 1").bounding_box()
    seen.page.get_by_role("radio", name="none").check()
    assert sentence(seen.page).startswith("No fence: a race.")
    assert "RAW new_seq_lens" in drawn(seen.page)
    assert op(seen.page, "gather 1").bounding_box() != before
    seen.page.keyboard.press("ArrowRight")
    seen.page.keyboard.press("ArrowRight")
    assert sentence(seen.page).startswith("wait: safe.")
    assert seen.page.locator(".pill").count() == 0
    assert seen.wrong == []


def test_a_slider_changes_every_step(visit: Visit) -> None:
    page = visit("saved.html").page
    was = page.locator("tr.on td").first.inner_text()
    page.get_by_label("host work").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert page.get_by_label("host work").input_value() == "1200"
    assert page.locator("tr.on td").first.inner_text() != was


def test_dragging_a_blocks_edge_changes_its_duration(visit: Visit) -> None:
    seen = visit("saved.html")
    block = op(seen.page, "gather 1")
    box = block.locator(".f").bounding_box()
    assert box is not None
    seen.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + box["width"] + 60, box["y"] + box["height"] / 2, steps=4)
    seen.page.mouse.up()
    assert block.locator(".f").bounding_box()["width"] > box["width"] + 40
    assert seen.page.locator("tr.on td").first.inner_text() != "3.69 ms"
    assert seen.wrong == []


def test_a_blocks_edge_is_above_hazards_and_neighbours_on_both_of_its_sides(visit: Visit) -> None:
    page = visit("saved.html").page
    page.get_by_role("radio", name="none").check()
    box = op(page, "forward 0").locator(".f").bounding_box()
    following = op(page, "forward 1").locator(".f").bounding_box()
    assert box is not None
    assert following is not None
    end = box["x"] + box["width"]
    assert abs(following["x"] - end) < 3, "the next block begins where this one ends"
    top = "([x, y]) => document.elementFromPoint(x, y).getAttribute('class')"
    for dx in (-4, 4):
        assert page.evaluate(top, [end + dx, box["y"] + 8]) == "grip", dx
    assert page.evaluate(top, [end + 12, box["y"] + 8]) != "grip"
    page.mouse.move(end + 3, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(end + 63, box["y"] + 8, steps=4)
    assert op(page, "forward 0").locator(".f").bounding_box()["width"] > box["width"] + 40
    page.mouse.up()


def test_two_clicks_ask_for_the_order_and_get_the_path(visit: Visit) -> None:
    page = visit("saved.html").page
    op(page, "forward 0").click()
    assert "forward 0 picked" in page.locator(".tl-ans").inner_text()
    op(page, "gather 1").click()
    answer = page.locator(".tl-ans").inner_text()
    assert "forward 0 happens before gather 1" in answer
    assert "the host blocks until verify_done 0 has passed" in answer
    assert page.locator(".badge").count() == page.locator(".tl-ans li").count()


def test_unordered_ops_are_told_with_the_bytes_at_stake(visit: Visit) -> None:
    page = visit("saved.html").page
    page.get_by_role("radio", name="none").check()
    page.get_by_role("button", name="Is forward 1 before gather 2?").click()
    answer = page.locator(".tl-ans").inner_text()
    assert "unordered" in answer
    assert "RAW on new_seq_lens[0:64]" in answer


def test_f_forces_the_bad_order_and_shows_the_stale_value_and_r_resets(visit: Visit) -> None:
    seen = visit("saved.html")
    seen.page.get_by_role("radio", name="none").check()
    seen.page.keyboard.press("f")
    picture = drawn(seen.page)
    assert "reads lengths of step 0" in picture
    assert "should be lengths of step 1" in picture
    assert "gather 2 found lengths of step 0" in seen.page.locator(".tl-ans").inner_text()
    assert seen.page.get_by_role("button", name="Back to the timed order").is_visible()
    seen.page.keyboard.press("r")
    assert sentence(seen.page).startswith("synchronize: safe.")
    assert seen.page.get_by_role("button", name="Force the bad order").is_disabled()
    assert seen.wrong == []


def test_keys_work_under_the_pointer_and_leave_the_rest_of_the_page_alone(visit: Visit) -> None:
    page = visit("saved.html").page
    page.get_by_role("radio", name="none").check()
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(2, 2)
    page.keyboard.press("f")
    assert "should be" not in drawn(page)
    page.mouse.move(*center(page.locator(".tl-fig").first))
    page.keyboard.press("f")
    assert "should be lengths of step 1" in drawn(page)
    page.evaluate("document.querySelector('h1').insertAdjacentHTML('afterend', '<input id=else aria-label=else>')")
    page.locator("#else").focus()
    page.mouse.move(*center(page.locator(".tl-fig").first))
    page.keyboard.press("f")
    assert page.locator("#else").input_value() == "f"
    assert "should be lengths of step 1" in drawn(page)


def test_f_says_that_nothing_races_where_nothing_does(visit: Visit) -> None:
    page = visit("saved.html").page
    told = "No race here: every order that the rules allow gives the same values."
    assert page.get_by_role("button", name="Force the bad order").get_attribute("title") == told
    page.get_by_role("radio", name="synchronize").focus()
    page.keyboard.press("f")
    assert page.locator(".tl-ans").inner_text() == told
    page.get_by_role("radio", name="none").check()
    assert told not in page.locator(".tl-ans").inner_text()


def test_f_does_not_claim_a_delay_for_what_goes_wrong_as_timed(visit: Visit) -> None:
    page = visit("saved.html").page
    page.get_by_role("radio", name="none").check()
    assert "In this run it goes wrong." in sentence(page)
    page.keyboard.press("f")
    assert "In this run it goes wrong." in sentence(page)
    assert "No delay was needed: it happens in the timed order." in page.locator(".tl-ans").inner_text()
    assert "stalled" not in drawn(page)


@pytest.mark.parametrize("width", [320, 358, 690, 1152])
def test_nothing_sticks_out_and_the_thumb_stands_under_its_time(visit: Visit, width: int) -> None:
    page = visit("saved.html").page
    page.add_style_tag(content=f"main {{ width: {width}px }}")
    page.wait_for_function("(w) => document.querySelector('.tl svg').viewBox.baseVal.width === w", arg=width)
    stray = """() => {
      const frame = document.querySelector(".tl").getBoundingClientRect();
      const out = (box) => box.width && (box.left < frame.left - 0.5 || box.right > frame.right + 0.5);
      const shown = [...document.querySelectorAll(".tl *")].filter((el) => !el.closest("svg, .tl-sr, dialog"));
      return shown.filter((el) => out(el.getBoundingClientRect())).map((el) => el.outerHTML.slice(0, 80));
    }"""
    assert page.evaluate(stray) == []
    tops = page.locator(".tl-bar input[type=range]").evaluate_all("(els) => els.map((el) => el.offsetTop)")
    assert len(set(tops)) == 1, "the sliders share a row"
    scrub = page.get_by_label("Time", exact=True)
    for value in (0, 400, 1000):
        scrub.fill(str(value))
        box = scrub.bounding_box()
        assert box is not None
        line = page.locator(".tl svg path.ink").last.bounding_box()
        assert line is not None
        thumb = box["x"] + 8 + (box["width"] - 16) * value / 1000
        assert line["x"] + line["width"] / 2 == pytest.approx(thumb, abs=1.5), value


def test_the_difference_says_what_it_compares_with(visit: Visit) -> None:
    page = visit("saved.html").page
    assert "compared with" in drawn(page)
    assert "was:" not in drawn(page)


def test_arrows_step_enter_picks_brackets_change_a_duration(visit: Visit) -> None:
    page = visit("saved.html").page
    op(page, "forward 0").focus()
    page.keyboard.press("ArrowRight")
    at = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert not at.startswith("forward 0")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") != at
    op(page, "gather 1").focus()
    page.keyboard.press("Enter")
    assert "gather 1 picked" in page.locator(".tl-ans").inner_text()
    was = op(page, "gather 1").get_attribute("aria-label")
    page.keyboard.press("]")
    assert op(page, "gather 1").get_attribute("aria-label") != was


def test_the_step_buttons_and_the_scrubber_move_the_time(visit: Visit) -> None:
    page = visit("saved.html").page
    start = now(page)
    page.get_by_role("button", name="Step forward").click()
    forward = now(page)
    assert forward > start
    page.get_by_role("button", name="Step back").click()
    assert now(page) < forward
    page.get_by_label("Time", exact=True).fill("900")
    assert now(page) == 900


def test_it_zooms_by_buttons_keys_and_wheel_and_pans_by_drag(visit: Visit) -> None:
    seen = visit("saved.html")

    def width() -> float:
        return float(op(seen.page, "forward 1").locator(".f").get_attribute("width"))

    at_rest = width()
    seen.page.get_by_role("button", name="Zoom in").click()
    assert width() == pytest.approx(2 * at_rest, rel=0.02)
    seen.page.keyboard.press("-")
    assert width() == pytest.approx(at_rest, rel=0.02)
    seen.page.mouse.move(*center(op(seen.page, "forward 1")))
    seen.page.keyboard.down("Control")
    seen.page.mouse.wheel(0, -140)
    seen.page.keyboard.up("Control")
    assert width() > 1.5 * at_rest
    left = op(seen.page, "forward 1").get_attribute("transform")
    x, y = center(seen.page.locator(".tl svg").first)
    seen.page.mouse.move(x, y + 60)
    seen.page.mouse.down()
    seen.page.mouse.move(x - 90, y + 60, steps=3)
    seen.page.mouse.up()
    assert op(seen.page, "forward 1").get_attribute("transform") != left
    seen.page.keyboard.press("0")
    assert width() == pytest.approx(at_rest, rel=0.02)
    assert seen.wrong == []


def test_two_fingers_zoom_on_a_phone_and_pick_nothing(visit: Visit) -> None:
    seen = visit("saved.html", size="phone", has_touch=True)
    block = op(seen.page, "forward 1").locator(".f")
    block.scroll_into_view_if_needed()
    was = float(block.get_attribute("width") or 0)
    x, y = center(seen.page.locator(".tl-fig svg").first)
    touch = seen.page.context.new_cdp_session(seen.page)

    def fingers(kind: str, apart: float) -> None:
        points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}] if apart else []
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", 30)
    for apart in (40, 50, 60):
        fingers("touchMove", apart)
    fingers("touchEnd", 0)
    assert float(block.get_attribute("width") or 0) > 1.5 * was
    assert "picked" not in seen.page.locator(".tl-ans").inner_text()
    assert seen.wrong == []


def test_a_lane_that_only_one_variant_uses_is_there_in_all(visit: Visit) -> None:
    seen = visit("lanes.html")
    assert "plan" in drawn(seen.page)
    seen.page.get_by_role("radio", name="planned").check()
    assert seen.page.locator('.tl-op[aria-label^="alloc on plan"]').count() == 1
    assert seen.wrong == []


def test_a_block_is_always_within_reach_of_tab(visit: Visit) -> None:
    page = visit("saved.html").page
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
        assert page.locator(".tl-op[tabindex='0']").count() == 1
    page.get_by_label("Time", exact=True).fill("1000")
    page.get_by_role("button", name="Zoom in").click()
    assert page.locator(".tl-op[tabindex='0']").count() == 1


def test_hover_tells_ranges_call_site_and_what_it_waited_for(visit: Visit) -> None:
    page = visit("saved.html").page
    op(page, "gather 1").hover()
    told = page.locator(".tl-card.on").inner_text()
    for text in ("new_seq_lens[0:64]", "loop.py:", "waited for"):
        assert text in told


def test_help_opens_with_a_key_and_closes_with_another(visit: Visit) -> None:
    page = visit("saved.html").page
    page.get_by_label("Time", exact=True).focus()
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()


def test_the_same_is_there_in_words(visit: Visit) -> None:
    page = visit("saved.html").page
    page.get_by_text("The same in words").click()
    page.locator(".tl-words", has_text="host: blocked").wait_for()  # written once the browser tells of it
    told = page.locator(".tl-words").inner_text()
    assert "No hazard: every conflicting pair is ordered." in told


@pytest.mark.parametrize("size", ["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_fits_in_every_look(visit: Visit, size: str, scheme: str) -> None:
    seen = visit("saved.html", size=size, color_scheme=scheme)
    for state in ("at rest", "racy", "forced"):
        if state == "racy":
            seen.page.get_by_role("radio", name="none").check()
        if state == "forced":
            seen.page.keyboard.press("f")
        found = Axe().run(seen.page).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"][:120]) for v in found] == [], state
        assert seen.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, state
    assert seen.wrong == []


def test_motion_is_only_for_those_who_want_it(visit: Visit) -> None:
    page = visit("saved.html", reduced_motion="no-preference").page
    start = page.locator('.tl-op[aria-label^="forward 2 on "]').get_attribute("transform")
    page.get_by_role("radio", name="none").check()
    page.wait_for_function(
        "([was]) => document.querySelector('.tl-op[aria-label^=\"forward 2 on \"]').getAttribute('transform') !== was",
        arg=[start],
    )
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_selector(".pill")
    assert sentence(page).startswith("No fence: a race.")
    assert float(op(page, "forward 0").locator(".f").get_attribute("width") or 0) > 400


def test_every_program_of_the_catalogue_is_drawn(visit: Visit) -> None:
    seen = visit("cases.html")
    assert seen.page.locator(".tl > .tl-fig > svg").count() >= 129
    assert seen.wrong == []
