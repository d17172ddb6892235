"""The overlapped loop as a stream program: what ``OverlapLoop`` issues, op by op, under each fence.

A test records the loop on the simulated device and holds this program equal to it.
"""

from refimpl.fences import VerifyDone
from refimpl.program import (
    Api,
    Buffer,
    CopyKind,
    EventRecord,
    EventSync,
    Explorable,
    HostRead,
    HostWork,
    Launch,
    Mem,
    Memcpy,
    Op,
    Param,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
    StreamWaitStream,
    Variant,
)

BATCH = 16
ROW = BATCH * 8
"""Bytes of one step's lengths: 16 requests, int64."""

WORDS = {
    VerifyDone.NONE: "Nothing orders prepare after the forward before it: it may read lengths that are not there yet.",
    VerifyDone.SYNCHRONIZE: "The host stands still until the forward has executed; only then does it prepare the next.",
    VerifyDone.WAIT: "The schedule stream waits on the device; the host goes on and prepares the next step meanwhile.",
}


def overlap_program(
    fence: VerifyDone,
    steps: int = 5,
    host_us: float = 1000.0,
    forward_us: float = 4800.0,
    extend_us: float = 0.0,
) -> Program:
    """The loop's ops in issue order; times are for drawing and do not change what is ordered.

    Args:
        fence: the fence before the schedule stream's read of ``new_seq_lens``.
        steps: iterations.
        host_us: host work per iteration, in microseconds.
        forward_us: duration of the captured step, in microseconds.
        extend_us: when above zero, GPU work of this length behind ``verify_done``, as EAGLE's draft-extend is.
    """
    ops: list[Op] = []
    for n in range(steps):
        ops += _fence(fence, n)
        ops += _prepare(n, host_us)
        ops += _run_batch(n, forward_us, extend_us)
        if n > 0:
            ops += _process_result(n - 1, n)
    return _program(f"overlap/{fence}", WORDS[fence], steps, ops)


def normal_program(steps: int = 5, host_us: float = 1000.0, forward_us: float = 4800.0) -> Program:
    """The un-overlapped twin: each step's results are read before the next is prepared."""
    ops: list[Op] = []
    for n in range(steps):
        ops += _prepare(n, host_us)
        ops += _run_batch(n, forward_us)
        ops += _process_result(n, n)
    return _program("overlap/one-at-a-time", "One step at a time: the control.", steps, ops)


def explorable(host_us: float = 1000.0, forward_us: float = 4800.0, steps: int = 5) -> Explorable:
    """The three fences and the control side by side; host work and the step's duration are the reader's to change."""
    variants = [Variant(str(f), str(f), WORDS[f], overlap_program(f, steps, host_us, forward_us)) for f in VerifyDone]
    control = normal_program(steps, host_us, forward_us)
    variants.append(Variant("control", "one at a time", control.words, control))
    return Explorable(
        id="verify_done",
        title="Who reads new_seq_lens, and when",
        words="A fence decides who stands still: the host, the schedule stream, or nobody.",
        variants=tuple(variants),
        params={
            "host": Param("host work", host_us, 0.0, max(8000.0, 2 * host_us), 100.0),
            "forward": Param("forward", forward_us, min(500.0, forward_us), max(10000.0, 2 * forward_us), 100.0),
        },
        initial="none",
        before="synchronize",
        topic=("verify_done",),
        hero="forward",
        step_op="forward",
        ask=("forward 1", "prepare 2"),
    )


def _fence(fence: VerifyDone, n: int) -> list[Op]:
    if n == 0 or fence is VerifyDone.NONE:
        return []
    if fence is VerifyDone.SYNCHRONIZE:
        return [EventSync(event="verify_done", step=n)]
    return [StreamWaitEvent(event="verify_done", stream="schedule", step=n)]


def _prepare(n: int, host_us: float) -> list[Op]:
    read = Range("new_seq_lens", 0, ROW)
    return [
        Launch(stream="schedule", name=f"prepare {n}", reads=(read,), writes=(_row("batch_lens", n),), us=40.0, step=n),
        HostWork(name=f"build {n}", us=host_us, param="host", step=n),
    ]


def _run_batch(n: int, forward_us: float, extend_us: float = 0.0) -> list[Op]:
    lens, new = Range("seq_lens", 0, ROW), Range("new_seq_lens", 0, ROW)
    words = f"lengths after step {n}"
    extend = Launch(stream="forward", name=f"draft_extend {n}", us=extend_us, step=n)
    return [
        StreamWaitStream(stream="forward", on="schedule", step=n),
        Launch(stream="forward", name=f"load {n}", reads=(_row("batch_lens", n),), writes=(lens,), us=10.0, step=n),
        Launch(
            stream="forward",
            name=f"forward {n}",
            reads=(lens,),
            writes=(new,),
            us=forward_us,
            param="forward",
            step=n,
            value=words,
        ),
        EventRecord(event="verify_done", stream="forward", step=n),
        *([extend] if extend_us > 0 else []),
        Launch(stream="forward", name=f"publish {n}", reads=(new,), writes=(_row("results", n),), us=10.0, step=n),
        StreamWaitStream(stream="copy", on="forward", step=n),
        Memcpy(
            api=Api.ASYNC,
            kind=CopyKind.D2H,
            src=_row("results", n),
            dst=_row("results_cpu", n),
            stream="copy",
            us=40.0,
            step=n,
        ),
        EventRecord(event=f"copy_done {n}", stream="copy", step=n),
    ]


def _process_result(n: int, step: int) -> list[Op]:
    return [
        EventSync(event=f"copy_done {n}", step=step),
        HostRead(range=_row("results_cpu", n), name=f"results {n}", us=30.0, step=step),
    ]


def _row(buf: str, n: int) -> Range:
    return Range(buf, n * ROW, ROW)


def _program(id: str, words: str, steps: int, ops: list[Op]) -> Program:
    return Program(
        id=id,
        words=words,
        streams={"schedule": Stream(), "forward": Stream(), "copy": Stream()},
        buffers={
            "new_seq_lens": Buffer(ROW),
            "seq_lens": Buffer(ROW),
            "batch_lens": Buffer(steps * ROW),
            "results": Buffer(steps * ROW),
            "results_cpu": Buffer(steps * ROW, Mem.PINNED),
        },
        ops=tuple(ops),
    )
