"""What the caching allocator costs the host, and other rules of the schedule that the browser's model brought up."""

from refimpl.program import (
    Api,
    Buffer,
    EventRecord,
    GraphLaunch,
    Launch,
    Mem,
    Memcpy,
    Node,
    Op,
    Program,
    Range,
    RecordStream,
    Span,
    SpanKind,
    Stream,
    StreamKind,
    TensorAlloc,
    TensorFree,
)
from refimpl.timeline import gaps, schedule

STREAMS = {"a": Stream(), "b": Stream(), "c": Stream(StreamKind.BLOCKING), "d": Stream(StreamKind.BLOCKING)}
BUFFERS = {"x": Buffer(64), "y": Buffer(64), "z": Buffer(64), "q": Buffer(64, Mem.PAGEABLE)}


def spans(*ops: Op) -> list[Span]:
    return list(schedule(Program(streams=STREAMS, buffers=BUFFERS, ops=ops)).spans)


def held(*ops: Op) -> list[tuple[str, float]]:
    return [(s.name, s.end_us) for s in spans(*ops) if s.kind is SpanKind.BLOCKED]


USE = Launch(stream="b", us=100)


def test_a_reuse_waits_for_the_stream_that_was_recorded() -> None:
    told = (RecordStream(buf="x", stream="b"), TensorFree(buf="x"), TensorAlloc(buf="y", stream="a", block="B"))
    assert held(TensorAlloc(buf="x", stream="a", block="B"), USE, *told) == [("reuse of B", 106.0)]


def test_of_the_stream_that_a_tensor_was_handed_out_on_the_allocator_needs_no_mark() -> None:
    told = (RecordStream(buf="x", stream="b"), TensorFree(buf="x"), TensorAlloc(buf="y", stream="b", block="B"))
    assert held(TensorAlloc(buf="x", stream="b", block="B"), USE, *told) == []


def test_a_tensor_from_before_the_program_holds_up_the_next_owner_of_its_block() -> None:
    told = (RecordStream(buf="x", stream="b"), TensorFree(buf="x", block="B"))
    assert held(USE, *told, TensorAlloc(buf="y", stream="a", block="B")) == [("reuse of B", 106.0)]


def test_a_mark_of_a_tensor_that_another_has_followed_still_counts() -> None:
    two = (TensorAlloc(buf="x", stream="a", block="B"), TensorAlloc(buf="y", stream="a", block="B"))
    late = (USE, RecordStream(buf="x", stream="b"), TensorFree(buf="x"), TensorAlloc(buf="z", stream="a", block="B"))
    assert held(*two, *late) == [("reuse of B", 106.0)]


def test_a_tensor_freed_twice_is_marked_once() -> None:
    told = (RecordStream(buf="x", stream="b"), TensorFree(buf="x"), TensorAlloc(buf="y", stream="a", block="B"))
    again = (USE, TensorFree(buf="x"), TensorAlloc(buf="z", stream="a", block="B"))
    assert held(TensorAlloc(buf="x", stream="a", block="B"), USE, *told, *again) == [("reuse of B", 106.0)]


def test_a_mark_on_legacy_holds_back_no_blocking_stream() -> None:
    told = (RecordStream(buf="x", stream="legacy"), TensorFree(buf="x"))
    first, second = spans(
        TensorAlloc(buf="x", stream="a", block="B"), Launch(stream="c", us=100), *told, Launch(stream="d", us=1)
    )
    assert (first.end_us, second.start_us) == (106.0, 12.0)


def test_what_a_staged_copy_writes_is_queued_when_the_host_has_taken_the_source() -> None:
    copy = Memcpy(api=Api.SYNC, src=Range("q", 0, 64), dst=Range("x", 0, 64), us=50)
    _, blocked, run = spans(Launch(stream="legacy", us=100), copy)
    assert (blocked.kind, blocked.start_us, blocked.end_us) == (SpanKind.BLOCKED, 12.0, 106.0)
    assert (run.submit_us, run.ready_us, run.start_us, run.end_us) == (6.0, 106.0, 106.0, 156.0)


def test_the_part_of_a_gap_that_two_waits_cover_is_the_first_one_s() -> None:
    nodes = (Node(name="one", wait="E"), Node(name="two", wait="F"), Node(name="k", deps=("one", "two")))
    events = (EventRecord(event="E", stream="a"), Launch(stream="c", us=200), EventRecord(event="F", stream="c"))
    program = Program(streams=STREAMS, ops=(Launch(stream="a", us=100), *events, GraphLaunch(stream="b", nodes=nodes)))
    found = [(idle.from_us, idle.to_us, idle.cause) for idle in gaps(schedule(program), "b")]
    assert found == [(0.0, 30.0, "host: issuing calls"), (30.0, 106.0, "one"), (106.0, 218.0, "two")]
