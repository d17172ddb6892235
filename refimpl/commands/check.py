"""`python -m refimpl check`: the verdict on stream programs, with every race and deadlock explained."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from refimpl.program.errors import ProgramError, UserError, printable

if TYPE_CHECKING:
    from refimpl.order import Report
    from refimpl.program import Program

CLEAN, FOUND = 0, 1
STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files, how strictly they are judged, and the form of the answer."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help='stream programs as JSON: one program, or {"cases": [program, ...]}; - is standard input',
    )
    parser.add_argument("--json", action="store_true", help="one object a line for each program")
    parser.add_argument(
        "--as-observed",
        action="store_true",
        help="count also on orderings that current drivers are seen to give and NVIDIA's pages do not promise",
    )
    parser.add_argument(
        "--expect", action="store_true", help="exit 0 if every verdict is the one that the file expects"
    )
    parser.epilog = (
        "Exit code: 0 clean, 1 a race or a deadlock, 2 bad input. With --expect: 0 every verdict as expected, 1 not. "
        "What a file expects is the strict verdict: with --as-observed, --expect also counts as not expected each "
        "program that is right only on orderings that are seen and not promised."
    )


def run(args: argparse.Namespace) -> int:
    """Check every program of every file; print a verdict for each."""
    from refimpl.program import Verdict

    programs = [(named(file), program) for file in args.files for program in read(file)]
    if args.expect:
        for file, program in programs:
            if program.expect is None:
                raise ProgramError("has no verdict to compare with", file=file, case=program.id, field="expect")
    wrong = found = 0
    disputed: list[str] = []
    for file, program in programs:
        report = _check(program, file, args.as_observed)
        as_expected = report.verdict is program.expect
        wrong += not as_expected
        found += report.verdict is not Verdict.OK
        if args.json:
            print(json.dumps(report.to_json()))
            continue
        text = "\n".join(map(printable, _lines(report, program, args.expect)))
        if program.disputed:
            disputed.append(text)
        else:
            print(text)
    if disputed:
        rules = "as observed" if args.as_observed else "strictly"
        print(f"Disputed, since NVIDIA's pages or versions differ; judged {rules}:")
        print("\n".join(disputed))
    if not args.json:
        print(_summary(len(programs), found, wrong if args.expect else None))
    return (FOUND if wrong else CLEAN) if args.expect else (FOUND if found else CLEAN)


def named(file: str) -> str:
    """What messages call a file."""
    return "standard input" if file == STDIN else file


def read(file: str) -> tuple["Program", ...]:
    """The programs of a file, or of standard input.

    Raises:
        UserError: it cannot be read, or is no stream program.
    """
    from refimpl.program.codec import parse_programs, read_programs

    if file != STDIN:
        return read_programs(file)
    if sys.stdin is None:
        raise UserError("standard input is closed: name a file, or send one in")
    return parse_programs(sys.stdin.buffer.read(), named(file))


def _check(program: "Program", file: str, as_observed: bool) -> "Report":
    from refimpl.order import check

    try:
        return check(program, as_observed)
    except UserError as error:
        raise UserError(f"{file}, case {program.id!r}: {error}") from None


def _lines(report: "Report", program: "Program", expect: bool) -> Iterator[str]:
    verdict = str(report.verdict)
    yield f"{report.id}: {verdict}" + (f", expected {program.expect}" if expect and verdict != program.expect else "")
    if report.deadlock is not None:
        yield f"  deadlock: {report.deadlock.words}"
    for race in report.races:
        yield f"  {race}"
    for lint in report.lints:
        yield f"  note: op {lint.op}: {lint.words}"


def _summary(count: int, found: int, wrong: int | None) -> str:
    programs = f"{count} program" + ("" if count == 1 else "s")
    if wrong is None:
        return f"{programs}, {found} with a race or a deadlock"
    return f"{programs}, {count - wrong} as expected, {wrong} not"
