"""`python -m refimpl`: finds the command, and turns what went wrong into one sentence and an exit code."""

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper

from refimpl import __version__
from refimpl.program.errors import UserError, printable

DESCRIPTION = "Stream Order: prove, draw and measure the order of GPU streams."
COMMANDS = {
    "check": "prove stream programs free of races and deadlocks, or show the counterexample",
    "explore": "search all orders of stream programs, and show the shortest one that goes wrong",
    "replay": "run a stream program in one order on the simulated device, with the values that come out",
    "timeline": "draw a program, a recorded run or a profiler trace: a page, a picture, or a file for a viewer",
    "trace": "what held the host, why the GPU was idle, the critical path: accounts of a trace or a recorded run",
    "fences": "leave out each wait, record and synchronize: which are needed, which are redundant",
    "bench": "measure refimpl beside a peer",
    "calibrate": "measure what calls, ops and copies cost on the GPU present, for the simulated device",
    "demo": "five seconds of the two-stream loop, with and without its fence, on the best device present",
    "footguns": "common mistakes with streams beside their fixes: how often each goes wrong, on either device",
    "generate": "continue texts with the engine: speculative, overlapped, on cuda or on the simulated device",
    "presets": "the moments of the fences' history that the engine runs as of, with what is expected of each",
    "run": "a fixed workload with the fences of one preset: tokens, races, what the host waits for, what a step costs",
    "history": "every preset of the history run many times, and judged beside the table",
    "profile": "a torch profiler's trace of the engine as of a moment of the history, on a GPU",
    "lossless": "random loads on every worker, each token compared with an oracle's",
    "train": "make the models: text, target, its own text, drafts, their acceptance",
    "notebooks": "run the chapters, or check that their outputs belong to their cells",
}
BAD_INPUT, BUG, INTERRUPTED, PIPE_CLOSED = 2, 70, 130, 141
"""Exit codes beside the command's own: none of them is 1, which says that a command found what it looks for."""

EXIT_CODES = (
    "Exit code: 0 all went well, 1 a command found what it looks for or a part of it failed (its own --help says "
    f"which), {BAD_INPUT} bad input, {BUG} a bug of ours, {INTERRUPTED} Ctrl-C, {PIPE_CLOSED} a closed pipe."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Returns:
        What the command says; 2 for bad input and for files that cannot be read or written, 70 for a bug of ours, 130
        for Ctrl-C, 141 for a closed pipe.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _take_any_text()
    name = next((word for word in words if not word.startswith("-")), None)
    try:
        args = _parser(chosen=name).parse_args(words)
        if sys.stdout is None:
            raise UserError("standard output is closed: leave it open, or send it to /dev/null")
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except UserError as error:
        _say(f"refimpl {name}: {printable(str(error))}")
        return BAD_INPUT
    except ModuleNotFoundError as error:
        missing = (error.name or "a package").partition(".")[0]
        if missing == "refimpl":
            raise
        _say(f"refimpl {name}: needs {missing}, which is not installed: run `pip install 'refimpl[book]'`")
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:
        _drop_output()
        what = f"{error.filename or 'its output'} cannot be read or written"
        _say(f"refimpl {name}: {printable(f'{what}: {error.strerror or error}')}")
        return BAD_INPUT
    except Exception:
        _say(
            f"{traceback.format_exc()}refimpl {name}: this is a bug in refimpl; please report it with the lines above."
        )
        return BUG


def _take_any_text() -> None:
    """A character that the terminal's encoding lacks is shown by its number, rather than end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """The interpreter flushes stdout once more at exit, which would fail again and print a traceback after all."""
    with suppress(OSError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(words: str) -> None:
    """On stderr, and nowhere if that is closed or full: the exit code tells the rest."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(words, file=sys.stderr)


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """Only the chosen command's module is imported: the others are a name and a line of help."""
    parser = argparse.ArgumentParser(prog="python -m refimpl", description=DESCRIPTION, epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"refimpl {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, words in COMMANDS.items():
        command = commands.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
        if name == chosen:
            module = importlib.import_module(f"refimpl.commands.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
