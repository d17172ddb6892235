"""Still pictures: readable on a phone, their signs explained, one set of colours for all of them."""

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from refimpl.program import Buffer, Launch, Program, Range, Stream
from refimpl.program import ops as o
from refimpl.timeline import schedule
from refimpl.view.bundle import css as style_sheet
from refimpl.view.plot import compare, plot
from refimpl.view.plot.layout import COLOURS, HAZARD, OTHERS
from refimpl.view.svg import first_frame

X = Range("x", 0, 64)
VERIFY = Launch(stream="forward", name="verify", writes=(X,), us=400)
PREPARE = Launch(stream="schedule", name="prepare", reads=(X,), us=50)
STREAMS, BUFFERS = {"forward": Stream(), "schedule": Stream()}, {"x": Buffer(64)}
FENCE = (o.EventRecord(event="done", stream="forward"), o.StreamWaitEvent(event="done", stream="schedule"))
RACY = Program(id="racy", streams=STREAMS, buffers=BUFFERS, ops=(VERIFY, PREPARE))
SAFE = Program(id="safe", streams=STREAMS, buffers=BUFFERS, ops=(VERIFY, *FENCE, PREPARE))


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def noted(program: Program) -> list[str]:
    return [text.get_text() for text in plot(schedule(program)).figure.texts]


@pytest.mark.browser
def test_on_a_phone_a_picture_scrolls_in_its_own_box_and_the_page_does_not(phone: Page) -> None:
    pictures = [plot(schedule(program), title=program.id)._repr_mimebundle_()["text/html"] for program in (RACY, SAFE)]
    head = '<title>Pictures</title><meta name="viewport" content="width=device-width"><style>body{margin:16px}</style>'
    body = f"<main><h1>Pictures</h1>{''.join(pictures)}</main>"
    phone.set_content(f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>')
    box = phone.get_by_role("img").first.bounding_box()
    assert box is not None
    assert box["width"] == 560
    assert phone.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    phone.get_by_role("region", name="Picture. racy").focus()
    phone.keyboard.press("ArrowRight")
    phone.wait_for_function("document.activeElement.scrollLeft > 0")
    assert [(v["id"], v["nodes"][0]["html"][:120]) for v in Axe().run(phone).response["violations"]] == []
    phone.set_viewport_size({"width": 640, "height": 844})
    wide = phone.get_by_role("img").first.bounding_box()
    assert wide is not None
    assert wide["width"] == 608


def test_a_dotted_line_is_explained_where_there_is_one() -> None:
    legend = "dotted: the stream waits"
    assert legend in noted(SAFE)[-1]
    assert not any(legend in text for text in noted(RACY))
    both = compare({"racy": schedule(RACY), "safe": schedule(SAFE)})
    assert sum(legend in text.get_text() for text in both.figure.texts) == 1


def test_the_still_pictures_have_the_colours_of_the_live_one() -> None:
    css = dict(re.findall(r"--tl-(\w+):(#[0-9A-Fa-f]{3,6})", style_sheet()))
    shades = {**COLOURS, "hz": HAZARD, **{f"other{k}": shade for k, shade in enumerate(OTHERS, 1)}}
    for name, shade in shades.items():
        assert css[name].upper() in (shade.upper(), f"#{shade[1::2]}".upper()), name
    stranger = Program(id="s", streams={"mine": Stream()}, ops=(Launch(stream="mine", name="work", us=90),))
    assert OTHERS[0] in first_frame(stranger)
