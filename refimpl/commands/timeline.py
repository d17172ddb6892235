"""`python -m refimpl timeline`: a program or a recorded run as a page, a picture, or a file for a viewer."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refimpl.commands.check import STDIN, named
from refimpl.program.errors import UserError, printable

if TYPE_CHECKING:
    from refimpl.commands.pictured import Pictured
    from refimpl.program import Trace

PAGE, CHROME, PERFETTO = ".html", ".json", ".pftrace"
PRINTED = (".png", ".svg", ".pdf")
ENDINGS = (PAGE, CHROME, PERFETTO, *PRINTED)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file, what of it is drawn, and where to."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a stream program, an explorable, a recorded run or a profiler trace (.json or .json.gz), known by its "
        "content; - is standard input",
    )
    parser.add_argument(
        "-o",
        dest="out",
        type=Path,
        metavar="OUT",
        help="what to write, by its ending: .html is a page that opens from disk, .json Chrome's trace events, "
        ".pftrace Perfetto's own format, .png, .svg and .pdf a picture for print (default: FILE with the ending .html, "
        "if there is no such file yet)",
    )
    parser.add_argument("--case", metavar="ID", help="the program with this id, or this variant of an explorable")
    parser.add_argument(
        "--step-op", metavar="NAME", help="the op whose starts mark the steps of a run, without its number"
    )
    parser.add_argument(
        "--before", metavar="FILE", help="for a run's page: another run, shown above it on the same axis"
    )
    parser.add_argument("--title", metavar="TEXT", help="the claim above the picture")
    parser.add_argument("--json", action="store_true", help="one JSON object on what was written")
    parser.epilog = (
        "A program's page can be changed: fences, durations, order. A run's page searches, folds and explains what was "
        "recorded; a run of 100,000 spans opens from disk. Exit code: 0 written, 2 bad input."
    )


def run(args: argparse.Namespace) -> int:
    """Read, draw, write, and say what was written."""
    out = _out(args)
    from refimpl.commands.pictured import read
    from refimpl.view.write import write_whole

    shown = read(args.file, args.case)
    if args.before is not None and (shown.trace is None or out.suffix.lower() != PAGE):
        raise UserError("--before is for the page (.html) of a recorded run: leave it out")
    trace, data = _drawn(shown, out.suffix.lower(), args)
    write_whole(data, out)
    said = {
        "path": str(out),
        "kind": out.suffix.lower().removeprefix("."),
        "of": shown.kind,
        "id": shown.id,
        "bytes": len(data),
        "spans": None if trace is None else len(trace.spans),
        "lanes": list(trace.lanes if trace is not None else shown.program.lanes if shown.program is not None else ()),
    }
    print(json.dumps(said) if args.json else printable(_sentence(said)))
    return 0


def _out(args: argparse.Namespace) -> Path:
    """Where to write, refused before anything is read."""
    out = args.out if args.out is not None else _beside(args.file)
    if out.suffix.lower() not in ENDINGS:
        raise UserError(f"-o {out}: its ending says what to write, and is one of {', '.join(ENDINGS)}")
    if not out.absolute().parent.is_dir():
        raise UserError(f"-o {out}: there is no such folder")
    if out.is_dir():
        raise UserError(f"-o {out}: is a directory; name a file in it")
    if args.out is None and out.exists():
        raise UserError(f"{out} is there already: name it with -o to replace it, or name another file")
    if args.file != STDIN and out.exists() and Path(args.file).exists() and out.samefile(args.file):
        raise UserError(f"-o {out}: is the file that is read; name another one")
    return out


def _beside(file: str) -> Path:
    from refimpl.commands.pictured import read_once

    if read_once(file):
        raise UserError(f"{named(file)} has no name to go by: say with -o what to write")
    path = Path(file)
    name = path.name.removesuffix(".gz")
    return path.with_name((name.removesuffix(".json") or name or "timeline") + PAGE)


def _drawn(shown: "Pictured", ending: str, args: argparse.Namespace) -> "tuple[Trace | None, bytes]":
    """The trace, where there is one, and what the file is to hold."""
    from refimpl.timeline import schedule

    if ending == PAGE and shown.program is not None:
        return _or_deadlock(shown), _program_page(shown, args).encode("utf-8", "xmlcharrefreplace")
    try:
        trace = shown.trace if shown.trace is not None or shown.program is None else schedule(shown.program)
    except UserError as error:
        raise UserError(f"{named(args.file)}: {error}; its page (.html) shows where it stands still") from None
    assert trace is not None, "what is read is a program or has a trace"
    if ending == PAGE:
        return trace, _run_page(shown, trace, args).encode("utf-8", "xmlcharrefreplace")
    if ending in PRINTED:
        return trace, _picture(shown, trace, ending, args)
    return trace, _exported(shown, trace, ending, args)


def _or_deadlock(shown: "Pictured") -> "Trace | None":
    """When the program runs; None where it never ends, which its page puts in words."""
    from refimpl.program import ProgramError
    from refimpl.timeline import schedule

    assert shown.program is not None, "only a program is scheduled"
    try:
        return schedule(shown.program)
    except ProgramError:
        return None


def _program_page(shown: "Pictured", args: argparse.Namespace) -> str:
    from refimpl.view.html import page
    from refimpl.view.spec import spec_of

    assert shown.program is not None, "the page of a program has one"
    given = {"title": args.title, "step_op": args.step_op}
    spec = spec_of(shown.spec if shown.spec is not None else shown.program)
    return page({**spec, **{key: value for key, value in given.items() if value is not None}})


def _run_page(shown: "Pictured", trace: "Trace", args: argparse.Namespace) -> str:
    from refimpl.commands.pictured import read
    from refimpl.view.trace_page import trace_page

    table = _columns(shown, trace, args.step_op)
    if args.title is not None:
        table["title"] = args.title
    if args.before is None:
        return trace_page(trace, table)
    other = read(args.before, None)
    if other.trace is None:
        raise UserError(f"--before {args.before}: is no recorded run but a {other.kind}; compare runs with runs")
    return trace_page(trace, table, _columns(other, other.trace, args.step_op))


def _columns(shown: "Pictured", trace: "Trace", step_op: str | None) -> dict[str, Any]:
    """A run's own columns, with the steps that are asked for."""
    from refimpl.timeline.writing.columns import columns, rounded, steps_of

    if shown.spec is None:
        return columns(trace, id=shown.id, title=shown.id, step_op=step_op)
    steps = {} if step_op is None else {"steps": [rounded(us) for us in steps_of(trace, None, step_op)]}
    return {**shown.spec, **steps}


def _picture(shown: "Pictured", trace: "Trace", ending: str, args: argparse.Namespace) -> bytes:
    from refimpl.order import check
    from refimpl.view.plot import plot

    races = check(shown.program).races if shown.program is not None else None
    spec = shown.spec or {}
    step_op, steps = args.step_op or spec.get("step_op"), () if args.step_op else spec.get("steps", ())
    picture = plot(trace, shown.program, races, title=args.title or "", step_op=step_op, steps=steps)
    return picture.encoded(ending.removeprefix("."))


def _exported(shown: "Pictured", trace: "Trace", ending: str, args: argparse.Namespace) -> bytes:
    from refimpl.timeline import to_chrome
    from refimpl.timeline.writing.perfetto import to_perfetto

    edges = shown.edges if shown.program is None else None
    if ending == PERFETTO:
        return to_perfetto(trace, shown.program, edges, title=args.title or shown.id)
    return json.dumps(to_chrome(trace, shown.program, edges), separators=(",", ":")).encode()


def _sentence(said: dict[str, object]) -> str:
    spans, lanes, size = said["spans"], said["lanes"], said["bytes"]
    assert spans is None or isinstance(spans, int)
    assert isinstance(lanes, list)
    assert isinstance(size, int)
    drawn = "stands still" if spans is None else f"{spans:,} span{'s' * (spans != 1)}"
    on = f"{len(lanes)} lane{'s' * (len(lanes) != 1)}"
    return f"wrote {said['path']}: {said['of']} {said['id']}, {drawn} on {on}, {size / 1000:,.0f} kB"
