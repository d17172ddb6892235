"""Find the chapters' notebooks, and check without a kernel or a GPU that their outputs belong to their cells."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from refimpl.lessons.canonical import VIEW
from refimpl.lessons.provenance import Stamp
from refimpl.lessons.sources import ROOT, cells_sha256, module_hashes
from refimpl.program.errors import UserError

FOLDER = ROOT / "notebooks"
IMAGES = ("image/png", "image/jpeg", "image/svg+xml")
_IMAGE_WITHOUT_ALT = re.compile(r"!\[\s*\]\([^)]*\)|<img(?![^>]*\balt=\"[^\"]+\")[^>]*>")
_NAMED_SVG = re.compile(r"<svg[^>]*\baria-label=|<title\b[^>]*>\s*\S")


@dataclass(frozen=True)
class Findings:
    """What `check` found: `errors` must be mended, `outdated` lists modules that changed since the notebook ran."""

    name: str
    errors: tuple[str, ...]
    outdated: tuple[str, ...]


def find(names: Sequence[str], folder: Path = FOLDER) -> list[Path]:
    """The notebooks with these names (`wait_or_synchronize` or a path), or all of them.

    Raises:
        UserError: a name that is no notebook, with the names that are.
    """
    known = {path.stem: path for path in sorted(folder.glob("*.ipynb"))}
    if not names and not known:
        raise UserError(f"there are no notebooks in {folder}: run this in a clone of the repository, or name a file")
    found = []
    for name in names:
        path = Path(name) if name.endswith(".ipynb") else known.get(name)
        if path is None or not path.is_file():
            raise UserError(f"no notebook {name!r} (there: {', '.join(known) or 'none'})")
        found.append(path)
    return found if names else list(known.values())


def check(path: Path, root: Path = ROOT) -> Findings:
    """Compare a notebook with its stamp: no kernel, no GPU, no network."""
    notebook = read(path)
    try:
        stamp = Stamp.from_metadata(notebook.metadata, path.stem)
    except UserError as error:
        return Findings(path.stem, (str(error),), ())
    source = code(notebook)
    errors = []
    if stamp.cells_sha256 != cells_sha256(source):
        errors.append("cells were edited after their outputs were made: run the notebook again")
    now = module_hashes(source, root)
    names = sorted(now.keys() | stamp.modules.keys())
    outdated = tuple(name for name in names if now.get(name) != stamp.modules.get(name))
    return Findings(path.stem, (*errors, *_order(notebook), *_error_outputs(notebook), *_images(notebook)), outdated)


def read(path: Path) -> nbformat.NotebookNode:
    """A notebook, validated.

    Raises:
        UserError: the file is not a notebook.
    """
    try:
        notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        raise UserError(f"{path.name} is not a notebook: {str(error).splitlines()[0]}") from error
    return notebook


def code(notebook: nbformat.NotebookNode) -> list[str]:
    """The sources of its code cells, in order."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def _order(notebook: nbformat.NotebookNode) -> Iterator[str]:
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    if counts != list(range(1, len(counts) + 1)):
        yield f"cells were not run once each from top to bottom: {counts}"


def _error_outputs(notebook: nbformat.NotebookNode) -> Iterator[str]:
    for number, cell in _numbered(notebook, "code"):
        if "raises-exception" not in cell.metadata.get("tags", []):
            errors = (output for output in cell.outputs if output.output_type == "error")
            yield from (f"code cell {number} shows {error.ename}: {error.evalue}" for error in errors)


def _images(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Every picture has words: a timeline's first frame names itself, any other picture's alt text is the cell's."""
    for number, cell in _numbered(notebook, "markdown"):
        found = _IMAGE_WITHOUT_ALT.findall(cell.source)
        yield from (f"markdown cell {number}: no alt text for {image}" for image in found)
    for number, cell in _numbered(notebook, "code"):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        for data in (output.data for output in cell.outputs if "data" in output):
            found = _IMAGE_WITHOUT_ALT.findall("".join(data.get("text/html", "")))
            yield from (f"code cell {number}: no alt text for {image[:80]}" for image in found)
            if VIEW in data and not _NAMED_SVG.search("".join(data.get("image/svg+xml", ""))):
                yield f"code cell {number}: the widget has no picture with a <title> for readers without scripts"
            elif VIEW not in data and any(kind in data for kind in IMAGES) and not alt.strip():
                yield f"code cell {number}: no alt text; set the cell's metadata mystnb.image.alt"


def _numbered(notebook: nbformat.NotebookNode, kind: str) -> Iterator[tuple[int, nbformat.NotebookNode]]:
    return enumerate((cell for cell in notebook.cells if cell.cell_type == kind), 1)
