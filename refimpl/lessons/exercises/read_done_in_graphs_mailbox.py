"""A barrier written by the reader, called behind each step of a small loop, whose calls become a stream program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from refimpl.lessons.exercise_order import Fenced, Rejected
from refimpl.lessons.exercises.read_done_in_graphs_programs import BUFFERS, READ_DONE, STREAMS, whole
from refimpl.program import EventRecord, Launch, Op, Program, StreamSync, StreamWaitEvent, StreamWaitStream

Barrier = Callable[[Any, Any, Any], None]
DECODES = (True, False, False, True)
"""The loop's steps: the prefill of step 1 is of a request that gives up, and step 2 is the prefill of the next owner of
its row."""


@dataclass(frozen=True)
class Event:
    """What a mailbox holds: the event of that name."""

    name: str


@dataclass
class Runner:
    """The last reader of the tables in a step; a decode leaves its event here, a prefill leaves nothing."""

    shared_read_done_event: Any = None


@dataclass
class Lane:
    """A stream that notes what it is told; it has the calls of a stream that a barrier may want."""

    name: str
    ops: list[Op]
    added: list[int] = field(default_factory=list)

    def wait_event(self, event: Any) -> None:
        """Notes a wait.

        Raises:
            Rejected: the mailbox was empty, or it held something else.
        """
        if not isinstance(event, Event):
            raise Rejected(
                f"{self.name}.wait_event({event!r}): a prefill leaves the mailbox empty; look before you wait."
            )
        self._fence(StreamWaitEvent(event=event.name, stream=self.name))

    def wait_stream(self, other: Any) -> None:
        """Notes a wait for all that another stream holds."""
        if not isinstance(other, Lane):
            raise Rejected(f"{self.name}.wait_stream({other!r}): give one of the two streams.")
        self._fence(StreamWaitStream(stream=self.name, on=other.name))

    def synchronize(self) -> None:
        """Notes that the host stands still."""
        self._fence(StreamSync(stream=self.name))

    def _fence(self, op: Op) -> None:
        self.added.append(len(self.ops))
        self.ops.append(op)


def loop(barrier: Barrier) -> Fenced:
    """The loop's program, in which the barrier is called behind each step's launches.

    Args:
        barrier: called with the runner, the schedule stream and the forward stream.
    """
    ops: list[Op] = []
    added: list[int] = []
    runner, schedule, forward = Runner(), Lane("schedule", ops, added), Lane("forward", ops, added)
    for step, decode in enumerate(DECODES):
        ops.append(StreamWaitStream(stream="forward", on="schedule", step=step))
        ops += _decode(step) if decode else [_reading(f"prefill {step}", step)]
        if decode:
            runner.shared_read_done_event = Event(READ_DONE)
        barrier(runner, schedule, forward)
        ops.append(Launch(stream="schedule", name=f"prepare {step + 1}", writes=whole("req_to_token"), step=step))
    return Fenced(Program(id="the mailbox", streams=STREAMS, buffers=BUFFERS, ops=tuple(ops)), tuple(added))


def _decode(step: int) -> list[Op]:
    return [
        _reading(f"load_batch {step}", step),
        EventRecord(event=READ_DONE, stream="forward", step=step),
        Launch(stream="forward", name=f"replay {step}", reads=whole("page_table"), step=step),
    ]


def _reading(name: str, step: int) -> Launch:
    return Launch(stream="forward", name=name, reads=whole("req_to_token"), writes=whole("page_table"), step=step)
