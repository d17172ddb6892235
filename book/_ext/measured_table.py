"""The `{measured-table}` directive: figures of `results/` as a table, with lines that say where they come from."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from refimpl.lessons import results
from refimpl.lessons.engine_sources import Source
from refimpl.lessons.engine_tables import TABLES, Missing, Table, table
from refimpl.program.errors import UserError

LOGGER = logging.getLogger(__name__)


class MeasuredTable(SphinxDirective):
    """Its argument is a key of `TABLES`."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        try:
            made = table(name)
        except (UserError, KeyError) as error:
            LOGGER.warning("no table %r: %s", name, error, location=self.get_location())
            return []
        self.env.note_dependency(str(results.file_of(TABLES[name][0])))
        if isinstance(made, Missing):
            return self.parse_text_to_nodes(made.words)
        lead = [nodes.paragraph("", made.lead)] if made.lead else []
        return [*lead, *([_drawn(made), *map(_said, made.sources)] if made.rows else [])]


def _said(source: Source) -> nodes.paragraph:
    command = nodes.literal("", source.command)
    return nodes.paragraph("", "", nodes.Text(f"{source.words}: "), command, classes=["provenance"])


def _drawn(made: Table) -> nodes.table:
    widths = [1] * len(made.heads)
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(widths))
    group += nodes.thead("", _row(made.heads, made))
    group += nodes.tbody("", *(_row(cells, made) for cells in made.rows))
    return nodes.table("", group, classes=["measured-table"])


def _row(cells: tuple[str, ...], made: Table) -> nodes.row:
    return nodes.row("", *(_entry(cell, at in made.numeric) for at, cell in enumerate(cells)))


def _entry(cell: str, numeric: bool) -> nodes.entry:
    return nodes.entry("", nodes.paragraph("", cell), classes=["text-right", "measured"] if numeric else [])


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the directive."""
    app.add_directive("measured-table", MeasuredTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
