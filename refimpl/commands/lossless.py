"""`python -m refimpl lossless`: random loads on every worker, each token compared with an oracle's."""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from refimpl.commands import chosen, overwriting
from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.lessons.lossless.campaign import RunReport

COMMAND = "python -m refimpl lossless"
CLEAN, FOUND = 0, 1
DTYPES = ("float32", "bfloat16")
MODELS = ("tiny", "nano", "small")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what to run, how often, and the form of the answer."""
    parser.add_argument("--device", choices=["sim", "cuda"], help="default: the best one here")
    parser.add_argument("--workers", default="all", help="names, comma-separated (default: all)")
    parser.add_argument("--seeds", type=int, default=20, help="orders and loads for each worker (default: 20)")
    parser.add_argument("--models", default="tiny", help="tiny (made here), nano or small (trained)")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of weights and cache")
    parser.add_argument("--json", action="store_true", help='one object: {"rows": [...], "wrong": [...]}')
    parser.add_argument("--save", metavar="NAME", help="also write results/NAME.json")
    parser.epilog = "Exit code: 0 every token is the oracle's choice, 1 some is not, 2 bad input."


def run(args: argparse.Namespace) -> int:
    """Run the loads, print what came of them."""
    if args.seeds < 1:
        raise UserError(f"--seeds {args.seeds}: give a whole number from 1")
    if args.models not in MODELS:
        raise UserError(f"--models {args.models}: use one of {', '.join(MODELS)}")
    args.device = chosen.device(args.device)
    if args.save is not None:
        overwriting.refuse_other(args.save, _command(args))
    data = _measured(args)
    if args.save is not None:
        _save(args, data)
    print(json.dumps(data, indent=1) if args.json else _table(data))
    return FOUND if data["wrong"] else CLEAN


def _measured(args: argparse.Namespace) -> dict[str, Any]:
    from refimpl import device as devices
    from refimpl.lessons.lossless.oracle import EPSILON

    device = args.device or devices.best()
    found = list(_said(_reports(args, device), args.seeds))
    dtype = next(iter(found)).setup.dtype
    rows = _rows(found)
    return {
        "models": args.models,
        "dtype": args.dtype,
        "epsilon": EPSILON[dtype],
        "seeds": args.seeds,
        "runs": len(found),
        "tokens": sum(report.tokens for report in found),
        "near_ties": sum(report.near_ties for report in found),
        "furthest": max(report.furthest for report in found),
        "rows": rows,
        "wrong": [
            f"{report.setup.worker}, {report.setup.variant}, seed {report.seed} {report.schedule}: {words}"
            for report in found
            for words in report.wrong
        ],
    }


def _reports(args: argparse.Namespace, device: str) -> "Iterable[RunReport]":
    import torch

    from refimpl.lessons.lossless.campaign import campaign
    from refimpl.lessons.lossless.load import LoadShape
    from refimpl.lessons.lossless.setups import TINY_MODELS, WORKERS
    from refimpl.lessons.lossless.stall import stalls
    from refimpl.model.shapes import VOCAB_SIZE

    if device == "sim":
        # Its operators are too small to be shared: a second thread would cost each more than it takes off.
        torch.set_num_threads(1)
    workers = tuple(WORKERS) if args.workers == "all" else tuple(args.workers.split(","))
    if args.models == TINY_MODELS:
        shape, sizes = LoadShape(requests=8, vocabulary=40), {}
    else:
        shape = LoadShape(requests=24, vocabulary=VOCAB_SIZE - 8, max_prompt=64, max_new=48)
        sizes = {"max_running_requests": 16, "max_context": 128}
    fields = {"models": args.models, "device": device, "dtype": getattr(torch, args.dtype), **sizes}
    return campaign(workers, range(args.seeds), shape, stalls if device == "cuda" else None, **fields)


def _said(reports: "Iterable[RunReport]", seeds: int) -> "Iterable[RunReport]":
    """Tells of each run as it ends."""
    for number, report in enumerate(reports, 1):
        words = f"{report.setup.worker}, {report.setup.variant}, seed {report.seed} of {seeds}"
        print(f"run {number}: {words}: {len(report.wrong)} wrong", file=sys.stderr, flush=True)
        yield report


def _rows(found: "Iterable[RunReport]") -> list[dict[str, Any]]:
    """Sums over the seeds, a row for each worker and variant."""
    sums: dict[tuple[str, str], dict[str, Any]] = defaultdict(lambda: defaultdict(int))
    for report in found:
        row = sums[report.setup.worker, report.setup.variant]
        row["runs"] += 1
        for name in ("requests", "tokens", "near_ties", "retracted", "verifies", "emitted"):
            row[name] += getattr(report, name)
        row["wrong"] += len(report.wrong)
    return [{"worker": worker, "variant": variant, **row} for (worker, variant), row in sums.items()]


def _table(data: dict[str, Any]) -> str:
    lines = [f"{'worker':12} {'variant':16} runs  tokens  excused  wrong  retracted  tokens a step"]
    for row in data["rows"]:
        a_step = row["emitted"] / max(1, row["verifies"])
        lines.append(
            f"{row['worker']:12} {row['variant']:16} {row['runs']:4} {row['tokens']:7} {row['near_ties']:8} "
            f"{row['wrong']:6} {row['retracted']:10} {a_step:14.2f}"
        )
    return "\n".join([*lines, *data["wrong"]])


def _save(args: argparse.Namespace, data: dict[str, Any]) -> None:
    from refimpl.lessons import provenance, results

    machine = provenance.this_machine()
    origin = {"device": machine.device, "driver": machine.driver, "torch": machine.torch}
    print(f"wrote {results.write(args.save, data, command=_command(args), **origin)}", file=sys.stderr)


def _command(args: argparse.Namespace) -> str:
    """Where it ran by default is said too: the same words on another machine would choose another device."""
    from refimpl.lessons import provenance

    options = {"device": args.device or provenance.this_machine().kind}
    options |= {name: getattr(args, name) for name in ("workers", "seeds", "models", "dtype")}
    return " ".join([COMMAND, *(f"--{name} {value}" for name, value in options.items())])
