"""The overlapped loop as it was recorded: the very code of ``OverlapLoop``, run on the simulated device under a tap.

A process that uses a GPU cannot hold the simulated device, so the recording is made by a process of its own; a test
and the chapter hold it equal to ``overlap_program``.
"""

import json
import subprocess
import sys
from typing import Any

from refimpl.fences import VerifyDone
from refimpl.program import Op, Program, Range, accesses, program_from_json, program_to_json, streams_of


def recorded(fence: VerifyDone, steps: int = 5) -> Program:
    """The program of the loop under a fence, recorded in a fresh process; takes a few seconds.

    Args:
        fence: the variant of ``verify_done``.
        steps: iterations; the loop needs more than its warm-up.
    """
    command = [sys.executable, "-m", "refimpl.lessons.record_overlap", str(fence), str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"recording the loop failed: {done.stderr.strip().splitlines()[-1]}")
    return program_from_json(json.loads(done.stdout))


def record_here(fence: VerifyDone, steps: int = 5) -> Program:
    """The same recording made in this process, which must not use a GPU."""
    from refimpl.lessons.captured_step import NANO, CapturedStep
    from refimpl.lessons.overlap import OverlapLoop
    from refimpl.record import record

    loop = OverlapLoop("sim", CapturedStep("sim", NANO), max_steps=steps)
    loop.reset(steps)
    with record("sim") as recording:
        for name in ("schedule", "forward", "copy"):
            recording.name(getattr(loop, f"{name}_stream"), name)
        for name in ("batch_lens", "results", "results_cpu"):
            recording.name(getattr(loop, name), name)
        recording.name(loop.step.seq_lens, "seq_lens")
        recording.name(loop.step.new_seq_lens, "new_seq_lens")
        for n, event in enumerate(loop.copy_done):
            recording.name(event, f"copy_done {n}")
        for n in range(steps):
            recording.step(n)
            loop.iteration_overlap(fence, n, host_us=1000.0)
        recording.name(loop.verify_done, "verify_done")
    return recording.program(
        id=f"recorded/{fence}", words=f"OverlapLoop under {fence}, recorded on the simulated device."
    )


def outline(program: Program) -> list[tuple[Any, ...]]:
    """What a program orders, without names and times: per op its kind, streams, events and accesses.

    A copy on the device counts as the kernel that it is; a graph as one kernel over all its nodes; host work, which
    touches nothing, is left out. Ranges of a graph's private memory are left out too.
    """
    shared = {"new_seq_lens", "seq_lens", "batch_lens", "results", "results_cpu"}

    def kept(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
        return tuple(sorted({r for r in ranges if r.buf in shared}))

    lines = []
    for op in program.ops:
        reads, writes = accesses(op)
        line = (_kind(op), *streams_of(op), getattr(op, "event", None), kept(reads), kept(writes))
        if line[0] != "host_work":
            lines.append(line)
    return lines


def _kind(op: Op) -> str:
    return "work" if op.op in ("launch", "memcpy", "graph_launch") else op.op


if __name__ == "__main__":
    print(json.dumps(program_to_json(record_here(VerifyDone(sys.argv[1]), int(sys.argv[2])))))
