"""Run a chapter's notebook and stamp it; check, without a kernel or a GPU, that its outputs belong to its cells."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from refimpl.lessons.canonical import VIEW, canonical
from refimpl.lessons.provenance import DEVICE_VARIABLE, KEY, Machine, Stamp
from refimpl.lessons.sources import ROOT, cells_sha256, module_hashes
from refimpl.program.errors import UserError

FOLDER = ROOT / "notebooks"
IMAGES = ("image/png", "image/jpeg", "image/svg+xml")
_ASK_MACHINE = "import json, refimpl.lessons.provenance as p; print(json.dumps(vars(p.this_machine())))"
_MARKDOWN_IMAGE_WITHOUT_ALT = re.compile(r"!\[\s*\]\([^)]*\)|<img(?![^>]*\balt=\"[^\"]+\")[^>]*>")
_NAMED_SVG = re.compile(r"<svg[^>]*\baria-label=|<title\b[^>]*>\s*\S")


class RunFailed(Exception):
    """A cell raised; the message shows the cell and the error in a few lines, and the old notebook is untouched."""


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
    found = []
    for name in names:
        path = Path(name) if name.endswith(".ipynb") else known.get(name)
        if path is None or not path.is_file():
            raise UserError(f"no notebook {name!r} (there: {', '.join(known) or 'none'})")
        found.append(path)
    return found if names else list(known.values())


def run(
    path: Path, out: Path, device: str | None, progress: Callable[[int, int], None], timeout_s: int = 600
) -> Machine:
    """Run every cell from a fresh kernel of this interpreter, and write the stamped notebook to `out` in one step.

    Args:
        path: the notebook to run; its folder is the kernel's working directory.
        out: where the result goes; `path` itself replaces the old outputs.
        device: `cuda` or `sim`, handed to `refimpl.device.best()`; None lets it choose.
        progress: called with the number of the code cell that starts, from 1, and the number of code cells.
        timeout_s: the most seconds that one cell may take.
    Returns:
        The machine that it ran on.
    Raises:
        RunFailed: a cell raised, died or took too long.
    """
    notebook = _read(path)
    source = _code(notebook)
    machine = _execute(notebook, path, device, progress, timeout_s)
    stamp = Stamp(**vars(machine), cells_sha256=cells_sha256(source), modules=module_hashes(source))
    notebook.metadata[KEY] = stamp.to_json()
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(out.name + ".part")
    nbformat.write(canonical(notebook), draft)
    os.replace(draft, out)
    return machine


def check(path: Path, root: Path = ROOT) -> Findings:
    """Compare a notebook with its stamp: no kernel, no GPU, no network."""
    notebook = _read(path)
    try:
        stamp = Stamp.from_metadata(notebook.metadata, path.stem)
    except UserError as error:
        return Findings(path.stem, (str(error),), ())
    source = _code(notebook)
    errors = []
    if stamp.cells_sha256 != cells_sha256(source):
        errors.append("cells were edited after their outputs were made: run the notebook again")
    now = module_hashes(source, root)
    names = sorted(now.keys() | stamp.modules.keys())
    outdated = tuple(name for name in names if now.get(name) != stamp.modules.get(name))
    return Findings(path.stem, (*errors, *_order(notebook), *_error_outputs(notebook), *_images(notebook)), outdated)


def _read(path: Path) -> nbformat.NotebookNode:
    try:
        notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        raise UserError(f"{path.name} is not a notebook: {str(error).splitlines()[0]}") from error
    return notebook


def _code(notebook: nbformat.NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def _execute(
    notebook: nbformat.NotebookNode,
    path: Path,
    device: str | None,
    progress: Callable[[int, int], None],
    timeout_s: int,
) -> Machine:
    """Run the cells in place, then ask the same kernel what it ran on."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    from refimpl.lessons.kernel import ThisInterpreter, execute_blocking

    code_cells = [index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    numbers = {index: number for number, index in enumerate(code_cells, 1)}
    failed: list[int] = []

    def started(cell: nbformat.NotebookNode, cell_index: int) -> None:
        if cell_index in numbers:
            progress(numbers[cell_index], len(numbers))

    notebook.cells.append(nbformat.v4.new_code_cell(_ASK_MACHINE))
    client = NotebookClient(
        notebook,
        timeout=timeout_s,
        record_timing=False,
        coalesce_streams=True,
        kernel_manager_class=ThisInterpreter,
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=started,
        on_cell_error=lambda cell, cell_index, execute_reply: failed.append(cell_index),
    )
    chosen = {} if device is None else {DEVICE_VARIABLE: device}
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        execute_blocking(client, {**os.environ, **chosen, "PYTHONPATH": paths})
    except CellExecutionError as error:
        raise RunFailed(_failure(path, notebook.cells[failed[-1]], numbers.get(failed[-1], 0), error)) from error
    except RuntimeError as error:  # the kernel died, or never answered
        raise RunFailed(f"{path.name}: {error}") from error
    except CellTimeoutError as error:
        raise RunFailed(f"{path.name}: {str(error).strip().splitlines()[0]}") from error
    answer = notebook.cells.pop()
    return Machine(**_json_of(answer))


def _json_of(cell: nbformat.NotebookNode) -> dict[str, Any]:
    import json

    text = "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")
    found: dict[str, Any] = json.loads(text)
    return found


def _failure(path: Path, cell: nbformat.NotebookNode, number: int, error: Any) -> str:
    lines = cell.source.strip().splitlines()
    shown = [*lines[:8], f"… {len(lines) - 8} more lines"] if len(lines) > 8 else lines
    said = f"{path.name}: code cell {number} raised {error.ename}: {error.evalue}"
    return "\n".join([said, *(f"    {line}" for line in shown)])


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
        found = _MARKDOWN_IMAGE_WITHOUT_ALT.findall(cell.source)
        yield from (f"markdown cell {number}: no alt text for {image}" for image in found)
    for number, cell in _numbered(notebook, "code"):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        for data in (output.data for output in cell.outputs if "data" in output):
            if VIEW in data and not _NAMED_SVG.search("".join(data.get("image/svg+xml", ""))):
                yield f"code cell {number}: the widget has no picture with a <title> for readers without scripts"
            elif VIEW not in data and any(kind in data for kind in IMAGES) and not alt.strip():
                yield f"code cell {number}: no alt text; set the cell's metadata mystnb.image.alt"


def _numbered(notebook: nbformat.NotebookNode, kind: str) -> Iterator[tuple[int, nbformat.NotebookNode]]:
    return enumerate((cell for cell in notebook.cells if cell.cell_type == kind), 1)
