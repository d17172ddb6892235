"""`python -m refimpl notebooks run` and `notebooks check`."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile

from refimpl.program.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `run` and `check`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_ = actions.add_parser("run", help="run notebooks from a fresh kernel and stamp them", description=run.__doc__)
    run_.add_argument("names", nargs="*", metavar="NAME", help="a notebook's name or path (default: all)")
    run_.add_argument("--device", choices=["cuda", "sim"], help="the device (default: the best one present)")
    run_.add_argument("--out", type=Path, metavar="DIR", help="write here, and leave the notebooks as they are")
    run_.add_argument(
        "--timeout", type=int, default=600, metavar="SECONDS", help="most time for one cell (default: 600)"
    )
    check_ = actions.add_parser("check", help="check stamps, order and outputs without running anything")
    check_.add_argument("names", nargs="*", metavar="NAME", help="a notebook's name or path (default: all)")
    check_.add_argument("--strict", action="store_true", help="changed modules are an error too")
    check_.add_argument("--json", action="store_true", help="one object: notebooks, with errors and outdated")


def run(args: argparse.Namespace) -> int:
    """Run notebooks from a fresh kernel of this Python and stamp them; a run that fails changes nothing."""
    return _run(args) if args.action == "run" else _check(args)


def _run(args: argparse.Namespace) -> int:
    from refimpl.commands import chosen
    from refimpl.lessons import notebooks, running

    if args.timeout < 1:
        raise UserError(f"--timeout {args.timeout}: give a whole number of seconds from 1")
    paths = notebooks.find(args.names)
    chosen.device(args.device)
    if args.out:
        _make_writable(args.out)
    failures = 0
    for path in paths:
        out = args.out / path.name if args.out else path
        try:
            machine = running.run(path, out, args.device, _progress(path.stem), args.timeout)
            print(f"{out}: {machine.sentence()}")
        except running.RunFailed as failure:
            print(f"\n{failure}\n{path.name} keeps its old outputs.", file=sys.stderr)
            failures += 1
    return 1 if failures else 0


def _make_writable(folder: Path) -> None:
    """The folder is there and takes files: better known now than after a chapter's minutes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"--out {folder}: nothing can be written there ({error.strerror or error})") from None


def _progress(name: str) -> Callable[[int, int], None]:
    """A line that rewrites itself on a terminal, and one line a cell elsewhere."""
    start, end = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")

    def show(number: int, of: int) -> None:
        print(f"{start}{name}: cell {number} of {of}", end="\n" if number == of else end, file=sys.stderr, flush=True)

    return show


def _check(args: argparse.Namespace) -> int:
    from refimpl.lessons import notebooks

    found = [notebooks.check(path) for path in notebooks.find(args.names)]
    if args.json:
        print(json.dumps({"notebooks": [vars(findings) for findings in found]}, indent=1))
    else:
        for findings in found:
            _print(findings.name, findings.errors, findings.outdated)
    return 1 if any(findings.errors or (args.strict and findings.outdated) for findings in found) else 0


def _print(name: str, errors: tuple[str, ...], outdated: tuple[str, ...]) -> None:
    print(f"{name}: {'outputs belong to the cells' if not errors else 'ERROR'}")
    for error in errors:
        print(f"  {error}")
    if outdated:
        print(f"  changed since it ran: {', '.join(outdated)}")
