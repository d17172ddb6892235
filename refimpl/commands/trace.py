"""`python -m refimpl trace`: what a recorded run spent its time with, and two runs side by side."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from refimpl.commands.check import named
from refimpl.program.errors import UserError, printable

if TYPE_CHECKING:
    from refimpl.timeline.reports.report import Report

TOP = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files, how much of each list is shown, and the form of the answer."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a trace of torch.profiler (.json or .json.gz), a recorded run, a chrome trace or a stream program; - is "
        "standard input; of several files the main figures are also set side by side",
    )
    parser.add_argument("--json", action="store_true", help="one object a line for each file")
    parser.add_argument(
        "--kernels", action="store_true", help="each kernel by itself, so that gaps within a graph count as idle"
    )
    parser.add_argument("--top", type=int, default=TOP, metavar="N", help=f"rows of each list (default: {TOP})")
    parser.add_argument("--case", metavar="ID", help="the program with this id")
    parser.epilog = (
        "Prints the calls that held the host, longest total first; the time in which no stream of the GPU ran, by "
        "cause; how long before its start each piece of work was launched; the critical path; which streams overlap. A "
        "stream program is scheduled first. Exit code: 0 printed, 2 bad input."
    )


def run(args: argparse.Namespace) -> int:
    """Read every file, then print the accounts of each, and all of them side by side."""
    if args.top < 1:
        raise UserError(f"--top {args.top}: it is at least 1")
    reports = [_report(file, args.case, not args.kernels) for file in args.files]
    if args.json:
        print("\n".join(json.dumps(report.to_json()) for report in reports))
        return 0
    from refimpl.timeline.reports.report_text import comparison, lines

    blocks = [lines(report, args.top) for report in reports]
    if len(reports) > 1:
        blocks.append(comparison(dict(zip(_columns(args.files), reports, strict=True))))
    print("\n\n".join("\n".join(map(printable, block)) for block in blocks))
    return 0


def _report(file: str, case: str | None, merge_launches: bool) -> "Report":
    from refimpl.commands.pictured import read
    from refimpl.timeline import schedule
    from refimpl.timeline.reports.report import report

    found = read(file, case, merge_launches)
    trace = found.trace
    if trace is None and found.program is not None:
        trace = schedule(found.program)
    if trace is None or not trace.spans:
        raise UserError(f"{named(file)} shows nothing that ran")
    return report(trace, named(file))


def _columns(files: list[str]) -> list[str]:
    """What the columns are called: the file's name, with a number where two have one."""
    names = [Path(file).name.removesuffix(".gz").removesuffix(".json")[:28] or named(file) for file in files]
    return [name if names.count(name) == 1 else f"{n}: {name}" for n, name in enumerate(names, start=1)]
