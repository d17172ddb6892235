"""`python -m refimpl bench`: measure refimpl beside a peer, in one run."""

import argparse
import json
import sys
from functools import partial
from typing import Any

from refimpl.program.errors import UserError

COMMAND = "python -m refimpl bench"
LAUNCHES = "10000,100000,1000000"
SECONDS = 600.0
OPTIONS = {
    "launches": ("order",),
    "repeats": ("order", "sim"),
    "only": ("engine",),
    "seconds": ("engine",),
    "device": ("engine",),
    "models": ("engine",),
}
"""Which benchmarks take an option that not all take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what to measure, how much of it, and the form of the answer."""
    parser.add_argument(
        "what",
        choices=["order", "sim", "engine"],
        help="order: the streaming checker beside the core of torch's sanitizer; "
        "sim: operators on the simulated device beside plain CPU torch; "
        "engine: decoding beside transformers and beside the bounds of the device",
    )
    parser.add_argument("--launches", help=f"order: sizes, comma-separated (default: {LAUNCHES})")
    parser.add_argument("--repeats", type=int, help="runs of each; medians are shown (default: order 3, sim 30)")
    parser.add_argument("--only", metavar="PARTS", help="engine: which parts, comma-separated (default: all)")
    parser.add_argument("--models", metavar="NAMES", help="engine: which weights (default: the device's)")
    parser.add_argument("--seconds", type=float, help=f"engine: no part begins after so long (default: {SECONDS:g})")
    parser.add_argument("--device", choices=["cuda", "sim"], help="engine: where (default: the best device)")
    parser.add_argument(
        "--json",
        action="store_true",
        help='one object: {"workloads": [...]} for order, {"rows": [...]} for sim, a list a part for engine',
    )
    parser.add_argument("--save", metavar="NAME", help="also write results/NAME.json")


def run(args: argparse.Namespace) -> int:
    """Measure and print; 1 if a part of it failed."""
    from refimpl.lessons import results

    _refuse_foreign(args)
    if args.save is not None:
        results.file_of(args.save)  # refused now rather than after the measurement
    data, table = {"sim": _sim, "order": _order, "engine": _engine}[args.what](args)
    if args.save is not None:
        _save(args, data)
        print(f"wrote {results.file_of(args.save)}", file=sys.stderr)
    print(json.dumps(data, indent=1) if args.json else table)
    return 1 if data.get("failed") else 0


def _refuse_foreign(args: argparse.Namespace) -> None:
    """An option of another benchmark would be ignored in silence."""
    for name, of in OPTIONS.items():
        if getattr(args, name) is not None and args.what not in of:
            raise UserError(f"--{name}: bench {args.what} does not take it, so leave it out")


def _order(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from refimpl.lessons import bench_order

    rows = bench_order.measure(_sizes(args.launches or LAUNCHES), _repeats(args.repeats, 3), _progress)
    return {"workloads": list(bench_order.rows_json(rows))}, bench_order.table(rows)


def _sim(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from refimpl.lessons import bench_sim

    rows = bench_sim.measure(_repeats(args.repeats, 30), progress=_progress)
    return {"rows": list(bench_sim.rows_json(rows))}, bench_sim.table(rows)


def _engine(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from refimpl import device as devices
    from refimpl.lessons.bench_engine.plan import chosen
    from refimpl.lessons.bench_engine.report import PARTS, Run
    from refimpl.lessons.bench_engine.table import table

    only = PARTS if args.only is None else tuple(args.only.split(","))
    unknown = [part for part in only if part not in PARTS]
    if unknown:
        raise UserError(f"--only {args.only}: {unknown[0]!r} is no part, use some of {','.join(PARTS)}")
    seconds = SECONDS if args.seconds is None else args.seconds
    if not seconds > 0:
        raise UserError(f"--seconds {args.seconds:g}: give a number above 0")
    keep = partial(_save, args) if args.save is not None else lambda _: None
    device = args.device or devices.best()
    models = chosen(device, None if args.models is None else args.models.split(","))
    report = Run(device, only, seconds, _progress, keep, models).measure()
    return report, table(report)


def _save(args: argparse.Namespace, data: dict[str, Any]) -> None:
    from refimpl.lessons import provenance, results

    machine = provenance.this_machine()
    # What no GPU took part in is told by its processor.
    device = machine.device if args.what == "engine" else provenance.processor()
    driver = machine.driver if args.what == "engine" else ""
    given = [f" --{name} {getattr(args, name)}" for name in ("device", "models", "only") if getattr(args, name)]
    origin = {"device": device, "driver": driver, "torch": machine.torch}
    results.write(args.save, data, command=f"{COMMAND} {args.what}{''.join(given)}", **origin)


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
