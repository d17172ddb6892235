"""The line under a chapter's title: where its outputs come from, and the notebook itself to download."""

import json
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from refimpl.lessons.provenance import Stamp
from refimpl.program.errors import UserError

LOGGER = logging.getLogger(__name__)


class ProvenanceLine(SphinxTransform):
    """Reads the notebook's stamp; a notebook without one is a warning, and so an error."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        path = Path(self.env.doc2path(self.env.docname))
        title = next(iter(self.document.findall(nodes.title)), None)
        if path.suffix != ".ipynb" or title is None:
            return
        try:
            stamp = Stamp.from_metadata(json.loads(path.read_text(encoding="utf-8"))["metadata"], path.stem)
        except UserError as error:
            LOGGER.warning("%s", error, location=self.env.docname)
            return
        download = addnodes.download_reference(
            "", "", nodes.Text("Download this notebook"), reftarget=f"/{self.env.docname}.ipynb"
        )
        download["refdoc"] = self.env.docname
        line = nodes.paragraph(
            "", "", nodes.Text(f"{stamp.sentence()} "), download, nodes.Text("."), classes=["provenance"]
        )
        title.parent.insert(title.parent.index(title) + 1, line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the transform."""
    app.add_transform(ProvenanceLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
