"""`python -m refimpl`: finds the command, and turns what went wrong into one sentence and an exit code."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from refimpl import __version__
from refimpl.program.errors import UserError

DESCRIPTION = "Stream Order: prove, draw and measure the order of GPU streams."
COMMANDS = {
    "check": "prove stream programs free of races and deadlocks, or show the counterexample",
    "bench": "measure refimpl beside a peer",
    "demo": "five seconds of the two-stream loop, with and without its fence, on the best device present",
    "notebooks": "run the chapters, or check that their outputs belong to their cells",
}
BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 2 for bad input, 130 for Ctrl-C, 141 for a closed pipe."""
    words = list(sys.argv[1:] if argv is None else argv)
    args = _parser(chosen=next((w for w in words if not w.startswith("-")), None)).parse_args(words)
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"refimpl {args.command}: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes stdout once more at exit, which would print the traceback after all.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """Only the chosen command's module is imported: the others are a name and a line of help."""
    parser = argparse.ArgumentParser(prog="python -m refimpl", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"refimpl {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, words in COMMANDS.items():
        command = commands.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
        if name == chosen:
            module = importlib.import_module(f"refimpl.commands.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
