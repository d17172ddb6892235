"""The programs of this chapter: two steps of a worker with a plan stream, as little of them as the exercises need."""

from collections.abc import Iterable, Sequence

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

BYTES = 64
STEPS = (1, 2)
DRAFT_DONE = "draft_done"
STREAMS = {"forward": Stream(), "plan": Stream()}
BUFFERS = {
    name: Buffer(BYTES)
    for name in (
        "seq_lens",
        "req_to_token",
        "draft_inputs",
        "draft_tokens",
        "verify_inputs",
        "verify_tokens",
        "next_ids",
        "extend_inputs",
        "extend_ids",
    )
}


def _whole(*names: str) -> tuple[Range, ...]:
    return tuple(Range(name, 0, BYTES) for name in names)


def _kernel(stream: str, name: str, step: int, reads: Sequence[str] = (), writes: Sequence[str] = ()) -> Launch:
    return Launch(stream=stream, name=f"{name} {step}", reads=_whole(*reads), writes=_whole(*writes), step=step)


def _host(step: int) -> Op:
    return HostWork(name=f"build {step}", us=100.0, step=step)


def _join(step: int) -> Op:
    return StreamWaitStream(stream="forward", on="plan", step=step)


def _draft(step: int) -> Iterable[Op]:
    yield _kernel("forward", "load draft", step, ("seq_lens", "req_to_token"), ("draft_inputs",))
    yield _kernel("forward", "draft", step, ("draft_inputs",), ("draft_tokens",))


def _verify(step: int) -> Op:
    return _kernel("forward", "verify", step, ("verify_inputs", "verify_tokens"), ("seq_lens", "next_ids"))


def _program(name: str, steps: Iterable[Iterable[Op]]) -> Program:
    return Program(id=name, streams=STREAMS, buffers=BUFFERS, ops=tuple(op for step in steps for op in step))


def _tail(step: int, fork: Sequence[Op]) -> Iterable[Op]:
    yield _host(step)
    yield from _draft(step)
    yield from fork
    read = ("seq_lens", "req_to_token", "draft_tokens")
    yield _kernel("plan", "load verify", step, read, ("verify_inputs", "verify_tokens"))
    yield _join(step)
    yield _verify(step)


TAIL = _program("a plan behind the draft", (_tail(step, ()) for step in STEPS))
"""The plan copies what was drafted, and nothing makes it wait."""
WAIT_STREAM = _program(
    "wait_stream", (_tail(step, (StreamWaitStream(stream="plan", on="forward", step=step),)) for step in STEPS)
)
"""The same behind the tail of the forward stream."""


def _early(step: int) -> Iterable[Op]:
    yield _host(step)
    yield from _draft(step)
    # As 28034 describes the preparation: it writes cells of the table that the draft's own load reads.
    yield _kernel("plan", "load verify", step, ("seq_lens",), ("req_to_token", "verify_inputs"))
    yield _join(step)
    yield _kernel("forward", "fill tokens", step, ("draft_tokens",), ("verify_tokens",))
    yield _verify(step)


EARLY = _program("a plan beside the draft", (_early(step) for step in STEPS))
"""What was drafted is copied behind the join, so the plan needs nothing of the draft's forward."""


def _extending(step: int) -> Iterable[Op]:
    load_draft, draft = _draft(step)
    yield _host(step)
    yield load_draft
    yield EventRecord(event=DRAFT_DONE, stream="forward", step=step)
    yield draft
    yield StreamWaitEvent(event=DRAFT_DONE, stream="plan", step=step)
    yield _kernel("plan", "load verify", step, ("seq_lens",), ("req_to_token", "verify_inputs"))
    yield _join(step)
    yield _kernel("forward", "fill tokens", step, ("draft_tokens",), ("verify_tokens",))
    yield _verify(step)
    yield _kernel("plan", "load extend", step, ("req_to_token",), ("extend_inputs",))
    yield _kernel("plan", "cast ids", step, ("next_ids",), ("extend_ids",))
    yield _join(step)
    yield _kernel("forward", "draft extend", step, ("extend_inputs", "extend_ids"))


EXTENDING = _program("a plan of the draft extend", (_extending(step) for step in STEPS))
"""With the early event; behind the verify its ids are cast on the plan stream, and forward joins."""


def redrawn(late: bool, elsewhere: bool = False) -> Program:
    """Two drafts in quick succession that record one event, and a plan for each.

    Args:
        late: whether the host calls the first plan's wait behind the second record.
        elsewhere: whether the second draft runs on a stream of its own.
    """
    second = "other" if elsewhere else "forward"
    drafts = [_drawn(1, "forward"), _drawn(2, second)]
    plans = [_planned(step) for step in STEPS]
    order = [*drafts, *plans] if late else [drafts[0], plans[0], drafts[1], plans[1]]
    streams = {**STREAMS, "other": Stream()}
    buffers = {f"draft_tokens {step}": Buffer(BYTES) for step in STEPS}
    ops = tuple(op for part in order for op in part)
    return Program(id="one event, two drafts", streams=streams, buffers=buffers, ops=ops)


def _drawn(step: int, stream: str) -> list[Op]:
    drafted = _kernel(stream, "draft", step, writes=(f"draft_tokens {step}",))
    return [drafted, EventRecord(event=DRAFT_DONE, stream=stream, step=step)]


def _planned(step: int) -> list[Op]:
    reads = _kernel("plan", "load verify", step, reads=(f"draft_tokens {step}",))
    return [StreamWaitEvent(event=DRAFT_DONE, stream="plan", step=step), reads]
