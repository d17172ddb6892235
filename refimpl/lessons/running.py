"""Run a chapter's notebook from a fresh kernel, and stamp it with what it ran on."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nbformat

from refimpl.device.select import DEVICE_VARIABLE
from refimpl.lessons.canonical import canonical
from refimpl.lessons.keep import KEEP_VARIABLE
from refimpl.lessons.notebooks import code, read
from refimpl.lessons.provenance import KEY, Machine, Stamp
from refimpl.lessons.sources import ROOT, cells_sha256, module_hashes

Progress = Callable[[int, int], None]
SHOWN_LINES = 8
_ASK_MACHINE = "import json, refimpl.lessons.provenance as p; print(json.dumps(vars(p.this_machine())))"


class RunFailed(Exception):
    """A cell raised; the message shows the cell and the error in a few lines, and the old notebook is untouched."""


def run(path: Path, out: Path, device: str | None, progress: Progress, timeout_s: int = 600) -> Machine:
    """Run every cell from a fresh kernel of this interpreter, and write the stamped notebook to `out` in one step.

    Args:
        path: the notebook to run; its folder is the kernel's working directory.
        out: where the result goes; `path` itself replaces the old outputs, and then the cells keep their figures too.
        device: `cuda` or `sim`, handed to `refimpl.device.best()`; None lets it choose.
        progress: called with the number of the code cell that starts, from 1, and the number of code cells.
        timeout_s: the most seconds that one cell may take.

    Returns:
        The machine that it ran on.

    Raises:
        RunFailed: a cell raised, died or took too long.
    """
    notebook = read(path)
    source = code(notebook)
    machine = _execute(notebook, path, _variables(device, path.stem if out == path else None), progress, timeout_s)
    stamp = Stamp(**vars(machine), cells_sha256=cells_sha256(source), modules=module_hashes(source))
    notebook.metadata[KEY] = stamp.to_json()
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(out.name + ".part")
    nbformat.write(canonical(notebook), draft)
    os.replace(draft, out)
    return machine


def _variables(device: str | None, kept_for: str | None) -> dict[str, str]:
    """The kernel's environment: this process's, with the device, the path to refimpl, and whose figures are kept."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    given = {DEVICE_VARIABLE: device, KEEP_VARIABLE: kept_for, "PYTHONPATH": os.pathsep.join(paths)}
    inherited = {name: value for name, value in os.environ.items() if name != KEEP_VARIABLE}
    return inherited | {name: value for name, value in given.items() if value is not None}


def _execute(
    notebook: nbformat.NotebookNode, path: Path, variables: Mapping[str, str], progress: Progress, timeout_s: int
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
        kernel_manager_class=ThisInterpreter,
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=started,
        on_cell_error=lambda cell, cell_index, execute_reply: failed.append(cell_index),
    )
    try:
        execute_blocking(client, variables)
    except CellExecutionError as error:
        raise RunFailed(_failure(path, notebook.cells[failed[-1]], numbers.get(failed[-1], 0), error)) from error
    except RuntimeError as error:  # the kernel died, or never answered
        raise RunFailed(f"{path.name}: {error}") from error
    except CellTimeoutError as error:
        raise RunFailed(f"{path.name}: {str(error).strip().splitlines()[0]}") from error
    return Machine(**_json_of(notebook.cells.pop()))


def _json_of(cell: nbformat.NotebookNode) -> dict[str, Any]:
    outputs = (output for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")
    found: dict[str, Any] = json.loads("".join(output.text for output in outputs))
    return found


def _failure(path: Path, cell: nbformat.NotebookNode, number: int, error: Any) -> str:
    lines = cell.source.strip().splitlines()
    more = [f"… {len(lines) - SHOWN_LINES} more lines"] if len(lines) > SHOWN_LINES else []
    said = f"{path.name}: code cell {number} raised {error.ename}: {error.evalue}"
    return "\n".join([said, *(f"    {line}" for line in [*lines[:SHOWN_LINES], *more])])
