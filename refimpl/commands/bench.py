"""`python -m refimpl bench`: measure refimpl beside a peer, in one run."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from refimpl.commands import bench_options as options
from refimpl.commands import overwriting
from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.lessons.bench_engine.origin import Origin
    from refimpl.lessons.results import Result

Keep: TypeAlias = Callable[[Mapping[str, Any]], None]
COMMAND = "python -m refimpl bench"
LAUNCHES = "10000,100000,1000000"
ENGINES = ("engine", "fences")
"""What runs the engine, on any device."""
OPTIONS = {
    "launches": ("order",),
    "repeats": ("order", "sim", "view"),
    "only": ENGINES,
    "seconds": ENGINES,
    "device": ENGINES,
    "models": ENGINES,
    "add": ENGINES,
}
"""Which benchmarks take an option that not all take."""
TOLD = ("device", "models", "only", "launches", "repeats")
"""Options that a saved result tells of."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what to measure, how much of it, and the form of the answer."""
    parser.add_argument(
        "what",
        choices=["order", "sim", "view", "engine", "fences"],
        help="order: the streaming checker beside the core of torch's sanitizer; "
        "sim: operators on the simulated device beside plain CPU torch; "
        "view: frames a second of the view of a recorded run in Chromium, and how soon it opens; "
        "engine: decoding beside transformers and beside the bounds of the device; "
        "fences: a step of the engine under each fence, beside its control",
    )
    parser.add_argument("--launches", help=f"order: sizes, comma-separated (default: {LAUNCHES})")
    parser.add_argument(
        "--repeats", type=int, help="runs of each; medians are shown (default: order 3, sim 30, view 5)"
    )
    parser.add_argument("--only", metavar="PARTS", help="engine, fences: which parts, comma-separated (default: all)")
    parser.add_argument("--models", metavar="NAMES", help="engine, fences: which weights (default: the device's)")
    parser.add_argument(
        "--seconds", type=float, help=f"engine, fences: no part begins after so long (default: {options.SECONDS:g})"
    )
    parser.add_argument("--device", choices=["cuda", "sim"], help="engine, fences: where (default: the best device)")
    parser.add_argument(
        "--json",
        action="store_true",
        help='one object: {"workloads": [...]} for order, {"rows": [...]} for sim and view; '
        "a list a part for engine and fences",
    )
    parser.add_argument("--save", metavar="NAME", help="also write results/NAME.json")
    parser.add_argument(
        "--add",
        action="store_true",
        default=None,
        help="engine, fences: keep what results/NAME.json holds and add this run to it; it says which figures are its",
    )


def run(args: argparse.Namespace) -> int:
    """Measure and print; 1 if a part of it failed, or nothing was measured."""
    from refimpl.lessons import results

    _refuse_foreign(args)
    keep = _keeper(args)  # what cannot be saved is refused now rather than after the measurement
    measure = {"sim": _sim, "order": _order, "view": _view, "engine": _engine, "fences": _fences}[args.what]
    data, table = measure(args, keep)
    measured = _is_measured(args, data)
    if args.save is not None:
        keep(data)
        file = results.file_of(args.save)
        print(f"wrote {file}" if measured else f"nothing was measured, so {file} was not written", file=sys.stderr)
    print(json.dumps(data, indent=1) if args.json else table)
    return 1 if data.get("failed") or not measured else 0


def _refuse_foreign(args: argparse.Namespace) -> None:
    """An option of another benchmark would be ignored in silence."""
    for name, of in OPTIONS.items():
        if getattr(args, name) is not None and args.what not in of:
            raise UserError(f"--{name}: bench {args.what} does not take it, so leave it out")


def _order(args: argparse.Namespace, _: Keep) -> tuple[dict[str, Any], str]:
    from refimpl.lessons import bench_order

    rows = bench_order.measure(options.sizes(args.launches or LAUNCHES), options.repeats(args.repeats, 3), _progress)
    return {"workloads": list(bench_order.rows_json(rows))}, bench_order.table(rows)


def _sim(args: argparse.Namespace, _: Keep) -> tuple[dict[str, Any], str]:
    from refimpl.lessons import bench_sim

    rows = bench_sim.measure(options.repeats(args.repeats, 30), progress=_progress)
    return {"rows": list(bench_sim.rows_json(rows))}, bench_sim.table(rows)


def _view(args: argparse.Namespace, _: Keep) -> tuple[dict[str, Any], str]:
    from refimpl.lessons import bench_view

    rows = bench_view.measure(repeats=options.repeats(args.repeats, bench_view.REPEATS), progress=_progress)
    return {"rows": list(bench_view.rows_json(rows))}, bench_view.table(rows)


def _engine(args: argparse.Namespace, keep: Keep) -> tuple[dict[str, Any], str]:
    from refimpl.lessons.bench_engine.report import Run, recorded
    from refimpl.lessons.bench_engine.table import table

    only, seconds, device = options.parts(args), options.seconds(args), options.device(args)
    models = options.engine_models(args)
    accept_lens = recorded(_saved(args).data) if args.add else None
    report = Run(device, only, seconds, _progress, keep, models, accept_lens=accept_lens).measure()
    return report, table(report)


def _fences(args: argparse.Namespace, keep: Keep) -> tuple[dict[str, Any], str]:
    from refimpl.lessons.bench_engine.table import table
    from refimpl.lessons.history_timing.report import Run

    only, seconds, device = options.parts(args), options.seconds(args), options.device(args)
    report = Run(device, only, seconds, _progress, keep, options.fence_models(args)).measure()
    return report, table(report)


def _keeper(args: argparse.Namespace) -> Keep:
    """What writes figures into the file of `--save`, as often as it is called.

    Raises:
        UserError: no name of a file; or `--add` to a file that is not there, or to one of another device.
    """
    if args.add:
        return _adder(args)
    if args.save is None:
        return lambda _: None
    counts = args.what not in ENGINES  # of the others it is looked at which rows would be lost
    overwriting.refuse_other(args.save, _origin(args).command if counts else f"{COMMAND} {args.what}", options=counts)
    _refuse_loss(args)
    return lambda data: _write(args.save, data, _origin(args)) if _is_measured(args, data) else None


def _refuse_loss(args: argparse.Namespace) -> None:
    """A report of some parts or weights does not take the place of one of more."""
    from refimpl.lessons import results

    if args.what in ENGINES and results.file_of(args.save).is_file():
        models = options.engine_models(args) if args.what == "engine" else options.fence_models(args)
        lost = overwriting.lost_groups(results.load(args.save), options.parts(args), models)
        overwriting.refuse_loss(args.save, lost, "--add")


def _is_measured(args: argparse.Namespace, data: Mapping[str, Any]) -> bool:
    return args.what not in ENGINES or overwriting.is_measured(data)


def _adder(args: argparse.Namespace) -> Keep:
    """What adds figures to the file as it is now, as often as it is called."""
    import torch

    from refimpl.lessons.bench_engine.added import added, check_same_device
    from refimpl.lessons.bench_engine.bars import bars as engine_bars
    from refimpl.lessons.bench_engine.origin import Origin
    from refimpl.lessons.history_timing.bars import bars as fence_bars

    saved = _saved(args)
    torch.zeros(1, device=options.device(args))  # it is known by its name once it is in use
    origin = _origin(args)
    check_same_device(saved, origin.device)
    judge = engine_bars if args.what == "engine" else fence_bars
    return lambda data: _write(args.save, added(saved, data, origin, judge), Origin.of(vars(saved)))


def _write(name: str, data: Mapping[str, Any], origin: "Origin") -> None:
    from refimpl.lessons import results

    results.write(name, data, **asdict(origin))


def _saved(args: argparse.Namespace) -> "Result":
    from refimpl.lessons import results

    if args.save is None:
        raise UserError("--add: say which result it is added to, with --save NAME")
    results.check_writable(args.save)
    saved = results.load(args.save)
    if f"{COMMAND} {args.what}" not in saved.command:
        raise UserError(f"--add: result {args.save} is no report of bench {args.what}: save the run under another name")
    return saved


def _origin(args: argparse.Namespace) -> "Origin":
    from refimpl.lessons import provenance
    from refimpl.lessons.bench_engine.origin import Origin

    machine = provenance.this_machine()
    # What no GPU took part in is told by its processor.
    device = machine.device if args.what in ENGINES else provenance.processor()
    driver = machine.driver if args.what in ENGINES else ""
    given = [f" --{name} {getattr(args, name)}" for name in TOLD if getattr(args, name)]
    given += [f" --save {args.save} --add"] if args.add else []
    command = f"{COMMAND} {args.what}{''.join(given)}"
    return Origin(device, driver, machine.torch, machine.date, command)


def _progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
