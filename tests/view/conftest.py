"""A page as the book makes it, with loader, bundle and a saved widget, and a Chromium to open it in."""

import functools
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from refimpl.view import first_frame, page
from refimpl.view.bundle import css, esm, inert, write_static
from tests.book.conftest import Watched, watch

HERE = Path(__file__).parent
LOADER = HERE.parents[1] / "book" / "_static" / "widgets" / "loader.js"
SIZES = {"laptop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="session")
def verify_done() -> dict[str, Any]:
    """The chapter's program as an explorable, as JSON."""
    made = subprocess.run(["node", HERE / "example.mjs"], capture_output=True, text=True, check=True)
    spec: dict[str, Any] = json.loads(made.stdout)
    return spec


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, verify_done: dict[str, Any]) -> Path:
    """A folder with the pages under test."""
    folder = tmp_path_factory.mktemp("site")
    widgets = folder / "_static" / "widgets"
    write_static(widgets)
    shutil.copy(LOADER, widgets)
    (folder / "saved.html").write_text(_saved(verify_done, {"count": 1}), encoding="utf-8")
    (folder / "one-file.html").write_text(page(verify_done), encoding="utf-8")
    (folder / "anywidget.html").write_text(_anywidget(verify_done), encoding="utf-8")
    cases = json.loads((HERE.parent / "cases" / "stream-programs.json").read_text(encoding="utf-8"))["cases"]
    (folder / "cases.html").write_text(_inline(cases), encoding="utf-8")
    (folder / "lanes.html").write_text(_inline([_two_lanes()]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the folder is served."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Requests are not the test's output."""

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def visit(browser: Browser, address: str, site: Path) -> Iterator[Callable[..., Watched]]:
    """``visit("saved.html", size="phone", disk=True, color_scheme="dark")`` opens a page and waits until it is live."""
    contexts = []

    def open_page(name: str, size: str = "laptop", disk: bool = False, **options: Any) -> Watched:
        width, height = SIZES[size]
        options.setdefault("reduced_motion", "reduce")
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        watched = watch(context, site.as_uri() if disk else address)
        watched.page.goto(f"{watched.base}/{name}")
        if options.get("java_script_enabled", True):
            watched.page.wait_for_selector("html[data-widgets=live]", timeout=30_000)
        return watched

    yield open_page
    for context in contexts:
        context.close()


def _two_lanes() -> dict[str, Any]:
    """An explorable of which only the second variant has work on the plan stream."""

    def variant(name: str, stream: str) -> dict[str, Any]:
        streams = {"forward": {}, "plan": {}}
        launch = {"op": "launch", "stream": stream, "name": "alloc", "us": 50}
        return {"id": name, "label": name, "program": {"id": name, "streams": streams, "buffers": {}, "ops": [launch]}}

    return {"id": "lanes", "title": "Lanes", "variants": [variant("inline", "forward"), variant("planned", "plan")]}


def _document(body: str, head: str = "") -> str:
    style = "<style>:root{color-scheme:light dark}body{margin:0 16px;background:light-dark(#fff,#14181d)}</style>"
    icon = '<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width, initial-scale=1">'
    title = f"<title>Timeline</title>{icon}{style}{head}"
    top = f'<!doctype html><html lang="en"><head><meta charset="utf-8">{title}</head>'
    return f"{top}<body><main>{body}</main></body></html>"


def _script(kind: str, data: Any) -> str:
    return f'<script type="{kind}">{inert(json.dumps(data))}</script>'


def _saved(spec: dict[str, Any], other: dict[str, Any]) -> str:
    """What a built notebook page holds: the widgets' saved state, a view of each, the picture before ours."""
    models = {
        "ours": {
            "model_name": "AnyModel",
            "model_module": "anywidget",
            "state": {"spec": spec, "_esm": "", "_css": ""},
        },
        "other": {"model_name": "IntSliderModel", "model_module": "@jupyter-widgets/controls", "state": other},
    }
    kind = "application/vnd.jupyter.widget"
    state = _script(f"{kind}-state+json", {"version_major": 2, "version_minor": 0, "state": models})
    picture = f'<div class="timeline-fallback">{first_frame(spec)}</div>'
    ours = f'<h1>Saved</h1><div class="cell_output">{picture}{_script(f"{kind}-view+json", {"model_id": "ours"})}</div>'
    theirs = f'<div class="cell_output">{_script(f"{kind}-view+json", {"model_id": "other"})}</div>'
    return _document(ours + theirs + state, '<script src="_static/widgets/loader.js"></script>')


def _inline(programs: list[dict[str, Any]]) -> str:
    """A page without a notebook: specs in inert scripts."""
    specs = "".join(_script('application/json" class="timeline-spec', program) for program in programs)
    return _document(f"<h1>Cases</h1>{specs}", '<script src="_static/widgets/loader.js"></script>')


def _anywidget(spec: dict[str, Any]) -> str:
    """What anywidget does with ``_esm`` and ``_css``: a module from a blob, and its ``render``."""
    run = """
      const text = (id) => document.getElementById(id).textContent;
      const values = { spec: JSON.parse(text("spec")) }, heard = {};
      const model = { get: (k) => values[k], on: (k, f) => (heard[k] = f), off: (k) => delete heard[k] };
      const blob = new Blob([text("esm")], { type: "text/javascript" });
      const { default: widget } = await import(URL.createObjectURL(blob));
      const stop = widget.render({ model, el: document.getElementById("slot") });
      Object.assign(window, { stop, heard, values });
      document.documentElement.dataset.widgets = "live";
    """
    code = f'<script type="text/plain" id="esm">{esm()}</script>'
    data = _script('application/json" id="spec', spec)
    return _document(
        f'<h1>Lab</h1><div id="slot"></div>{code}{data}<script type="module">{run}</script>',
        f"<style>{css()}</style>",
    )
