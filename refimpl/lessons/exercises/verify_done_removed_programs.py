"""The programs of this chapter's exercises: DFLASH's loop, with what it writes for the next step."""

from dataclasses import dataclass

from refimpl.program import (
    Api,
    Buffer,
    CopyKind,
    EventRecord,
    EventSync,
    HostRead,
    HostWork,
    Launch,
    Mem,
    Memcpy,
    Op,
    Program,
    Range,
    Stream,
    StreamWaitStream,
)

STEPS = 3
_CELL, _ROW, _TOKENS = 8, 64, 128
_TABLE = Range("req_to_token", 0, _ROW)
_MAP, _PAGES = Range("full_to_swa", 0, _ROW), Range("page_table", 0, _ROW)


@dataclass(frozen=True)
class _Loop:
    """Which parts a loop has.

    Args:
        writer: the stream that writes the table.
        self_fence: the host synchronizes with ``verify_done`` in front of each append.
        barrier_at_top: schedule waits for forward at the top of each step.
        barrier_behind_launch: and behind its launch.
        swa: results are processed, which writes ``full_to_swa``.
        prefill: the step in which a row changes hands; None for none.
    """

    writer: str = "schedule"
    self_fence: bool = False
    barrier_at_top: bool = False
    barrier_behind_launch: bool = False
    swa: bool = False
    prefill: int | None = None

    def program(self, name: str, words: str) -> Program:
        """Three steps of it."""
        streams = dict.fromkeys(("schedule", self.writer, "forward", *(["copy"] if self.swa else [])), Stream())
        buffers = {"req_to_token": Buffer(_ROW), "page_table": Buffer(_ROW), "results": Buffer(STEPS * _TOKENS)}
        if self.swa:
            buffers |= {"full_to_swa": Buffer(_ROW), "results_cpu": Buffer(STEPS * _TOKENS, Mem.PINNED)}
        return Program(
            id=name,
            words=words,
            streams=streams,
            buffers=buffers,
            ops=tuple(op for step in range(STEPS) for op in self._step(step)),
        )

    def _step(self, n: int) -> list[Op]:
        barrier = StreamWaitStream(stream="schedule", on="forward", step=n)
        ops: list[Op] = [barrier] if self.barrier_at_top and n else []
        ops += [HostWork(name=f"build {n}", us=300.0, step=n), *self._written(n)]
        ops += [StreamWaitStream(stream="forward", on="schedule", step=n), *self._forward(n)]
        if self.barrier_behind_launch:
            ops.append(barrier)
        return ops + (self._results(n) if self.swa else [])

    def _written(self, n: int) -> list[Op]:
        if n == self.prefill:
            return [Launch(stream=self.writer, name=f"new owner {n}", writes=(_TABLE,), us=10.0, step=n)]
        fence: list[Op] = [EventSync(event="verify_done", step=n)] if self.self_fence and n else []
        cells = Range("req_to_token", n * _CELL, _CELL)
        append = Launch(stream=self.writer, name=f"append {n}", writes=(cells,), us=10.0, step=n)
        join = StreamWaitStream(stream="schedule", on=self.writer, step=n)
        return [*fence, append, *([join] if self.writer != "schedule" else [])]

    def _forward(self, n: int) -> list[Op]:
        tables = (_TABLE, _MAP) if self.swa else (_TABLE,)
        out = Range("results", n * _TOKENS, _TOKENS)
        ops: list[Op] = [
            Launch(stream="forward", name=f"load {n}", reads=tables, writes=(_PAGES,), us=10.0, step=n),
            Launch(stream="forward", name=f"replay {n}", reads=(_PAGES,), writes=(out,), us=2000.0, step=n),
        ]
        return [*ops, EventRecord(event="verify_done", stream="forward", step=n)] if self.self_fence else ops

    def _results(self, n: int) -> list[Op]:
        """The copy of this step's, and behind the launch what is done with the last one's."""
        src, dst = (Range(buf, n * _TOKENS, _TOKENS) for buf in ("results", "results_cpu"))
        ops: list[Op] = [
            StreamWaitStream(stream="copy", on="forward", step=n),
            Memcpy(api=Api.ASYNC, kind=CopyKind.D2H, src=src, dst=dst, stream="copy", us=10.0, step=n),
            EventRecord(event=f"copy_done {n}", stream="copy", step=n),
        ]
        if not n:
            return ops
        read = Range("results_cpu", (n - 1) * _TOKENS, _TOKENS)
        freed = Range("full_to_swa", (n - 1) * _CELL, _CELL)
        return [
            *ops,
            EventSync(event=f"copy_done {n - 1}", step=n),
            HostRead(range=read, name=f"read results {n - 1}", step=n),
            Launch(stream="schedule", name=f"free {n - 1}", writes=(freed,), us=10.0, step=n),
        ]


BOTH = _Loop(self_fence=True, barrier_at_top=True, prefill=2).program(
    "both fences", "Appends behind two fences; in step 2 the row gets a new owner."
)
"""Exercise 1."""

RESULTS = _Loop(swa=True).program("results", "Processing the results of a step writes full_to_swa.")
"""Exercise 2."""

PLAN = _Loop(writer="plan", barrier_behind_launch=True).program(
    "a plan stream", "plan appends; schedule has the barrier."
)
"""Exercise 3."""
