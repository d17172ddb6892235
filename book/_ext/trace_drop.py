"""The `{trace-drop}` directive: where readers drop a profiler's trace. Its scripts are made when the book is built.

The body is what readers without scripts see.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import refimpl
from refimpl.view.drop_bundle import SCRIPT, write_drop

LOGGER = logging.getLogger(__name__)
PAGES = "pages_with_a_trace_drop"
TRACES = Path(refimpl.__file__).parents[1] / "results" / "traces"

# Of two the first is the one before. `python -m refimpl profile` recorded them.
EXAMPLES = {
    "before-29556-8b.json.gz": "The engine as of before-29556, with 8B-shaped weights, recorded on a GPU. "
    "DFLASH's host waits for its own event in every step, in prepare_for_decode.",
    "29556-8b.json.gz": "The engine as of 29556: streams wait for each other, the host goes on, and that call is gone.",
}


class TraceDrop(SphinxDirective):
    """Puts the place into the page."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        if not hasattr(self.env, PAGES):
            setattr(self.env, PAGES, set())
        getattr(self.env, PAGES).add(self.env.docname)
        place = nodes.container("", *self.parse_content_to_nodes(), classes=["trace-drop"])
        return [place]


def _load(app: Sphinx, pagename: str, templatename: str, context: dict[str, object], doctree: object) -> None:
    if pagename in getattr(app.env, PAGES, ()):
        app.add_js_file(f"widgets/{SCRIPT}")


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html" or not getattr(app.env, PAGES, ()):
        return
    examples = {TRACES / name: words for name, words in EXAMPLES.items()}
    missing = [file.name for file in examples if not file.is_file()]
    if missing:
        LOGGER.warning("results/traces lacks %s, which the page shows as an example", ", ".join(missing))
        return
    write_drop(Path(app.outdir) / "_static" / "widgets", examples)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the directive, the scripts for the pages that use it, and when they are written."""
    app.add_directive("trace-drop", TraceDrop)
    app.connect("html-page-context", _load)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
