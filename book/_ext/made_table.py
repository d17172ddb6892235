"""The `{made-table}` directive: a table that a function makes when the book is built, so that no verdict is typed.

Its argument names the function, as `refimpl.lessons.label_gate_proof:table`; it returns the heads and the rows, as
words. The body says what they are.
"""

from importlib import import_module

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)


class MadeTable(SphinxDirective):
    """Calls the function; one that is not there, or does not answer, is a warning, and so an error."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].partition(":")
        try:
            heads, rows = getattr(import_module(module), name)()
        except (ImportError, AttributeError, RuntimeError) as error:
            LOGGER.warning("no table %s: %s", self.arguments[0], error, location=self.get_location())
            return []
        group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in heads), cols=len(heads))
        group += nodes.thead("", _row(heads))
        group += nodes.tbody("", *(_row(cells) for cells in rows))
        words = nodes.paragraph("", " ".join(self.content), classes=["provenance"])
        table = nodes.table("", group, classes=["measured-table", "colwidths-auto"])
        return [table, words] if self.content else [table]


def _row(cells: tuple[str, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the directive."""
    app.add_directive("made-table", MadeTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
