"""Files written beside their place and then moved there, so that a full disk or a Ctrl-C leaves no half of one."""

import os
from pathlib import Path

_BEGINNING = 40
"""Of a name, in its draft's: that of a longest name would be too long for the folder."""


def write_whole(data: bytes, path: str | os.PathLike[str]) -> Path:
    """Write a file, or replace it, as a whole.

    Returns:
        Its path.

    Raises:
        OSError: nothing can be written there; an older file is still as it was.
    """
    file = Path(path)
    draft = file.with_name(f".{file.name[:_BEGINNING]}.{os.getpid()}.part")
    try:
        draft.write_bytes(data)
        os.replace(draft, file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(file)) from None  # not the draft's name, which nobody gave
    finally:
        draft.unlink(missing_ok=True)
    return file
