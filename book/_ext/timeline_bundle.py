"""The timeline's code for the static pages, made at build time from `refimpl/view`: there is no second copy to keep."""

from pathlib import Path

from sphinx.application import Sphinx

from refimpl.view.bundle import write_static


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        write_static(Path(app.outdir) / "_static" / "widgets")


def setup(app: Sphinx) -> dict[str, bool]:
    """Runs when the pages and their static files are written."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
