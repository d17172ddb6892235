"""`python -m refimpl footguns`: common mistakes with streams, each beside its fix: how often does it go wrong?"""

import argparse
import json
import sys

from refimpl.program.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which footguns, where, how often, and the form of the answer."""
    parser.add_argument("name", nargs="*", help="which ones (default: all; --list names them)")
    parser.add_argument("--list", action="store_true", help="name them, and say what each does")
    parser.add_argument("--device", choices=["cuda", "sim"], help="the device (default: the best one present)")
    parser.add_argument(
        "--runs", type=int, default=20, help="of each form; on sim each has an order of its own (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help='one object: {"device": ..., "footguns": [...]}')
    parser.add_argument("--save", metavar="NAME", help="also write results/NAME.json")
    parser.epilog = (
        "Exit code: 0 every racy form went wrong and no fixed form did, 1 otherwise, 2 bad input. On sim a race that "
        "few orders show needs more --runs."
    )


def run(args: argparse.Namespace) -> int:
    """Run them and print one row each.

    Returns:
        0; 1 if a fixed form gave a wrong value, or a racy form never did.
    """
    from refimpl.commands import chosen, tables
    from refimpl.lessons.footguns import FOOTGUNS

    names = _names(args.name, list(FOOTGUNS))
    if args.list:
        rows = [{"name": n, "hazard": FOOTGUNS[n].hazard, "words": FOOTGUNS[n].words} for n in names]
        print(json.dumps(rows, indent=1) if args.json else tables.text(rows))
        return 0
    if args.runs < 1:
        raise UserError(f"--runs {args.runs}: give a whole number from 1")
    return _measure(args, names, chosen.device(args.device))


def _measure(args: argparse.Namespace, names: list[str], asked: str | None) -> int:
    from refimpl import device as devices
    from refimpl.commands import overwriting, tables
    from refimpl.lessons import measure_footguns

    if args.save is not None:
        overwriting.refuse_other(args.save, _command(args))
    device = asked or devices.best()
    rows = measure_footguns.measure(device, args.runs, names, _progress)
    found = measure_footguns.rows_json(rows)
    if args.save is not None:
        _save(args, found)
    if args.json:
        print(json.dumps({"device": device, "footguns": found}, indent=1))
    else:
        columns = ("name", "hazard", "racy_wrong", "fixed_wrong", "runs", "right", "got", "schedule")
        print(tables.text([{key: row[key] for key in columns} for row in found]))
    quiet = [row.name for row in rows if not row.racy_wrong]
    if quiet:
        print(f"no run of {', '.join(quiet)} went wrong in {args.runs}: give more --runs", file=sys.stderr)
    return int(bool(quiet) or any(row.fixed_wrong for row in rows))


def _save(args: argparse.Namespace, found: list[dict[str, object]]) -> None:
    from refimpl.lessons import provenance, results

    machine = provenance.this_machine()
    origin = {"device": machine.device, "driver": machine.driver, "torch": machine.torch}
    file = results.write(args.save, {"runs": args.runs, "footguns": found}, command=_command(args), **origin)
    print(f"wrote {file}", file=sys.stderr)


def _command(args: argparse.Namespace) -> str:
    words = [*args.name, *(["--device", args.device] if args.device else []), "--runs", str(args.runs)]
    return " ".join(["python -m refimpl footguns", *words])


def _names(asked: list[str], known: list[str]) -> list[str]:
    for name in asked:
        if name not in known:
            raise UserError(f"footgun {name!r} is not known: use {', '.join(known)}")
    return list(dict.fromkeys(asked)) or known


def _progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
