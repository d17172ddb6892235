"""Pages with recorded runs, as the book, a notebook and a one-file page make them."""

import json
import shutil
from pathlib import Path
from typing import Any

from refimpl.program import Trace
from refimpl.timeline.writing.columns import columns
from refimpl.view import Run
from refimpl.view.bundle import RUN, classic, css, esm, inert, write_static
from tests.view.long_run import long_run

LOADER = Path(__file__).parents[2] / "book" / "_static" / "widgets" / "loader.js"
SPANS = 3_000
KIND = "application/vnd.jupyter.widget"


def run(synchronizes: bool = False) -> Trace:
    """The run of most tests."""
    return long_run(SPANS, synchronizes=synchronizes)


def write_pages(folder: Path) -> Path:
    """All pages under test."""
    widgets = folder / "_static" / "widgets"
    write_static(widgets)
    shutil.copy(LOADER, widgets)
    after, before = run(), run(synchronizes=True)
    table = columns(after, id="loop", title="The loop", step_op="verify")
    bare = {**columns(after, id="bare", title="No steps"), "steps": []}
    pages = {
        "saved": _saved(Run(after, title="The loop", step_op="prepare", caption="The host is late.")),
        "run": _plain({**table, "steps": columns(after, step_op="prepare")["steps"]}),
        "bare": _plain(bare),
        "pair": _plain({"before": _steps(before), "after": _steps(after)}),
        "two": _plain(_steps(after), _steps(after)),
        "bad": _plain({"schema": "trace/9"}, {"packed": "bm90IGd6aXA="}),
        "anywidget": _anywidget(_steps(after)),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


def _steps(trace: Trace) -> dict[str, Any]:
    return columns(trace, id="loop", title="The loop", step_op="prepare")


def _document(body: str, head: str = "") -> str:
    style = "<style>:root{color-scheme:light dark}body{margin:0 16px;background:light-dark(#fff,#14181d)}</style>"
    icon = '<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width, initial-scale=1">'
    top = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Run</title>{icon}{style}{head}</head>'
    return f"{top}<body><main>{body}</main></body></html>"


def _data(kind: str, value: Any) -> str:
    return f'<script type="{kind}">{inert(json.dumps(value))}</script>'


def _plain(*shown: Any) -> str:
    """Views mounted by the classic script, as in a one-file page."""
    slots = "".join(f'<div class="slot"></div>{_data("application/json", one)}' for one in shown)
    script = """
      const style = document.createElement("style");
      style.textContent = streamOrderRun.css;
      document.head.append(style);
      window.stops = [...document.querySelectorAll(".slot")].map((slot) =>
        streamOrderRun.mount(slot, JSON.parse(slot.nextElementSibling.textContent)));
      document.documentElement.dataset.widgets = "live";
    """
    code = classic(RUN).replace("</script", "<\\/script")
    return _document(f"<h1>Run</h1>{slots}<script>{code}</script><script>{script}</script>")


def _saved(widget: Run) -> str:
    """What a built notebook page holds: the widget's saved state, its view, the picture before it."""
    state = {"view": widget.view, "spec": widget.spec, "_esm": "", "_css": ""}
    models = {"ours": {"model_name": "AnyModel", "model_module": "anywidget", "state": state}}
    picture = f'<div class="timeline-fallback">{widget._repr_mimebundle_()[0]["image/svg+xml"]}</div>'
    view = _data(f"{KIND}-view+json", {"model_id": "ours"})
    saved = _data(f"{KIND}-state+json", {"version_major": 2, "version_minor": 0, "state": models})
    loader = '<script src="_static/widgets/loader.js"></script>'
    return _document(f'<h1>Saved</h1><div class="cell_output">{picture}{view}</div>{saved}', loader)


def _anywidget(shown: Any) -> str:
    """What anywidget does with ``_esm`` and ``_css``: a module from a blob, and its ``render``."""
    script = """
      const text = (id) => document.getElementById(id).textContent;
      const values = { spec: JSON.parse(text("spec")) }, heard = {};
      const model = { get: (k) => values[k], on: (k, f) => (heard[k] = f), off: (k) => delete heard[k] };
      const blob = new Blob([text("esm")], { type: "text/javascript" });
      const { default: widget } = await import(URL.createObjectURL(blob));
      window.stop = widget.render({ model, el: document.getElementById("slot") });
      Object.assign(window, { heard, values });
      document.documentElement.dataset.widgets = "live";
    """
    code = f'<script type="text/plain" id="esm">{esm(RUN)}</script>'
    data = _data('application/json" id="spec', shown)
    body = f'<h1>Lab</h1><div id="slot"></div>{code}{data}<script type="module">{script}</script>'
    return _document(body, f"<style>{css(RUN)}</style>")
