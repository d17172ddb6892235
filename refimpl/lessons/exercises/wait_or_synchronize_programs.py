"""The programs of this chapter's exercises, other than the loop itself."""

from refimpl.program import (
    Api,
    Buffer,
    CopyKind,
    EventRecord,
    HostRead,
    HostWork,
    Launch,
    Mem,
    Memcpy,
    Op,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
    StreamWaitStream,
)

_ROW = 128
_LENS = Range("new_seq_lens", 0, _ROW)


def _row(buf: str, n: int) -> Range:
    return Range(buf, n * _ROW, _ROW)


def _record(stream: str, step: int | None = None) -> EventRecord:
    return EventRecord(event="verify_done", stream=stream, step=step)


def _wait(stream: str, step: int | None = None) -> StreamWaitEvent:
    return StreamWaitEvent(event="verify_done", stream=stream, step=step)


RERECORDED = Program(
    id="verify_done recorded again",
    words="One event, recorded on forward, on plan and on forward again.",
    streams={"schedule": Stream(), "plan": Stream(), "forward": Stream()},
    ops=(
        _wait("schedule"),
        Launch(stream="forward", name="forward 0"),
        _record("forward"),
        _wait("schedule"),
        Launch(stream="schedule", name="prepare 1"),
        Launch(stream="plan", name="plan 1"),
        _record("plan"),
        _wait("schedule"),
        Launch(stream="forward", name="forward 1"),
        _record("forward"),
        _wait("plan"),
    ),
)
"""Exercise 1: no accesses, captures alone."""

PINNED = Program(
    id="a pinned buffer",
    words="schedule waits; the host reads.",
    streams={"schedule": Stream(), "forward": Stream()},
    buffers={
        "new_seq_lens": Buffer(_ROW),
        "batch_lens": Buffer(2 * _ROW),
        "lens_cpu": Buffer(_ROW, Mem.PINNED),
    },
    ops=(
        Launch(stream="forward", name="forward 0", reads=(_row("batch_lens", 0),), writes=(_LENS,), us=4800.0),
        _record("forward"),
        _wait("schedule"),
        Memcpy(api=Api.ASYNC, kind=CopyKind.D2H, src=_LENS, dst=Range("lens_cpu", 0, _ROW), stream="schedule", us=20.0),
        Launch(stream="schedule", name="prepare 1", reads=(_LENS,), writes=(_row("batch_lens", 1),), us=40.0),
        HostWork(name="build 1", us=1000.0),
        StreamWaitStream(stream="forward", on="schedule"),
        Launch(stream="forward", name="forward 1", reads=(_row("batch_lens", 1),), writes=(_LENS,), us=4800.0),
        HostRead(range=Range("lens_cpu", 0, _ROW), name="read lens_cpu"),
    ),
)
"""Exercise 3."""


def _second_reader(steps: int) -> Program:
    ops: list[Op] = []
    for n in range(steps):
        if n > 0:
            ops.append(_wait("schedule", n))
        ops += [
            Launch(stream="plan", name=f"plan {n}", reads=(_LENS,), writes=(_row("plan_lens", n),), us=40.0, step=n),
            Launch(
                stream="schedule", name=f"prepare {n}", reads=(_LENS,), writes=(_row("batch_lens", n),), us=40.0, step=n
            ),
            HostWork(name=f"build {n}", us=1000.0, step=n),
            StreamWaitStream(stream="forward", on="schedule", step=n),
            StreamWaitStream(stream="forward", on="plan", step=n),
            Launch(
                stream="forward",
                name=f"forward {n}",
                reads=(_row("batch_lens", n), _row("plan_lens", n)),
                writes=(_LENS,),
                us=4800.0,
                step=n,
            ),
            _record("forward", n),
        ]
    return Program(
        id="a second reader",
        words="schedule waits for verify_done; plan reads the same lengths.",
        streams={"schedule": Stream(), "plan": Stream(), "forward": Stream()},
        buffers={
            "new_seq_lens": Buffer(_ROW),
            "batch_lens": Buffer(steps * _ROW),
            "plan_lens": Buffer(steps * _ROW),
        },
        ops=tuple(ops),
    )


SECOND_READER = _second_reader(3)
"""Exercise 4."""
