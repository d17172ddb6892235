"""`python -m refimpl fences`: which waits, records and synchronizes stream programs need, and which they do not."""

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from refimpl.commands import cases
from refimpl.commands.check import CLEAN, FOUND
from refimpl.program.errors import printable

if TYPE_CHECKING:
    from refimpl.order import FenceReport, FenceVerdict
    from refimpl.program import Program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files and the form of the answer."""
    cases.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one object a line for each program")
    cases.add_bounds(parser, "for one fence; past that the clocks judge alone")
    parser.epilog = (
        "Exit code: 0 every fence is needed, 1 one is redundant or a program has a race or a deadlock of its own, "
        "2 bad input. A schedule is one of the program without that fence."
    )


def run(args: argparse.Namespace) -> int:
    """Leave out each fence of every program that has no race; print what follows."""
    from refimpl.order import check, judge_fences
    from refimpl.program import Verdict

    bounds = cases.bounds(args)
    programs = cases.programs(args)
    progress = cases.Progress()
    reports: list[FenceReport] = []
    racy = 0
    for number, program in enumerate(programs, 1):
        where = f"program {number} of {len(programs)}, {program.id}"
        progress.say(where)
        verdict = check(program).verdict
        if verdict is not Verdict.OK:
            racy += 1
            progress.clear()
            _print_racy(program, verdict, args.json)
            continue
        report = judge_fences(
            program,
            bounds=bounds,
            tell=lambda done, of, where=where: progress.say(f"{where}: {done} of {of} fences"),  # type: ignore[misc]
        )
        progress.clear()
        reports.append(report)
        print(json.dumps(report.to_json()) if args.json else "\n".join(map(printable, _lines(program, report))))
    if not args.json:
        print(_summary(reports, racy))
    return FOUND if racy or any(report.redundant for report in reports) else CLEAN


def _print_racy(program: "Program", verdict: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"id": program.id, "verdict": str(verdict)}))
    else:
        print(printable(f"{program.id}: has a {verdict} of its own, so its fences are not judged"))


def _lines(program: "Program", report: "FenceReport") -> Iterator[str]:
    disputed = " (disputed: NVIDIA's pages or versions differ on it)" if program.disputed else ""
    yield f"{report.id}: {len(report.needed)} needed, {len(report.redundant)} redundant{disputed}"
    for verdict in report.verdicts:
        yield f"  {verdict.fence}: {_words(verdict)}"
    if 0 < len(report.removable) < len(report.redundant):
        can, of = len(report.removable), len(report.redundant)
        yield f"  not all together: {can} of these {of} can go, such as {', '.join(map(str, report.removable))}"


def _words(verdict: "FenceVerdict") -> str:
    alone = "" if verdict.orders is not None else " (by the clocks alone: the explorer hit a bound)"
    if not verdict.needed:
        return f"redundant{alone}: {verdict.why}"
    witness = verdict.race and verdict.race.witness
    return f"needed{alone}: {verdict.why}" + (f", as in {witness.id} of the program without it" if witness else "")


def _summary(reports: list["FenceReport"], racy: int) -> str:
    needed, redundant = (sum(len(getattr(report, name)) for report in reports) for name in ("needed", "redundant"))
    together = sum(len(report.removable) for report in reports)
    count = len(reports) + racy
    words = f"{count} program" + ("" if count == 1 else "s") + f", {racy} with a race or a deadlock; "
    if not reports:
        return f"{words}`python -m refimpl check` says where"
    return words + f"fences of the others: {needed} needed, {redundant} redundant, {together} removable together"
