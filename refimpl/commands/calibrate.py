"""`python -m refimpl calibrate`: measure what calls, ops and copies cost on the GPU present, for `sim`."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.device.calibration import Calibration, Sample


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the figures go, how long to measure, and the prediction."""
    parser.add_argument("-o", dest="file", type=Path, default=Path("calibration.json"), metavar="FILE",
                        help="where to write the figures (default: %(default)s)")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="fewer rounds for the host's figures")
    parser.add_argument("--json", action="store_true", help="print what is written rather than a table")
    parser.add_argument(
        "--predict",
        metavar="CALIBRATION",
        help="measure nothing: predict the first chapter's loop with this calibration, a name such as h200 or a file, "
        "and compare with its measurement",
    )
    parser.add_argument("--save", metavar="NAME", help="with --predict: also write results/NAME.json")


def run(args: argparse.Namespace) -> int:
    """Measure and write, or predict and compare."""
    if args.save and not args.predict:
        raise UserError("--save is for --predict: name the file of a calibration with -o")
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

    regions = predict_overlap.regions()
    calibration = calibrate("cuda", _origin(quick=args.quick), regions, QUICK if args.quick else FULL)
    calibration.save(args.file)
    print(f"wrote {args.file}", file=sys.stderr)
    print(json.dumps(calibration.to_json(), indent=1) if args.json else _table(calibration))
    return 0


def _origin(quick: bool) -> dict[str, str]:
    from refimpl.lessons import provenance

    machine = provenance.this_machine()
    return {
        "device": machine.device,
        "driver": machine.driver,
        "torch": machine.torch,
        "python": machine.python,
        "processor": provenance.processor(),
        "date": machine.date,
        "command": "python -m refimpl calibrate" + (" --quick" if quick else ""),
    }


def _table(calibration: "Calibration") -> str:
    from refimpl.commands import tables

    regions = {f"region {name}": region.device for name, region in calibration.regions.items()}
    figures = {**calibration.samples, **calibration.operators, **regions}
    return tables.text([_row(name, sample) for name, sample in figures.items()])


def _row(name: str, sample: "Sample") -> dict[str, object]:
    row = asdict(sample)
    return {"figure": name, **{key: f"{row[key]:.4g}" for key in ("median", "p10", "p90")}, "n": sample.n,
            "unit": sample.unit}  # fmt: skip


def _predict(args: argparse.Namespace) -> int:
    from refimpl.commands import tables
    from refimpl.device.calibration import load
    from refimpl.lessons import predict_overlap, results

    if args.save:
        results.file_of(args.save)  # refused now rather than after the prediction
    calibration = load(args.predict)
    comparisons = predict_overlap.against_the_chapter(calibration)
    rows = [asdict(comparison) for comparison in comparisons]
    within = sum(comparison.within for comparison in comparisons)
    if args.save:
        file = results.write(
            args.save,
            {"calibrated": calibration.origin["date"], "within": within, "of": len(rows), "rows": rows},
            device=f"the simulated device with the calibration of {calibration.origin['device']}",
            driver=calibration.origin["driver"],
            torch=calibration.origin["torch"],
            command=f"python -m refimpl calibrate --predict {args.predict} --save {args.save}",
        )
        print(f"wrote {file}", file=sys.stderr)
    if args.json:
        print(json.dumps({"rows": rows}, indent=1))
    else:
        print(tables.text(rows))
        print(f"{within} of {len(rows)} within {predict_overlap.SHARE:.0%} or {predict_overlap.LEAST_US:g} us")
    return 0
