"""The built book in a real browser: complete without a network, readable by everyone, alive under the keys."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.book.conftest import SCREENSHOTS, Watched, chapters, pages

pytestmark = pytest.mark.browser

# Violations that the theme brings, by rule and the start of the element at fault; nothing of ours is excused.
THEMES_OWN = {
    "region": ('<img src="../_static/logo.svg" class="logo__image',),  # the logo stands outside every landmark
}


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def violations(page: Page) -> list[str]:
    """What axe finds and the theme does not answer for."""
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {node['html'][:160]}"
        for rule in found
        for node in rule["nodes"]
        if not node["html"].startswith(THEMES_OWN.get(rule["id"], ()))
    ]


def screenshot(page: Page, name: str, kind: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{Path(name).stem}-{kind}.png", full_page=True)


@pytest.mark.parametrize("name", pages())
def test_a_page_asks_nobody_for_anything_and_logs_no_error(laptop: Watched, name: str) -> None:
    screenshot(laptop.open(name), name, "light")
    assert laptop.wrong == []


@pytest.mark.parametrize("name", pages())
def test_no_role_or_directive_is_left_as_text(laptop: Watched, name: str) -> None:
    text = laptop.open(name).locator("main").inner_text()
    assert re.findall(r"\{[a-z-]+\}`[^`]*`?", text) == []


@pytest.mark.parametrize("name", pages())
def test_a_page_works_from_the_disk(laptop: Watched, html: Path, name: str) -> None:
    laptop.open(name, base=html.as_uri())
    assert laptop.wrong == []


@pytest.mark.parametrize("name", pages())
def test_a_page_has_no_accessibility_violation_of_ours(laptop: Watched, name: str) -> None:
    assert violations(laptop.open(name)) == []


@pytest.mark.parametrize("name", pages())
def test_a_page_is_readable_in_the_dark(dark: Watched, name: str) -> None:
    page = dark.open(name)
    screenshot(page, name, "dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert violations(page) == []
    assert overflow(page) <= 0


@pytest.mark.parametrize("name", pages())
def test_a_page_fits_a_phone(phone: Watched, name: str) -> None:
    page = phone.open(name)
    screenshot(page, name, "phone")
    assert overflow(page) <= 0
    assert violations(page) == []


LONG = "event_loop_overlap(VerifyDone.SYNCHRONIZE,steps=24,host_us=1000)"
LITERAL = f'<code class="docutils literal notranslate"><span class="pre">{LONG}</span></code>'
NARROW = [
    f"<p>{LONG} <code>{LONG}</code> {LITERAL}</p>",
    f"<ul><li><p>{LITERAL}</p></li></ul>",
    f'<div class="cell_output"><div class="output text_html"><p>{LITERAL}</p></div></div>',
    f'<details open class="sd-sphinx-override sd-dropdown sd-card"><summary class="sd-summary-title sd-card-header">'
    f'{LITERAL}</summary><div class="sd-summary-content sd-card-body"><p>{LITERAL}</p></div></details>',
]


@pytest.mark.parametrize("name", pages())
def test_on_the_narrowest_phone_a_page_does_not_scroll_sideways(phone: Watched, name: str) -> None:
    phone.page.set_viewport_size({"width": 320, "height": 640})
    page = phone.open(name)
    assert overflow(page) <= 0
    for html in NARROW:
        page.evaluate("html => document.querySelector('.bd-article').insertAdjacentHTML('beforeend', html)", html)
        assert overflow(page) <= 0, html


FADES = """() => {
  const outputs = [...document.querySelectorAll("div.cell_output pre, .timeline-picture")];
  const shown = outputs.filter((one) => one.checkVisibility()), frame = (next) => requestAnimationFrame(next);
  return Promise.all(shown.map((one) => {
    const faded = () => getComputedStyle(one).maskImage !== "none", wide = one.scrollWidth > one.clientWidth + 1;
    const first = faded();
    one.scrollLeft = one.scrollWidth;
    return new Promise((done) => frame(() => frame(() => done([wide, first, faded()]))));
  }));
}"""
"""Of each output that shows: whether it goes on, and whether it fades, before and behind its end."""


def test_what_goes_on_beyond_the_edge_fades_there_until_its_end(laptop: Watched) -> None:
    page = laptop.open("notebooks/draft_done.html")
    seen = page.evaluate(FADES)
    assert {wide for wide, _, _ in seen} == {True, False}
    assert [(wide, first, last) for wide, first, last in seen if (first, last) != (wide, False)] == []


@pytest.mark.parametrize("name", pages())
def test_every_picture_has_words(laptop: Watched, name: str) -> None:
    page = laptop.open(name)
    alts = page.eval_on_selector_all(".bd-article img", "all => all.map(i => i.getAttribute('alt') ?? '')")
    # Without an alt text Sphinx writes the path of the file.
    assert [alt for alt in alts if len(alt) < 15 or re.fullmatch(r"\S+\.(png|svg|jpe?g)", alt)] == []


@pytest.mark.parametrize("name", chapters())
def test_the_timeline_moves_by_keyboard(laptop: Watched, name: str) -> None:
    page = laptop.open(name)
    time = page.locator(".tl").first.get_by_label("Time", exact=True)
    time.focus()
    before = time.input_value()
    for _ in range(3):
        time.press("ArrowRight")
    assert float(time.input_value()) > float(before)
    time.press("r")
    page.wait_for_function("([e, v]) => e.value === v", arg=[time.element_handle(), before])
    assert laptop.wrong == []


@pytest.mark.parametrize("name", chapters())
def test_the_timeline_answers_to_the_mouse(laptop: Watched, name: str) -> None:
    page = laptop.open(name)
    time = page.locator(".tl").first.get_by_label("Time", exact=True)
    time.scroll_into_view_if_needed()
    before, box = float(time.input_value()), time.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    assert float(time.input_value()) != before
    assert laptop.wrong == []


@pytest.mark.parametrize("name", chapters())
def test_without_scripts_the_first_frame_is_there(scriptless: Page, served: str, name: str) -> None:
    scriptless.goto(f"{served}/{name}")
    frames = scriptless.locator(".timeline-fallback svg")
    assert frames.count() > 0
    for frame in frames.all():
        box = frame.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] > 60


@pytest.mark.parametrize("name", chapters())
def test_in_print_each_timeline_is_there_once(laptop: Watched, name: str) -> None:
    page = laptop.open(name)
    page.emulate_media(media="print")
    screenshot(page, name, "print")
    views = page.locator("script[type$='widget-view+json']").count()
    visible = page.eval_on_selector_all(
        ".timeline-fallback, .cell_output .tl", "all => all.filter(e => e.getBoundingClientRect().height > 60).length"
    )
    assert visible == views
