"""The name of one order of execution: a short text that can be copied from a report and replayed.

    h3.1.h.2x2.1/4.2.1x3

reads: the host makes three calls, lane 1 runs its next op, the host makes a call, lane 2 runs two ops, lane 1 begins an
op that it does in 4 pieces and does the first of them, lane 2 runs an op, lane 1 does the other three pieces. After the
last step named, each op runs as soon as its order allows, in the order in which the host issued it.

Lanes are numbered from 1 in the order in which they are first given work, so that a stream has the same number in every
run of the same text; branches of graphs, which each launch makes anew, from -1 down. In a ``Program`` each node of a
graph is such a branch.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from refimpl.program.errors import UserError

HOST: None = None
"""The lane of a host's call, in a step."""

MOST_TURNS = 10_000_000
"""The longest order that a text may name: a longer one is a slip of the pen, and would fill the memory."""

_LONG = 400
_PACKED = "z:"
MOST_PIECES = 10_000
"""The most pieces that an op may be split into."""

_COUNT = "[1-9][0-9]{0,8}"
_STEP = re.compile(rf"(?:h(?P<calls>{_COUNT})?|(?P<lane>-?{_COUNT})(?:/(?P<pieces>{_COUNT})|x(?P<times>{_COUNT}))?)\Z")


@dataclass(frozen=True)
class Turn:
    """One step of an order.

    Args:
        lane: Whose turn it is: a lane's number, or ``HOST`` for one call of the host.
        pieces: Into how many pieces the op that begins here is split; 1 where it runs whole, or goes on.
    """

    lane: int | None
    pieces: int = 1


def schedule_id(turns: Iterable[Turn]) -> str:
    """The text that names an order; a long one is packed.

    Example:
        >>> schedule_id([Turn(HOST), Turn(HOST), Turn(3), Turn(3), Turn(1, pieces=2), Turn(1)])
        'h2.3x2.1/2.1'
    """
    parts = []
    for turn, same in groupby(turns):
        times = len(list(same))
        if turn.lane is HOST:
            parts.append("h" if times == 1 else f"h{times}")
        elif turn.pieces > 1:
            parts += [f"{turn.lane}/{turn.pieces}"] * times
        else:
            parts.append(f"{turn.lane}" if times == 1 else f"{turn.lane}x{times}")
    text = ".".join(parts)
    if len(text) <= _LONG:
        return text
    return _PACKED + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def turns_of(text: str) -> Sequence[Turn]:
    """The steps that a text names.

    Raises:
        UserError: It is no name of an order; the message says which part is wrong.

    Example:
        >>> turns_of("h2.3/2") == [Turn(HOST), Turn(HOST), Turn(3, pieces=2)]
        True
    """
    plain = _unpacked(text) if text.startswith(_PACKED) else text
    turns: list[Turn] = []
    for part in plain.split(".") if plain else ():
        found = _STEP.match(part)
        if found is None:
            raise UserError(
                f"schedule {_short(text)!r}: {_short(part)!r} is no step: use h, h3, a lane's number, 2x3 or 2/3"
            )
        lane = HOST if found["lane"] is None else int(found["lane"])
        times, pieces = int(found["calls"] or found["times"] or 1), int(found["pieces"] or 1)
        if pieces > MOST_PIECES:
            raise UserError(f"schedule {_short(text)!r}: {_short(part)!r} has more than {MOST_PIECES:,} pieces")
        if len(turns) + times > MOST_TURNS:
            raise UserError(f"schedule {_short(text)!r}: {_short(part)!r} makes it longer than {MOST_TURNS:,} steps")
        turns += [Turn(lane, pieces)] * times
    return turns


def _unpacked(text: str) -> str:
    body = text.removeprefix(_PACKED)
    try:
        stream = zlib.decompressobj()
        plain = stream.decompress(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), 8 * MOST_TURNS)
        if not stream.eof:
            raise UserError(f"schedule {_short(text)!r}: the packed text is damaged or too long: copy it whole")
        return plain.decode("ascii")
    except (ValueError, zlib.error, binascii.Error) as error:
        raise UserError(f"schedule {_short(text)!r}: the packed text is damaged: copy it whole") from error


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
