"""The programs of this chapter's exercises: two rows of a relay, the forward that writes them, and who seeds."""

from refimpl.program import (
    Buffer,
    EventRecord,
    HostWork,
    Launch,
    Op,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
    StreamWaitStream,
)

READY, READ_DONE = "publish_ready", "read_done"
LENGTHS, TOKENS = "new_seq_lens_buf", "output_tokens_buf"
_BYTES = 8
_ROWS = 4
_BUFFERS = {LENGTHS: Buffer(_ROWS * _BYTES), TOKENS: Buffer(_ROWS * _BYTES)}


def _rows(buf: str, first: int, rows: int = 1) -> Range:
    return Range(buf, first * _BYTES, rows * _BYTES)


def record(stream: str, event: str = READY) -> EventRecord:
    """A record of an event."""
    return EventRecord(event=event, stream=stream)


def wait(stream: str, event: str = READY) -> StreamWaitEvent:
    """A wait of a stream for an event."""
    return StreamWaitEvent(event=event, stream=stream)


def _writes(stream: str, name: str, *ranges: Range, us: float = 5.0) -> Launch:
    return Launch(stream=stream, name=name, writes=ranges, us=us)


def _reads(stream: str, name: str, *ranges: Range) -> Launch:
    return Launch(stream=stream, name=name, reads=ranges, us=5.0)


def _program(name: str, words: str, *ops: Op) -> Program:
    streams = {lane: Stream() for lane in ("schedule", "forward", "copy of lengths")}
    used = {getattr(op, "stream", "") for op in ops} | {getattr(op, "on", "") for op in ops}
    lanes = {lane: stream for lane, stream in streams.items() if lane in used}
    return Program(id=name, words=words, streams=lanes, buffers=_BUFFERS, ops=ops)


_PULL = "copy of lengths"

VISIBLE = _program(
    "publish_ready on two streams",
    "Forward publishes row 1 three times; schedule seeds rows 2 and 3; some records chain, and some do not.",
    _writes("forward", "publish 1", _rows(LENGTHS, 1)),
    record("forward"),
    _writes("schedule", "seed 1", _rows(LENGTHS, 2)),
    record("schedule"),
    wait(_PULL),
    _reads(_PULL, "pull 1", _rows(LENGTHS, 1, 3)),
    _writes("forward", "publish 2", _rows(LENGTHS, 1)),
    record("forward"),
    wait("schedule"),
    _reads("schedule", "resolve 2", _rows(LENGTHS, 1, 3)),
    _writes("forward", "publish 3", _rows(LENGTHS, 1)),
    record("forward"),
    _writes("schedule", "seed 3", _rows(LENGTHS, 3)),
    wait("schedule"),
    record("schedule"),
    wait(_PULL),
    _reads(_PULL, "pull 3", _rows(LENGTHS, 1, 3)),
)
"""Exercise 1."""

KEEP = _program(
    "a seed beside a step",
    "Forward publishes row 1; schedule seeds row 2, which nobody had; a private stream takes both to the host.",
    _writes("forward", "publish 1", _rows(LENGTHS, 1), us=2000.0),
    record("forward"),
    Launch(stream="forward", name="draft_extend 1", us=1000.0),
    HostWork(name="admit 2", us=50.0),
    _writes("schedule", "seed 2", _rows(LENGTHS, 2)),
    record("schedule"),
    wait(_PULL),
    _reads(_PULL, "pull 2", _rows(LENGTHS, 1, 2)),
    HostWork(name="build 2", us=50.0),
)
"""Exercise 2."""

REUSED = _program(
    "a seed in a used row",
    "Forward 1 still runs the request that had row 2; schedule seeds that row for the next owner.",
    _writes("forward", "publish 1", _rows(LENGTHS, 1, 2), us=2000.0),
    record("forward"),
    Launch(stream="forward", name="draft_extend 1", us=1000.0),
    _writes("forward", "stash 1", _rows(TOKENS, 1, 2)),
    HostWork(name="admit 2", us=50.0),
    _writes("schedule", "seed publish 2", _rows(LENGTHS, 2)),
    record("schedule"),
    _writes("schedule", "seed stash 2", _rows(TOKENS, 2)),
    wait("schedule"),
    _reads("schedule", "resolve 2", _rows(LENGTHS, 1, 2)),
    HostWork(name="build 2", us=50.0),
    StreamWaitStream(stream="forward", on="schedule"),
    _reads("forward", "resolve_forward_inputs 2", _rows(TOKENS, 1, 2)),
)
"""Exercise 3."""

OVERWRITE, CHAIN, WAIT_STREAM = "overwrite", "chain", "wait_stream"
FIXES = (OVERWRITE, CHAIN, WAIT_STREAM)


def stash_first(fix: str) -> Program:
    """Exercise 4: a worker that stashes, records ``read_done`` and publishes, in this order, behind a barrier.

    Args:
        fix: one of :data:`FIXES`.
    """
    chained = [wait("schedule")] if fix == CHAIN else []
    before = [StreamWaitStream(stream="schedule", on="forward")] if fix == WAIT_STREAM else []
    return _program(
        f"stash first, {fix}",
        "Forward stashes before it records read_done, and publishes behind that; schedule waits for read_done.",
        _writes("forward", "stash 1", _rows(TOKENS, 1, 2)),
        record("forward", READ_DONE),
        _writes("forward", "publish 1", _rows(LENGTHS, 1, 2)),
        record("forward"),
        wait("schedule", READ_DONE),
        *before,
        _writes("schedule", "seed publish 2", _rows(LENGTHS, 2)),
        *chained,
        record("schedule"),
        _writes("schedule", "seed stash 2", _rows(TOKENS, 2)),
        wait("schedule"),
        _reads("schedule", "resolve 2", _rows(LENGTHS, 1, 2)),
        StreamWaitStream(stream="forward", on="schedule"),
        _reads("forward", "resolve_forward_inputs 2", _rows(TOKENS, 1, 2)),
    )
