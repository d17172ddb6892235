"""Stream programs that a command is given: from files, or one case of them, with a word of progress on a terminal."""

import argparse
import sys
from typing import TYPE_CHECKING

from refimpl.commands.check import named, read
from refimpl.program.errors import UserError, printable

if TYPE_CHECKING:
    from refimpl.order import Bounds
    from refimpl.program import Program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files, and which of their cases."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help='stream programs as JSON: one program, or {"cases": [program, ...]}; - is standard input',
    )
    parser.add_argument("--case", metavar="ID", help="only the program with this id")


def programs(args: argparse.Namespace) -> list["Program"]:
    """All programs of the files, or those that have the id.

    Raises:
        UserError: no program has it.
    """
    found = [program for file in args.files for program in read(file)]
    if args.case is None:
        return found
    chosen = [program for program in found if program.id == args.case]
    if not chosen:
        where = ", ".join(map(named, args.files))
        ids = [program.id for program in found]
        some = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
        raise UserError(f"{where}: no case {args.case!r}; there are {some or 'none'}")
    return chosen


def add_bounds(parser: argparse.ArgumentParser, each: str) -> None:
    """Declare how far a search goes, for each of what it is called for."""
    parser.add_argument("--states", type=int, metavar="N", help=f"most states to visit {each}")
    parser.add_argument("--seconds", type=float, metavar="S", help=f"most seconds to search {each}")


def bounds(args: argparse.Namespace) -> "Bounds":
    """The bounds that were given.

    Raises:
        UserError: one is not above 0.
    """
    from refimpl.order import Bounds

    given = {name: getattr(args, name) for name in ("states", "seconds")}
    for name, value in given.items():
        if value is not None and not value > 0:
            raise UserError(f"--{name} {value}: give a number above 0")
    return Bounds(**{name: value for name, value in given.items() if value is not None})


class Progress:
    """One line on stderr that rewrites itself; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()

    def say(self, words: str) -> None:
        """Show these words in place of the last."""
        if self._shown:
            print(f"\r\x1b[K{printable(words)}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave the line empty for what is printed next."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
