"""The `{result}` role: prose quotes a measured figure from `results/`, so that no number is typed by hand.

{result}`verify_done.h200:rows[variant=wait,host_ms=1].step_ms|.3f ms` works in pages and in the markdown cells of
notebooks. A key that leads nowhere is a warning, and the book is built with warnings as errors.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from refimpl.lessons import results
from refimpl.program.errors import UserError

LOGGER = logging.getLogger(__name__)


class ResultRole(SphinxRole):
    """Replaces a quotation by its figure."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        name = self.text.partition(":")[0].strip()
        try:
            figure = results.quote(self.text)
        except UserError as error:
            LOGGER.warning("%s", error, location=self.get_location())
            return [nodes.problematic(self.rawtext, self.rawtext)], []
        self.env.note_dependency(str(results.FOLDER / f"{name}.json"))
        return [nodes.inline(self.rawtext, figure, classes=["measured"])], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the role."""
    app.add_role("result", ResultRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
