"""Short words for short programs, and the read of one op."""

from refimpl.play import Played
from refimpl.program import Buffer, Launch, Mem, Op, Program, Range, Stream

STREAMS = {"s": Stream(), "t": Stream(), "u": Stream()}
BUFFERS = {
    "x": Buffer(64),
    "y": Buffer(64),
    "pinned": Buffer(64, Mem.PINNED),
    "pageable": Buffer(64, Mem.PAGEABLE),
    "old": Buffer(64),
    "new": Buffer(64),
}


def whole(buf: str) -> Range:
    return Range(buf, 0, 64)


def program(*ops: Op) -> Program:
    return Program(ops=ops, streams=STREAMS, buffers=BUFFERS, id="mine")


def kernel(stream: str, name: str, reads: str = "", writes: str = "") -> Launch:
    return Launch(
        stream=stream, name=name, reads=tuple(map(whole, reads.split())), writes=tuple(map(whole, writes.split()))
    )


def read_by(played: Played, op: int) -> str:
    """What the one read of an op found, in words."""
    (seen,) = [seen for seen in played.reads if seen.op == op]
    (part,) = seen.contents.parts()
    return part.words
