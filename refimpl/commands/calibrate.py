"""`python -m refimpl calibrate`: measure what calls, ops and copies cost on the GPU present, for `sim`."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refimpl.commands import overwriting
from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.device.calibration import Calibration, Sample

COMMAND = "python -m refimpl calibrate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the figures go, how long to measure, and the prediction."""
    parser.add_argument(
        "-o",
        dest="file",
        type=Path,
        default=Path("calibration.json"),
        metavar="FILE",
        help="where to write the figures (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds for the host's figures")
    parser.add_argument("--loop", metavar="NAME", help="then measure the first chapter's loop into results/NAME.json")
    parser.add_argument(
        "--predict",
        metavar="CALIBRATION",
        help="measure nothing: predict that loop with a calibration, a name such as h200 or a file, and compare",
    )
    parser.add_argument("--measured", metavar="NAME", help="compare with results/NAME.json (default: overlap_loop)")
    parser.add_argument("--save", metavar="NAME", help="write the comparison into results/NAME.json too")
    parser.add_argument("--json", action="store_true", help="print JSON rather than a table")


def run(args: argparse.Namespace) -> int:
    """Measure and write, or predict and compare."""
    from refimpl.lessons import results

    if args.predict and args.loop:
        raise UserError("--loop measures on a GPU and --predict measures nothing: give one of them")
    if not args.predict and (args.save or args.measured):
        raise UserError("--save and --measured are for --predict: name the file of a calibration with -o")
    if args.measured:
        results.file_of(args.measured)
    if args.loop:
        overwriting.refuse_other(args.loop, _measure_command(args))
    if args.save:
        overwriting.refuse_other(args.save, _predict_command(args))
    return _predict(args) if args.predict else _measure(args)


def _measure(args: argparse.Namespace) -> int:
    import torch

    if not torch.cuda.is_available():
        raise UserError("a calibration measures a GPU, and there is none that this PyTorch can use")
    if not args.file.absolute().parent.is_dir():
        raise UserError(f"{args.file}: there is no such folder")
    from refimpl.device.calibration.amount import FULL, QUICK
    from refimpl.device.calibration.calibrate import calibrate
    from refimpl.lessons import predict_overlap

    step = predict_overlap.captured_step()
    amount = QUICK if args.quick else FULL
    calibration = calibrate("cuda", _origin(args), predict_overlap.regions(step), amount)
    calibration.save(args.file)
    print(f"wrote {args.file}", file=sys.stderr)
    print(json.dumps(calibration.to_json(), indent=1) if args.json else _table(calibration))
    if args.loop:
        _measure_loop(args.loop, predict_overlap.measured_loop(step), calibration)
    return 0


def _measure_loop(name: str, rows: list[dict[str, Any]], calibration: "Calibration") -> None:
    from refimpl.lessons import predict_overlap, results

    origin = {field: calibration.origin[field] for field in ("device", "driver", "torch", "command")}
    print(f"wrote {results.write(name, {'rows': rows}, **origin)}", file=sys.stderr)
    print(_steadiness(predict_overlap.unsteadiness(rows)), file=sys.stderr)


def _steadiness(times: float) -> str:
    return f"while the loop was measured the host's calls took up to {times:.2f} times as long in one row as in another"


def _origin(args: argparse.Namespace) -> dict[str, str]:
    from refimpl.lessons import provenance

    machine = provenance.this_machine()
    return {
        "device": machine.device,
        "driver": machine.driver,
        "torch": machine.torch,
        "python": machine.python,
        "processor": provenance.processor(),
        "date": machine.date,
        "command": _measure_command(args),
    }


def _measure_command(args: argparse.Namespace) -> str:
    return COMMAND + (" --quick" if args.quick else "") + (f" --loop {args.loop}" if args.loop else "")


def _predict_command(args: argparse.Namespace) -> str:
    words = f"--measured {args.measured} " if args.measured else ""
    return f"{COMMAND} --predict {args.predict} {words}--save {args.save}"


def _table(calibration: "Calibration") -> str:
    from refimpl.commands import tables

    regions = {f"region {name}": region.device for name, region in calibration.regions.items()}
    figures = {**calibration.samples, **calibration.operators, **regions}
    return tables.text([_row(name, sample) for name, sample in figures.items()])


def _row(name: str, sample: "Sample") -> dict[str, object]:
    spread = {key: f"{getattr(sample, key):.4g}" for key in ("median", "p10", "p90")}
    return {"figure": name, **spread, "n": sample.n, "unit": sample.unit}


def _predict(args: argparse.Namespace) -> int:
    from refimpl.commands import tables
    from refimpl.device.calibration import load
    from refimpl.lessons import predict_overlap, results

    calibration, measured = load(args.predict), results.load(args.measured or predict_overlap.MEASURED)
    loop = measured.data.get("rows", [])
    if not loop or not all(isinstance(row, dict) and "host_busy_ms" in row for row in loop):
        raise UserError(f"result {measured.name}: it has no rows of the loop; make them with calibrate --loop")
    comparisons = predict_overlap.against(calibration, loop)
    rows = [asdict(comparison) for comparison in comparisons]
    unsteadiness = predict_overlap.unsteadiness(loop)
    found = {
        "measured": measured.name,
        "unsteadiness": round(unsteadiness, 3),
        "within": sum(comparison.within for comparison in comparisons),
        "of": len(rows),
        "largest_step_share": predict_overlap.largest_step_share(comparisons),
        "largest_blocked_us": predict_overlap.largest_blocked_us(comparisons),
        "rows": rows,
    }
    if args.save is not None:
        origin = {field: calibration.origin[field] for field in ("driver", "torch")}
        device = f"the simulated device with the calibration of {calibration.origin['device']}"
        file = results.write(args.save, found, device=device, command=_predict_command(args), **origin)
        print(f"wrote {file}", file=sys.stderr)
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        print(tables.text(rows))
        tolerance = f"{predict_overlap.SHARE:.0%} or {predict_overlap.LEAST_US:g} us, whichever is more"
        print(f"{found['within']} of {len(rows)} are within {tolerance}")
        print(_steadiness(unsteadiness))
    return 0
