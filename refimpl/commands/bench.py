"""`python -m refimpl bench`: measure refimpl beside a peer, in one run."""

import argparse
import json
import sys
from typing import Any

from refimpl.program.errors import UserError

COMMAND = "python -m refimpl bench"
LAUNCHES = "10000,100000,1000000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what to measure, how much of it, and the form of the answer."""
    parser.add_argument(
        "what",
        choices=["order", "sim"],
        help="order: the streaming checker beside the core of torch's sanitizer; "
        "sim: operators on the simulated device beside plain CPU torch",
    )
    parser.add_argument("--launches", help=f"order: sizes, comma-separated (default: {LAUNCHES})")
    parser.add_argument("--repeats", type=int, help="runs of each; medians are shown (default: order 3, sim 30)")
    parser.add_argument("--json", action="store_true", help='one object: {"workloads": [...]}, {"rows": [...]} for sim')
    parser.add_argument("--save", metavar="NAME", help="also write results/NAME.json")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from refimpl.lessons import results

    if args.save is not None:
        results.file_of(args.save)  # refused now rather than after the measurement
    data, table = _sim(args) if args.what == "sim" else _order(args)
    if args.save is not None:
        _save(args.save, args.what, data)
    print(json.dumps(data, indent=1) if args.json else table)
    return 0


def _order(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from refimpl.lessons import bench_order

    rows = bench_order.measure(_sizes(args.launches or LAUNCHES), _repeats(args.repeats, 3), _progress)
    return {"workloads": list(bench_order.rows_json(rows))}, bench_order.table(rows)


def _sim(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    if args.launches is not None:
        raise UserError(f"--launches {args.launches}: bench sim has no sizes, so leave it out")
    from refimpl.lessons import bench_sim

    rows = bench_sim.measure(_repeats(args.repeats, 30), progress=_progress)
    return {"rows": list(bench_sim.rows_json(rows))}, bench_sim.table(rows)


def _save(name: str, what: str, data: dict[str, Any]) -> None:
    from refimpl.lessons import provenance, results

    origin = {"device": provenance.processor(), "driver": "", "torch": provenance.this_machine().torch}
    file = results.write(name, data, command=f"{COMMAND} {what}", **origin)
    print(f"wrote {file}", file=sys.stderr)


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--launches {text!r}: give whole numbers from 1, separated by commas")
    return sizes


def _repeats(count: int | None, default: int) -> int:
    if count is None:
        return default
    if count < 1:
        raise UserError(f"--repeats {count}: give a whole number from 1")
    return count


def _progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
