"""The first frame of a widget as a picture in the page: seen in print, with scripts off, and until the widget is live.

A widget's output carries `image/svg+xml` beside the widget view. The page would show one of them only; here the picture
goes before the view.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
VIEW = "application/vnd.jupyter.widget-view+json"
PICTURE = "image/svg+xml"


class FirstFrame(SphinxPostTransform):
    """Runs before myst-nb keeps one form of each output and drops the others."""

    default_priority = 3

    def run(self, **kwargs: object) -> None:
        for bundle in self.document.findall(nodes.container):
            forms = {form.get("mime_type"): form for form in bundle.children if isinstance(form, nodes.container)}
            if bundle.get("nb_element") != "mime_bundle" or VIEW not in forms:
                continue
            if PICTURE not in forms:
                LOGGER.warning("a widget has no picture for readers without scripts", location=bundle)
                continue
            picture = next(iter(forms[PICTURE].findall(nodes.image)))
            svg = Path(self.env.srcdir, picture["uri"].lstrip("/")).read_text(encoding="utf-8")
            text = f'<div class="timeline-fallback">{svg[max(svg.find("<svg"), 0) :]}</div>'
            forms[VIEW].insert(0, nodes.raw(text=text, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the transform."""
    app.add_post_transform(FirstFrame)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
