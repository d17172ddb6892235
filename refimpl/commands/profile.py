"""`python -m refimpl profile`: a trace of the engine as of a moment of the history, made by torch's profiler."""

import argparse
import json
from pathlib import Path

from refimpl.program.errors import UserError

MODELS = ("small", "8b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which preset, how long, and where the trace goes."""
    parser.add_argument("--preset", required=True, metavar="NAME", help="`python -m refimpl presets --all` lists them")
    parser.add_argument("--models", choices=MODELS, default="small", help="weights (default: small)")
    parser.add_argument("--batch", type=int, default=16, metavar="N", help="requests together (default: 16)")
    parser.add_argument("--steps", type=int, default=37, metavar="N", help="decode steps (default: 37)")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help=".json or .json.gz (default: PRESET.json.gz in this folder)"
    )
    parser.add_argument("--json", action="store_true", help="one object: preset, models, batch, steps, path, bytes")
    parser.epilog = (
        "Needs a GPU. `python -m refimpl trace FILE` gives the accounts of what it writes, and "
        "`python -m refimpl timeline FILE` a page. Exit code: 0 written, 2 bad input."
    )


def run(args: argparse.Namespace) -> int:
    """Profile a run of the engine, and say where the trace is."""
    from refimpl.fences import preset
    from refimpl.lessons.profile_engine import Length, profiled

    try:
        found = preset(args.preset)
    except KeyError as error:
        raise UserError(str(error.args[0])) from error
    length = Length(args.batch, args.steps)
    out = args.out or Path(f"{found.name}.json.gz")
    if not out.absolute().parent.is_dir():
        raise UserError(f"-o {out}: there is no such folder")
    if out.is_dir():
        raise UserError(f"-o {out}: is a directory; name a file in it")
    path = profiled(found, args.models, length, out)
    size = path.stat().st_size
    said = {"preset": found.name, "models": args.models, **vars(length), "path": str(path), "bytes": size}
    print(json.dumps(said) if args.json else f"{path}: {found.name}, {length.steps} steps, {size:,} bytes")
    return 0
