"""The `{timeline}` directive: a timeline on a page that is no notebook, made when the book is built.

Its argument names a function that returns what to draw, as `refimpl.lessons.record_engine:engine_steps`; its body is
the caption. Without scripts and in print the page shows the first frame.
"""

import html
import json
from importlib import import_module

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from refimpl.view import first_frame
from refimpl.view.bundle import inert
from refimpl.view.spec import spec_of

LOGGER = logging.getLogger(__name__)
LOADER = "widgets/loader.js"
PAGES = "pages_with_a_timeline"


class TimelineDirective(SphinxDirective):
    """Puts the first frame, and the program beside it, into the page."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].partition(":")
        try:
            shown = getattr(import_module(module), name)()
        except (ImportError, AttributeError, RuntimeError) as error:
            LOGGER.warning("no timeline %s: %s", self.arguments[0], error, location=self.get_location())
            return []
        caption = " ".join(self.content)
        spec = json.dumps({**spec_of(shown), "caption": caption}, allow_nan=False)
        if not hasattr(self.env, PAGES):
            setattr(self.env, PAGES, set())
        getattr(self.env, PAGES).add(self.env.docname)
        picture = f'<div class="timeline-fallback">{first_frame(shown)}<p>{html.escape(caption)}</p></div>'
        script = f'<script type="application/json" class="timeline-spec">{inert(spec)}</script>'
        return [nodes.raw(text=f'<div class="live-timeline">{picture}{script}</div>', format="html")]


def _load(app: Sphinx, pagename: str, templatename: str, context: dict[str, object], doctree: object) -> None:
    if pagename in getattr(app.env, PAGES, ()):
        app.add_js_file(LOADER)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the directive, and the script for the pages that use it."""
    app.add_directive("timeline", TimelineDirective)
    app.connect("html-page-context", _load)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
