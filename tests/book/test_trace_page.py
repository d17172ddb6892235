"""The page on which readers drop a profiler's trace: in a real browser, with files as readers have them."""

import base64
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from refimpl.timeline import from_profiler
from refimpl.timeline.reports.report import report
from tests.book.conftest import Watched
from tests.book.test_pages import overflow, violations
from tests.conftest import ROOT

pytestmark = pytest.mark.browser

PAGE = "book/your-trace.html"
FOLDER = ROOT / "results" / "traces"
FENCED, FREE, SMALL = (FOLDER / f"{name}.json.gz" for name in ("before-29556-8b", "29556-8b", "eagle-wait-small"))
DONE = ".dr-results .rn canvas, .dr-wrong:not([hidden])"


def opened(seen: Watched, **options: Any) -> Page:
    page = seen.open(PAGE, **options)
    page.wait_for_selector(".dr-zone")
    return page


def choose(page: Page, *files: Path) -> Page:
    """Give files to the page as the file button does, and wait for what comes of them."""
    page.locator("input[type=file]").set_input_files([str(file) for file in files])
    page.wait_for_function("document.querySelector('.dr-busy').hidden", timeout=60_000)
    page.wait_for_selector(DONE)
    return page


def rows(page: Page, title: str) -> list[list[str]]:
    """The texts of a table's cells, by the heading above it."""
    found = page.locator(".dr-part", has=page.get_by_role("heading", name=title, exact=True)).first
    return [row.locator("th, td").all_inner_texts() for row in found.locator("tbody tr").all()]


def example(page: Page) -> Page:
    page.get_by_role("button", name="Try an example").click()
    page.wait_for_selector(DONE)
    return page


def written(folder: Path, name: str, data: bytes | str) -> Path:
    file = folder / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return file


@pytest.mark.parametrize(("file", "disk"), [(FENCED, False), (SMALL, True)], ids=["http", "file"])
def test_the_page_says_of_a_trace_what_refimpl_says(laptop: Watched, html: Path, file: Path, disk: bool) -> None:
    page = choose(opened(laptop, base=html.as_uri() if disk else None), file)
    right = report(from_profiler(file))
    table = rows(page, "Calls that block the host")
    assert [row[2] for row in table] == [f"× {one.times:,}" for one in right.blocking[: len(table)]]
    assert [row[0] for row in table] == [one.call or one.name for one in right.blocking[: len(table)]]
    causes = [cause.cause for cause in right.gpu_idle.by_cause]
    told = [row[0] for row in rows(page, "GPU idle, by cause")]
    assert told == causes[: len(told)]
    assert laptop.wrong == []


def test_nothing_leaves_the_page_and_it_works_without_a_network(laptop: Watched) -> None:
    page = opened(laptop)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.context.set_offline(True)
    choose(page, SMALL)
    assert [address for address in asked if not address.startswith("blob:")] == []
    assert page.locator(".dr-results .rn canvas").count()
    assert laptop.wrong == []


def test_a_page_that_may_have_no_worker_reads_by_itself(laptop: Watched) -> None:
    expected = choose(opened(laptop), SMALL).locator(".dr-parts").inner_text()
    laptop.page.add_init_script("window.Worker = class { constructor() { throw new Error('none here') } }")
    assert choose(opened(laptop), SMALL).locator(".dr-parts").inner_text() == expected
    assert laptop.wrong == []


def test_a_worker_that_does_not_start_is_done_without(laptop: Watched) -> None:
    laptop.page.add_init_script(
        "const W = Worker; window.Worker = class extends W { constructor() { super('data:text/javascript,throw 1') } }"
    )
    page = choose(opened(laptop), SMALL)
    assert rows(page, "Calls that block the host")


def test_the_example_is_before_and_after_and_can_be_swapped_and_put_away(laptop: Watched, html: Path) -> None:
    page = example(opened(laptop, base=html.as_uri()))
    first = rows(page, "What changed")[0]
    assert first[0] == "whole trace"
    page.get_by_role("button", name="Swap").click()
    assert rows(page, "What changed")[0][1:3] == first[2:0:-1]
    page.get_by_role("button", name=re.compile("^Put .* away$")).first.click()
    assert page.locator(".dr-chip").count() == 1
    assert rows(page, "Calls that block the host")
    assert laptop.wrong == []


def test_the_example_shows_the_blocking_call_that_the_barrier_did_away_with(laptop: Watched) -> None:
    held = next(one for one in report(from_profiler(FENCED)).blocking if "prepare_for_decode" in one.name)
    assert not [one for one in report(from_profiler(FREE)).blocking if "prepare_for_decode" in one.name]
    table = rows(example(opened(laptop)), "What changed")
    at = next(n for n, row in enumerate(table) if "prepare_for_decode" in row[0])
    assert table[at][0] == f"held by {held.call}, {held.name}"
    assert [table[at][2:], table[at + 1]] == [["0", "gone"], ["how often", f"{held.times}", "0", "gone"]]


def test_of_two_files_the_older_is_before_and_a_third_takes_the_place_of_after(laptop: Watched, tmp_path: Path) -> None:
    content = SMALL.read_bytes()
    page = opened(laptop)
    give = """([files]) => {
      const held = new DataTransfer();
      for (const [name, text, time] of files) {
        const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        held.items.add(new File([bytes], name, { lastModified: time }));
      }
      const event = (kind) => new DragEvent(kind, { dataTransfer: held, bubbles: true, cancelable: true });
      document.body.dispatchEvent(event("dragover"));
      return document.body.dispatchEvent(event("drop"));
    }"""
    text = base64.b64encode(content).decode()
    assert page.evaluate(give, [[["new.json", text, 2000], ["old.json", text, 1000]]]) is False, (
        "the browser stays here"
    )
    page.wait_for_selector(DONE)
    assert page.locator(".dr-chip").all_inner_texts() == ["before\nold.json\n×", "after\nnew.json\n×"]
    choose(page, written(tmp_path, "third.json", content))
    assert page.locator(".dr-chip span").all_inner_texts() == ["old.json", "third.json"]
    page.evaluate(give, [[[f"{n}.json", text, n] for n in range(3)]])
    assert "drop one, or two to compare" in page.locator(".dr-wrong").inner_text()


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("empty.json", b"", "empty.json is empty"),
        ("bad.json.gz", b"\x1f\x8b garbage, and no gzip", "bad.json.gz begins as gzip and cannot be unpacked"),
        ("no.json", b'{"some": "thing"}', "no.json is JSON but no chrome trace"),
        ("text.json", b"hello", "text.json is not JSON"),
        ("none.json", b'{"traceEvents": []}', "shows neither GPU work nor annotations"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith((".json", ".gz")) else "",
)
def test_what_is_no_trace_gets_a_sentence(
    laptop: Watched, tmp_path: Path, name: str, data: bytes, sentence: str
) -> None:
    page = choose(opened(laptop), written(tmp_path, name, data))
    said = page.locator(".dr-wrong")
    assert sentence in said.inner_text()
    assert said.get_attribute("role") == "alert"
    assert page.locator(".dr-results > *").count() == 0
    assert laptop.wrong == []


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_file_that_is_cut_off_is_shown_and_said_to_be(laptop: Watched, tmp_path: Path, packed: bool) -> None:
    content = SMALL.read_bytes() if packed else gzip.decompress(SMALL.read_bytes())
    page = choose(opened(laptop), written(tmp_path, "cut.json", content[: len(content) * 2 // 3]))
    assert "cut.json is cut off after" in page.locator(".dr-note").inner_text()
    assert page.locator(".dr-results .rn canvas").count()


def test_reading_can_be_cancelled(laptop: Watched, tmp_path: Path) -> None:
    one = json.dumps({"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1, "args": {"stream": 7}})
    page = opened(laptop)
    page.locator("input[type=file]").set_input_files(
        str(written(tmp_path, "long.json", f"[{one}{f',{one}' * 450_000}]"))
    )
    page.get_by_role("button", name="Cancel").click()
    assert page.locator(".dr-busy").is_hidden()
    assert page.locator(".dr [role=status]").inner_text() == "Reading was cancelled."
    assert page.locator(".dr-results > *").count() == 0
    choose(page, SMALL)
    assert rows(page, "Calls that block the host")


def test_the_keyboard_alone_is_enough(laptop: Watched) -> None:
    page = opened(laptop)
    page.get_by_role("button", name="Choose files…").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(DONE)
    page.wait_for_function("document.activeElement.textContent === 'Before and after'")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the timeline"


def test_a_call_of_the_table_is_found_in_the_view(laptop: Watched) -> None:
    page = choose(opened(laptop), SMALL)
    call = page.locator(".dr-find").first
    name = call.inner_text()
    call.click()
    assert page.locator(".rn input[type=search]").input_value() == name


@pytest.mark.parametrize("device", ["laptop", "dark", "phone"])
def test_what_the_page_shows_is_accessible_and_fits(device: str, request: pytest.FixtureRequest) -> None:
    page = example(opened(request.getfixturevalue(device)))
    for details in page.locator(".dr-results > details > summary").all():
        details.click()
    assert violations(page) == []
    assert overflow(page) <= 0


def test_without_scripts_the_page_says_what_does_the_same(scriptless: Page, served: str) -> None:
    scriptless.goto(f"{served}/{PAGE}")
    assert "python -m refimpl trace FILE" in scriptless.locator(".trace-drop").inner_text()


def test_the_printed_profiling_code_runs(tmp_path: Path) -> None:
    text = (ROOT / "book" / "your-trace.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    given = "import torch\ndef step(): torch.ones(3).add_(1)\n"
    subprocess.run([sys.executable, "-c", given + blocks[0]], cwd=tmp_path, check=True, capture_output=True)
    assert from_profiler(tmp_path / "mine.json.gz").spans
