"""Errors that are the user's to mend: a command prints their one sentence instead of a traceback."""


def printable(text: str) -> str:
    """The text on one line, with what a terminal would obey or cannot show escaped: a name in a file may hold anything.

    Example:
        >>> printable("verify\\x1b[2J\\n")
        'verify\\\\x1b[2J\\\\n'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class UserError(Exception):
    """Something the user gave is wrong; the message is one sentence: what, where, what to do.

    Raised by every room for bad input. ``python -m refimpl`` prints it on one line and exits with 2.
    """


class ProgramError(UserError, ValueError):
    """A stream program is malformed.

    Args:
        why: what is wrong and what would be right.
        case: id of the program, when it is known; its number among the cases when it has none.
        op: 0-based index of the op in issue order, when one op is at fault.
        field: name of the field at fault.
        file: path of the file that the program came from.
    """

    def __init__(
        self,
        why: str,
        *,
        case: str | int | None = None,
        op: int | None = None,
        field: str | None = None,
        file: str | None = None,
    ) -> None:
        self.why, self.case, self.op, self.field, self.file = why, case, op, field, file
        super().__init__(why)

    def __str__(self) -> str:
        places = [
            self.file,
            f"case number {self.case}" if isinstance(self.case, int) else self.case and f"case {self.case!r}",
            self.op is not None and f"op {self.op}",
            self.field and f"field {self.field!r}",
        ]
        where = ", ".join(str(place) for place in places if place)
        return printable(f"{where}: {self.why}" if where else self.why)

    def at(
        self,
        *,
        case: str | int | None = None,
        op: int | None = None,
        field: str | None = None,
        file: str | None = None,
    ) -> "ProgramError":
        """The same error with more of its place known; what was known before stays."""
        return ProgramError(
            self.why,
            case=self.case if self.case is not None else case,
            op=self.op if self.op is not None else op,
            field=self.field if self.field is not None else field,
            file=self.file if self.file is not None else file,
        )
