"""The program and the rows of this chapter's exercises."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

from refimpl.fences import Expect
from refimpl.program import (
    Buffer,
    EventRecord,
    EventSync,
    HostWork,
    Launch,
    Op,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
    StreamWaitStream,
)

ROW = 128
STEPS = 3
CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Seen:
    """What was seen of an engine.

    Args:
        races: that the checker finds in a recorded run; None where nobody asked it.
        wrong: runs with a wrong token in the emitted text.
        lower: runs with a clearly lower accept length than the control has.
        dropped: runs with a wrong token, dropped or not; None where nobody looked at dropped ones.
        of: runs.
    """

    races: int | None
    wrong: int
    lower: int
    dropped: int | None
    of: int = 1000


SEEN = MappingProxyType(
    {
        "a": Seen(races=2, wrong=0, lower=0, dropped=449),
        "b": Seen(races=0, wrong=0, lower=0, dropped=0),
        "c": Seen(races=3, wrong=0, lower=12, dropped=780),
        "d": Seen(races=None, wrong=0, lower=0, dropped=None),
    }
)
"""Rows as the chapter's table might have them."""


def verdict(seen: Seen) -> str:
    """What follows from a row, in the table's words."""
    if seen.wrong or seen.lower:
        return Expect.RACY_HARMFUL
    if seen.races is None:
        return CANNOT_TELL
    if not seen.races:
        return Expect.RIGHT
    return Expect.RACY_MASKED if seen.dropped else CANNOT_TELL


def _whole(*names: str) -> tuple[Range, ...]:
    return tuple(Range(name, 0, ROW) for name in names)


def _step(n: int) -> Iterator[Op]:
    lens = f"seq_lens {n}"
    if n > 0:
        yield EventSync(event="verify_done", step=n)
        yield StreamWaitStream(stream="schedule", on="forward", step=n)
        yield StreamWaitEvent(event="publish_ready", stream="schedule", step=n)
    yield Launch(
        stream="schedule",
        name=f"prepare {n}",
        reads=_whole("new_seq_lens"),
        writes=_whole("req_to_token", lens),
        us=20.0,
        step=n,
    )
    yield HostWork(name=f"build {n}", us=60.0, step=n)
    yield StreamWaitStream(stream="forward", on="schedule", step=n)
    yield _forward(f"verify {n}", ("req_to_token", lens), ("new_seq_lens",), n)
    yield EventRecord(event="publish_ready", stream="forward", step=n)
    yield _forward(f"draft_extend {n}", ("req_to_token", lens), (), n)
    yield EventRecord(event="verify_done", stream="forward", step=n)


def _forward(name: str, reads: tuple[str, ...], writes: tuple[str, ...], n: int) -> Launch:
    return Launch(stream="forward", name=name, reads=_whole(*reads), writes=_whole(*writes), us=200.0, step=n)


BELT_AND_BRACES = Program(
    id="three fences",
    words="verify_done, the coarse barrier and publish_ready, all of them in front of each prepare.",
    streams={"schedule": Stream(), "forward": Stream()},
    buffers={name: Buffer(ROW) for name in ("new_seq_lens", "req_to_token", *(f"seq_lens {n}" for n in range(STEPS)))},
    ops=tuple(op for n in range(STEPS) for op in _step(n)),
)
"""Three steps with every fence that the months had."""
