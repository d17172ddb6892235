"""A recorded run in a real browser: every gesture by mouse, touch and keyboard, laptop and phone, HTTP and disk."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.book.conftest import Watched
from tests.view.rest import at_rest
from tests.view.run_pages import SPANS, write_pages

pytestmark = pytest.mark.browser
Visit = Callable[..., Watched]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages under test."""
    return write_pages(tmp_path_factory.mktemp("runs"))


def label(page: Page) -> str:
    """What the picture is called: it says the window."""
    at_rest(page, 210)  # words follow the window when it has come to rest
    return page.locator(".rn-fig").first.get_attribute("aria-label") or ""


def window(page: Page) -> tuple[float, float]:
    """From where to where the picture shows, in milliseconds."""
    found = re.search(r"From ([\d.\u202f]+) ms to ([\d.\u202f]+) ms", label(page))
    assert found is not None
    start, end = (float(text.replace("\u202f", "")) for text in found.groups())
    return start, end


def spoken(page: Page) -> str:
    return page.locator("[role=status]").first.inner_text()


def press(page: Page, *keys: str) -> None:
    page.locator(".rn-fig").first.focus()
    for key in keys:
        page.keyboard.press(key)


def box(page: Page, selector: str) -> dict[str, float]:
    found = page.locator(selector).first.bounding_box()
    assert found is not None
    return dict(found)


@pytest.mark.parametrize("disk", [False, True], ids=["http", "file"])
@pytest.mark.parametrize("name", ["saved.html", "run.html", "anywidget.html"])
def test_it_is_live_over_http_and_from_disk_and_asks_nobody(visit: Visit, name: str, disk: bool) -> None:
    seen = visit(name, disk=disk)
    seen.page.wait_for_selector(".rn-fig")
    assert seen.page.locator(".tl-say").first.inner_text().startswith(f"{SPANS:,} spans in ")
    assert seen.wrong == []


def test_the_picture_gives_way_to_the_view_and_stays_without_scripts(visit: Visit) -> None:
    assert not visit("saved.html").page.locator(".timeline-fallback").is_visible()
    still = visit("saved.html", java_script_enabled=False).page
    assert still.locator(".timeline-fallback svg").is_visible()
    assert "Lanes: host" in (still.locator("desc").text_content() or "")


def test_an_anywidget_redraws_for_another_run_and_lets_go(visit: Visit) -> None:
    seen = visit("anywidget.html")
    seen.page.evaluate("values.spec = { ...values.spec, title: 'Another' }; heard['change:spec']()")
    assert label(seen.page).startswith("Another.")
    assert seen.page.locator(".rn").count() == 1
    seen.page.evaluate("stop()")
    assert seen.page.locator(".rn").count() == 0
    assert seen.wrong == []


def test_what_is_no_run_is_one_sentence(visit: Visit) -> None:
    seen = visit("bad.html")
    seen.page.wait_for_function("document.querySelectorAll('[role=alert]').length === 2")
    first, second = seen.page.locator("[role=alert]").all_inner_texts()
    assert first == "This is no recorded run: its schema is not trace/1."
    assert second.startswith("The run cannot be opened: ")


def test_keys_zoom_and_move_the_window(visit: Visit) -> None:
    seen = visit("run.html")
    page = seen.page
    start, end = window(page)
    press(page, "+", "+")
    nearer = window(page)
    assert nearer[1] - nearer[0] == pytest.approx((end - start) / 4, rel=0.02)
    press(page, "ArrowRight")
    moved = window(page)
    assert moved[0] > nearer[0]
    assert moved[1] - moved[0] == pytest.approx(nearer[1] - nearer[0], rel=0.02)
    press(page, "Home")
    assert window(page)[0] == start
    press(page, "End")
    assert window(page)[1] == pytest.approx(end, rel=0.001)
    press(page, "0")
    assert window(page) == (start, end)
    assert seen.wrong == []


def test_ctrl_and_wheel_zoom_shift_and_wheel_move_and_the_wheel_alone_is_the_pages(visit: Visit) -> None:
    page = visit("run.html").page
    whole = window(page)
    place = box(page, ".rn-fig canvas")
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + 60)
    page.mouse.wheel(0, -200)
    assert window(page) == whole
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    near = window(page)
    assert near[1] - near[0] < (whole[1] - whole[0]) / 2
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 200)
    page.keyboard.up("Shift")
    assert window(page)[0] > near[0]


def test_a_drag_moves_the_picture_and_the_strip_moves_the_window(visit: Visit) -> None:
    page = visit("run.html").page
    press(page, "+", "+", "+")
    before = window(page)
    place = box(page, ".rn-fig canvas")
    page.mouse.move(place["x"] + 600, place["y"] + 60)
    page.mouse.down()
    page.mouse.move(place["x"] + 500, place["y"] + 60, steps=4)
    page.mouse.up()
    dragged = window(page)
    assert dragged[0] > before[0]
    strip = box(page, ".rn-over")
    page.mouse.click(strip["x"] + strip["width"] - 40, strip["y"] + 20)
    at_end = window(page)
    assert at_end[0] > dragged[1]
    assert at_end[1] - at_end[0] == pytest.approx(before[1] - before[0], rel=0.02)


def test_two_fingers_zoom(visit: Visit) -> None:
    page = visit("run.html", size="phone", has_touch=True).page
    whole = window(page)
    place = box(page, ".rn-fig canvas")
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, apart: float) -> None:
        middle, y = place["x"] + 180, place["y"] + 60
        points = (
            []
            if kind == "touchEnd"
            else [{"x": middle - apart, "y": y, "id": 0}, {"x": middle + apart, "y": y, "id": 1}]
        )
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", 20)
    for apart in (30, 50, 80):
        fingers("touchMove", apart)
    fingers("touchEnd", 0)
    pinched = window(page)
    assert pinched[1] - pinched[0] < (whole[1] - whole[0]) / 2


def test_search_counts_goes_to_matches_and_says_so(visit: Visit) -> None:
    seen = visit("run.html")
    page = seen.page
    press(page, "/")
    page.keyboard.type("ATTENTION")
    count = int(page.locator(".rn-count").inner_text().replace(",", ""))
    assert count > 100
    page.keyboard.press("Enter")
    assert spoken(page).startswith(f"1 of {count:,}: attention, forward")
    page.keyboard.press("Enter")
    assert spoken(page).startswith("2 of ")
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    assert spoken(page).startswith(f"{count:,} of ")
    page.get_by_label("Search").fill("no such thing")
    assert spoken(page) == "0 spans match"
    page.keyboard.press("Escape")
    assert page.get_by_label("Search").input_value() == ""
    assert seen.wrong == []


def test_calls_are_found_by_their_own_name(visit: Visit) -> None:
    page = visit("run.html").page
    page.get_by_label("Search").fill("cudaEventSynchronize")
    page.keyboard.press("Enter")
    assert ", held" in spoken(page)


def test_from_span_to_span_by_keyboard(visit: Visit) -> None:
    page = visit("run.html").page
    press(page, "ArrowDown")
    assert ", host" in spoken(page)
    press(page, "ArrowDown", "ArrowDown", "ArrowDown")
    assert ", schedule" in spoken(page)
    name = spoken(page).split(" ")[0]
    press(page, "n")
    first = spoken(page)
    assert first.startswith(name)
    press(page, "n", "p")
    assert spoken(page) == first
    press(page, "Shift+ArrowRight")
    assert ", schedule" in spoken(page)
    assert spoken(page) != first


def test_a_gap_says_why(visit: Visit) -> None:
    page = visit("run.html").page
    press(page, "g")
    answer = page.locator(".tl-ans").inner_text()
    assert re.match(r"\w+ idle for [\d.]+ [mµ]s: .*(host late|waits|launch|queued)", answer), answer


def test_two_picks_are_measured_and_escape_lets_go(visit: Visit) -> None:
    page = visit("run.html").page
    press(page, "ArrowDown", "Enter")
    assert "Pick a second span" in page.locator(".tl-ans").inner_text()
    press(page, "n", "Enter")
    assert "From the end of" in page.locator(".tl-ans").inner_text()
    press(page, "Escape")
    assert "Pick a span to see" in page.locator(".tl-ans").inner_text()


def test_the_card_tells_span_call_and_launch(visit: Visit) -> None:
    page = visit("run.html").page
    press(page, "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "z")
    card = page.locator(".tl-card")
    assert card.is_visible()
    for part in ("duration", "start", "submitted", "launch lead"):
        assert part in card.inner_text()
    place = box(page, ".rn-fig canvas")
    page.mouse.move(place["x"] + 140, place["y"] + 400)
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + 30)
    assert "host" in card.inner_text()


def test_steps_fold_and_one_of_them_opens(visit: Visit) -> None:
    seen = visit("run.html")
    page = seen.page
    press(page, "f")
    assert "steps laid over one another" in label(page)
    page.locator(".rn-step input").focus()
    page.keyboard.press("Home")
    assert page.locator(".rn-step output").inner_text().startswith("0 · ")
    page.keyboard.press("ArrowRight")
    assert page.locator(".rn-step output").inner_text().startswith("1 · ")
    page.get_by_role("button", name="Open this step").click()
    start, end = window(page)
    assert 0 < end - start < 20
    assert page.get_by_role("button", name="Fold steps").is_visible()
    assert seen.wrong == []


def test_without_recorded_steps_the_reader_names_the_op(visit: Visit) -> None:
    page = visit("bare.html").page
    assert page.get_by_role("button", name="Fold steps").is_disabled()
    press(page, "f")
    assert spoken(page) == "Choose the op that a step begins with."
    page.get_by_label("A step begins with").select_option("prepare")
    assert "steps laid over one another" in label(page)
    assert "whole steps" in page.locator(".tl-say").inner_text()


def test_two_runs_stand_on_one_axis_with_their_differences(visit: Visit) -> None:
    seen = visit("pair.html")
    rows = [row.inner_text().split("\t") for row in seen.page.locator("tbody tr").all()]
    assert [row[0].strip() for row in rows] == ["before", "after", "difference"]
    assert rows[2][1].strip().startswith("−"), "the step is shorter without the synchronize"
    assert rows[2][2].strip().startswith("−"), "and the host is held for less of it"
    assert "steps laid over one another" in label(seen.page)
    press(seen.page, "f")
    assert label(seen.page).startswith("The loop. From ")
    assert seen.wrong == []


def test_the_list_holds_a_few_lines_and_moves_by_keyboard(visit: Visit) -> None:
    page = visit("run.html").page
    page.get_by_text("Spans in the window, as a list").click()
    spans = page.get_by_role("listbox")
    spans.focus()
    assert spans.get_by_role("option").count() <= 9
    assert spans.get_by_role("option").first.get_attribute("aria-setsize") == str(SPANS)
    first = spans.get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowDown")
    second = spans.get_attribute("aria-activedescendant")
    assert second != first
    line = page.locator(f"#{second}")
    assert spoken(page) == line.inner_text()
    page.keyboard.press("Enter")
    assert page.locator(".rn-list [aria-selected=true]").count() == 1
    page.keyboard.press("End")
    assert page.locator(f"#{spans.get_attribute('aria-activedescendant')}").get_attribute("aria-posinset") == str(SPANS)


def test_the_summary_is_there_in_words(visit: Visit) -> None:
    page = visit("run.html").page
    page.get_by_text("The same in words").click()
    told = page.locator(".rn-words", has_text="Lanes, top to bottom:").inner_text()
    for part in ("forward: ", "Calls that hold the host longest:", "Longest stretches"):
        assert part in told


def test_the_address_keeps_each_views_state_apart_and_brings_it_back(visit: Visit) -> None:
    seen = visit("two.html")
    page = seen.page
    press(page, "+", "+", "+")
    page.locator("input[type=search]").nth(1).fill("attention")
    at_rest(page, 210)
    at_rest(page, 260)  # the address is written when the window has rested
    address = page.evaluate("location.hash")
    assert "loop.w=" in address
    assert "loop-2.q=attention" in address
    was = window(page)
    page.reload()
    page.wait_for_selector("html[data-widgets=live]")
    assert window(page) == was
    assert page.locator("input[type=search]").nth(1).input_value() == "attention"
    assert page.locator("input[type=search]").nth(0).input_value() == ""
    page.goto("about:blank")
    page.goto(f"{seen.base}/two.html#loop.w=%%%&loop.pick=9.9~x&loop-2.step=-4&other")
    page.wait_for_selector("html[data-widgets=live]")
    assert window(page)[0] == 0
    assert seen.wrong == []


@pytest.mark.parametrize("size", ["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["run.html", "pair.html"])
def test_it_is_accessible_and_fits_in_every_look(visit: Visit, name: str, size: str, scheme: str) -> None:
    seen = visit(name, size=size, color_scheme=scheme)
    for state in ("at rest", "folded", "found", "open"):
        if state == "folded":
            press(seen.page, "f")
        if state == "found":
            seen.page.get_by_label("Search").fill("attention")
        if state == "open":
            seen.page.get_by_text("The same in words").click()
            seen.page.get_by_text("Spans in the window, as a list").click()
        found = Axe().run(seen.page).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"][:120]) for v in found] == [], state
        assert seen.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, state
    assert seen.wrong == []


def test_the_colours_follow_the_theme_and_paper(visit: Visit) -> None:
    page = visit("run.html", color_scheme="light").page
    light = page.locator(".rn-fig canvas").screenshot()
    page.emulate_media(color_scheme="dark")
    at_rest(page, 0)
    dark = page.locator(".rn-fig canvas").screenshot()
    assert dark != light
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".rn.rn-print").count() == 1
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".rn-fig canvas").is_visible()
    assert not page.locator(".rn-bar").is_visible()


def test_motion_is_only_for_those_who_want_it(visit: Visit) -> None:
    moving = visit("run.html", reduced_motion="no-preference").page
    still = visit("run.html").page
    count = """async (key) => {
      let frames = 0;
      const fig = document.querySelector(".rn-fig"), canvas = fig.querySelector("canvas");
      const context = canvas.getContext.bind(canvas);
      canvas.getContext = (...kind) => { frames++; return context(...kind); };
      fig.focus();
      fig.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      await new Promise((done) => setTimeout(done, 600));
      return frames;
    }"""
    assert moving.evaluate(count, "+") > 2
    assert still.evaluate(count, "+") == 1


def test_it_lets_go_of_the_page(visit: Visit) -> None:
    seen = visit("run.html")
    seen.page.evaluate("stops.forEach((stop) => stop())")
    assert seen.page.locator(".slot").first.inner_html() == ""
    seen.page.set_viewport_size({"width": 700, "height": 600})
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.wrong == []
