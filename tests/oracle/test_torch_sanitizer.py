"""Where PyTorch's CUDA sanitizer claims to be right, its core and ours give one verdict.

That is: kernels on non-blocking streams of one device, whole buffers, events and synchronizes. The core of the
sanitizer, ``EventHandler``, runs without a GPU.
"""

import pytest
from torch.cuda._sanitizer import EventHandler

from refimpl import program as p
from refimpl.order import run
from refimpl.program import Program, Range
from tests.property.programs import assert_never, random_program, with_ranges

KINDS = (
    "launch",
    "event_record",
    "stream_wait_event",
    "stream_wait_stream",
    "event_sync",
    "stream_sync",
    "device_sync",
)
STREAMS = {"s": 1, "t": 2, "s1": 3}
FRESH_EVENT = 1000


def whole_buffers(seed: int) -> Program:
    """A program in the sanitizer's scope: it knows a buffer by its base pointer alone, and one device."""
    made = random_program(seed, KINDS, length=24, streams=tuple(STREAMS))
    ops = tuple(with_ranges(op, lambda r: Range(r.buf, 0, 48)) for op in made.ops)
    return Program(ops=ops, streams={name: p.Stream() for name in STREAMS}, buffers=made.buffers, id=made.id)


def sanitizer_finds_a_race(program: Program) -> bool:
    handler = EventHandler()
    pointers = {name: 1 + k for k, name in enumerate(program.buffers)}
    events = {"e": 1, "f": 2}
    for stream in STREAMS.values():
        handler._handle_stream_creation(stream)
    for event in (*events.values(), FRESH_EVENT):
        handler._handle_event_creation(event)
    errors = 0
    for op in program.ops:
        match op:
            case p.Launch():
                writes = {pointers[r.buf] for r in op.writes}
                reads = {pointers[r.buf] for r in op.reads} - writes
                names = {pointer: ["tensor"] for pointer in reads | writes}
                errors += len(handler._handle_kernel_launch(STREAMS[op.stream], reads, writes, set(), op.name, names))
            case p.EventRecord():
                handler._handle_event_record(events[op.event], STREAMS[op.stream])
            case p.StreamWaitEvent():
                handler._handle_event_wait(events[op.event], STREAMS[op.stream])
            case p.StreamWaitStream():
                handler._handle_event_record(FRESH_EVENT, STREAMS[op.on])
                handler._handle_event_wait(FRESH_EVENT, STREAMS[op.stream])
            case p.EventSync():
                handler._handle_event_synchronization(events[op.event])
            case p.StreamSync():
                handler._handle_stream_synchronization(STREAMS[op.stream])
            case p.DeviceSync():
                handler._handle_device_synchronization()
    return errors > 0


@pytest.mark.parametrize("start", range(0, 3000, 1000))
def test_the_sanitizer_and_the_clocks_give_one_verdict(start: int) -> None:
    def disagree(program: Program) -> bool:
        return sanitizer_finds_a_race(program) != bool(run(program).races())

    assert_never(disagree, [whole_buffers(seed) for seed in range(start, start + 1000)])


def test_the_programs_race_and_do_not() -> None:
    racy = sum(sanitizer_finds_a_race(whole_buffers(seed)) for seed in range(500))
    assert 50 < racy < 450
