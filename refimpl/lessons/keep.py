"""Figures of a chapter's own run, kept as the result file that prose quotes: text and outputs then tell of one run."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from refimpl.lessons import results
from refimpl.lessons.provenance import this_machine
from refimpl.lessons.sources import ROOT
from refimpl.view.plot import Picture

PICTURES = ROOT / "book" / "_static"
KEEP_VARIABLE = "STREAM_ORDER_KEEP"
"""Set by the runner, to the notebook's name, when it replaces the committed outputs."""


def keep(name: str, data: Mapping[str, Any]) -> Path | None:
    """Write ``results/NAME.json`` when the runner replaces committed outputs with a GPU's; elsewhere do nothing.

    Args:
        name: of the result file.
        data: figures; JSON values.

    Returns:
        The file that was written, or None: a run on the simulated device is no measurement, and a reader's own run
        leaves the committed figures alone.
    """
    notebook, machine = os.environ.get(KEEP_VARIABLE), this_machine()
    if not notebook or machine.kind != "cuda":
        return None
    return results.write(
        name,
        data,
        device=machine.device,
        driver=machine.driver,
        torch=machine.torch,
        command=f"python -m refimpl notebooks run {notebook}",
    )


def keep_picture(name: str, picture: Picture) -> Path | None:
    """Write ``book/_static/NAME.png`` under the same condition as ``keep``: a picture of a measured run.

    Args:
        name: of the file, without its ending.
        picture: what to draw.
    """
    if not os.environ.get(KEEP_VARIABLE) or this_machine().kind != "cuda":
        return None
    file = PICTURES / f"{name}.png"
    picture.save(file)
    return file
