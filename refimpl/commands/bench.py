"""`python -m refimpl bench`: measure refimpl beside a peer, in one run."""

import argparse
import json
import sys
from typing import Any

from refimpl.program.errors import UserError

COMMAND = "python -m refimpl bench order"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what to measure, how much of it, and the form of the answer."""
    parser.add_argument(
        "what", choices=["order"], help="order: the streaming checker beside the core of torch's sanitizer"
    )
    parser.add_argument(
        "--launches", default="10000,100000,1000000", help="sizes, comma-separated (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; medians are shown (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help='one object: {"workloads": [...]}')
    parser.add_argument("--save", metavar="NAME", help="also write results/NAME.json")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from refimpl.lessons import bench_order, results

    if args.save:
        results.file_of(args.save)  # refused now rather than after the measurement
    rows = bench_order.measure(_sizes(args.launches), _repeats(args.repeats), _progress)
    workloads = list(bench_order.rows_json(rows))
    if args.save:
        _save(args.save, workloads)
    print(json.dumps({"workloads": workloads}, indent=1) if args.json else bench_order.table(rows))
    return 0


def _save(name: str, workloads: list[dict[str, Any]]) -> None:
    from refimpl.lessons import provenance, results

    origin = {"device": provenance.processor(), "driver": "", "torch": provenance.this_machine().torch}
    file = results.write(name, {"workloads": workloads}, command=COMMAND, **origin)
    print(f"wrote {file}", file=sys.stderr)


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--launches {text!r}: give whole numbers from 1, separated by commas")
    return sizes


def _repeats(count: int) -> int:
    if count < 1:
        raise UserError(f"--repeats {count}: give a whole number from 1")
    return count


def _progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
