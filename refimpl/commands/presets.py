"""`python -m refimpl presets`: the moments of the fences' history that the engine can run as of, in order of date."""

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refimpl.fences import Preset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which ones, and the form of the answer."""
    parser.add_argument("--all", action="store_true", help="the experiments too: what upstream never ran by default")
    parser.add_argument("--json", action="store_true", help="a list: name, pr, date, expect, masked_by, why, and more")
    parser.epilog = (
        "expect: right; racy-harmful: some order spoils tokens, the accept length or the process; racy-masked: a race "
        "that something hides, which masked_by names. `python -m refimpl run --preset NAME` runs one."
    )


def run(args: argparse.Namespace) -> int:
    """Print them."""
    from refimpl.commands import tables
    from refimpl.fences import history

    chosen = [one for one in history() if args.all or not one.experiment]
    if args.json:
        print(json.dumps([_row(one) for one in chosen], indent=1))
        return 0
    columns = ("date", "name", "worker", "expect", "barrier", "event")
    print(tables.text([{name: str(getattr(one, name)) for name in columns} for one in chosen]))
    masks = {one.masked_by: [other.name for other in chosen if other.masked_by == one.masked_by] for one in chosen}
    for mask, names in masks.items():
        if mask:
            print(f"\nmasked in {', '.join(names)}: {mask}")
    return 0


def _row(preset: "Preset") -> dict[str, Any]:
    shown = ("name", "pr", "date", "expect", "masked_by", "experiment", "inference", "worker", "load", "window")
    words = ("lengths", "event", "barrier", "buffers", "why", "fate", "corrected", "engine")
    row = {name: getattr(preset, name) for name in (*shown, *words)}
    return row | {"fences": {name: str(value) for name, value in vars(preset.chosen()).items()}}
