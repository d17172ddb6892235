"""The programs of this chapter's exercises: a backend's step, a reader that came later, and an event that is finer."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from refimpl.program import (
    Buffer,
    EventRecord,
    HostWork,
    Launch,
    Op,
    Program,
    Range,
    Stream,
    StreamSync,
    StreamWaitEvent,
    StreamWaitStream,
)

ROW = 128
PARTS = ("load_batch", "metadata", "layers")
"""Kernels of the step, in the order of their stream."""
READS = MappingProxyType(
    {
        "load_batch": ("req_to_token",),
        "metadata": ("req_to_token",),
        "layers": ("page_table",),
    }
)
"""What each of them reads, as the exercise's text describes it."""
WRITES = MappingProxyType({"load_batch": ("page_table",), "metadata": ("page_table",), "layers": ("tokens",)})
BUFFERS = ("req_to_token", "page_table", "tokens", "new_seq_lens", "output_tokens_buf")


def whole(*names: str) -> tuple[Range, ...]:
    """All of some buffers."""
    return tuple(Range(name, 0, ROW) for name in names)


def _program(name: str, ops: Sequence[Op], streams: Sequence[str]) -> Program:
    return Program(
        id=name,
        streams={stream: Stream() for stream in streams},
        buffers={buffer: Buffer(ROW) for buffer in BUFFERS},
        ops=tuple(ops),
    )


def step_with(reads: Mapping[str, Sequence[str]], behind: str | None) -> Program:
    """A step of the backend with these reads stated, and schedule overwriting the table behind ``read_done``.

    Args:
        reads: by kernel.
        behind: the kernel behind which the event is recorded; None: in front of the step.
    """
    record = EventRecord(event="read_done", stream="forward")
    ops: list[Op] = [record] if behind is None else []
    for part in PARTS:
        ops.append(Launch(stream="forward", name=part, reads=whole(*reads[part]), writes=whole(*WRITES[part])))
        if part == behind:
            ops.append(record)
    ops += [
        StreamWaitEvent(event="read_done", stream="schedule"),
        Launch(stream="schedule", name="prepare", writes=whole("req_to_token")),
    ]
    return _program("a step of some backend", ops, ("schedule", "forward"))


def _later_reader() -> Program:
    ops: list[Op] = []
    for n in range(3):
        if n > 0:
            ops += [
                StreamWaitEvent(event="verify_done", stream="schedule", step=n),
                Launch(stream="schedule", name=f"prepare {n}", reads=whole("new_seq_lens"), us=20.0, step=n),
                Launch(stream="private", name=f"pull {n}", reads=whole("new_seq_lens"), us=20.0, step=n),
                StreamSync(stream="private", step=n),
            ]
        ops += [
            HostWork(name=f"build {n}", us=60.0, step=n),
            StreamWaitStream(stream="forward", on="schedule", step=n),
            Launch(stream="forward", name=f"verify {n}", writes=whole("new_seq_lens"), us=200.0, step=n),
            EventRecord(event="verify_done", stream="forward", step=n),
            Launch(stream="forward", name=f"draft_extend {n}", reads=whole("new_seq_lens"), us=100.0, step=n),
        ]
    return _program("a reader that came later", ops, ("schedule", "private", "forward"))


LATER_READER = _later_reader()
"""Exercise 2: the wait was made for schedule, and then another stream began to read."""


def _finer() -> Program:
    ops: list[Op] = []
    for n in range(3):
        if n > 0:
            ops.append(StreamWaitEvent(event="read_done", stream="schedule", step=n))
        if n == 2:
            ops.append(
                Launch(stream="schedule", name="seed 2", writes=whole("output_tokens_buf"), us=10.0, step=n),
            )
        ops += [
            Launch(stream="schedule", name=f"prepare {n}", writes=whole("req_to_token"), us=20.0, step=n),
            StreamWaitStream(stream="forward", on="schedule", step=n),
            Launch(stream="forward", name=f"load_batch {n}", reads=whole("req_to_token"), us=10.0, step=n),
            EventRecord(event="read_done", stream="forward", step=n),
            Launch(stream="forward", name=f"verify {n}", us=200.0, step=n),
            Launch(stream="forward", name=f"stash {n}", writes=whole("output_tokens_buf"), us=10.0, step=n),
        ]
    return _program("an event that is finer", ops, ("schedule", "forward"))


FINER = _finer()
"""Exercise 3: the barrier waited for the whole forward, and now for an event in front of the stash."""
