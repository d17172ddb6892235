"""Two steps of the engine as they were recorded: trained nano weights with DFLASH, on the simulated device under a tap.

A page shows them as a timeline. Each variant is an engine of its own, run and recorded; none is written down by hand.
A process that uses a GPU cannot hold the simulated device, so the recordings are made by a process of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refimpl.fences import Fences, Publish, ReadDone, WarBarrier
from refimpl.lessons.folded import Turns, folded
from refimpl.program import Explorable, Launch, Param, Program, Variant, program_from_json, program_to_json

if TYPE_CHECKING:
    from refimpl.engine.scheduler import Scheduler
    from refimpl.record import Recording

PROMPTS = ("def fib(n):", "class Queue:")
NEW_TOKENS = 24
CONTEXT = 128
STEADY = 4
"""The first turn shown: the prefill is over, and every step finds what a step before it left."""
SHOWN = 4
HOST_US = 60.0
"""Host work of a turn besides its calls, which the simulated device does not charge for."""
MOST_US, STEP_US = 1000.0, 2.0
"""How far a reader may drag a duration, and in which steps."""


@dataclass(frozen=True)
class Told:
    """A variant to record.

    Args:
        id, label, words: as of ``Variant``.
        fences: what orders the streams.
        overlap: which of the two loops runs.
    """

    id: str
    label: str
    words: str
    fences: Fences
    overlap: bool = True


TOLD = (
    Told(
        "upstream",
        "all fences",
        "Every fence stands: while a step runs, the next one is prepared, and the one before it is read.",
        Fences(),
    ),
    Told(
        "coarse",
        "coarse barrier",
        "Without a read_done event the barrier waits for the whole forward. What schedule is given next waits longer.",
        Fences(read_done=ReadDone.COARSE),
    ),
    Told(
        "no-publish",
        "no publish",
        "Nothing orders resolve_seq_lens after publish: it may read the lengths of the step before.",
        Fences(publish=Publish.NONE),
    ),
    Told(
        "no-barrier",
        "no barrier",
        "Nothing orders prepare_for_decode after load_batch: it may write rows that are still being copied.",
        Fences(war_barrier=WarBarrier.NONE),
    ),
    Told(
        "normal",
        "one at a time",
        "The control, event_loop_normal: each step is read before the next one is prepared.",
        Fences(),
        overlap=False,
    ),
)


def engine_steps() -> Explorable:
    """The variants side by side, recorded in a fresh process; takes some ten seconds."""
    command = [sys.executable, "-m", "refimpl.lessons.record_engine"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"recording the engine failed: {done.stderr.strip().splitlines()[-1]}")
    return explorable({id: program_from_json(found) for id, found in json.loads(done.stdout).items()})


def explorable(programs: dict[str, Program]) -> Explorable:
    """The recorded programs, with the durations that a reader may change.

    Args:
        programs: by the ids of :data:`TOLD`.
    """
    return Explorable(
        id="engine_steps",
        title="Steps of event_loop_overlap",
        words="Recorded from the engine: nano weights, DFLASH, two requests.",
        variants=tuple(Variant(told.id, told.label, told.words, programs[told.id]) for told in TOLD),
        params=_params(programs[TOLD[0].id]),
        initial="upstream",
        before="normal",
        topic=("publish_ready",),
        hero="forward",
        step_op="verify",
        ask=("publish 1", "resolve_seq_lens 2"),
    )


def _params(program: Program) -> dict[str, Param]:
    """Host work, and each graph with the time that the simulated device charges for it."""
    graphs = {op.param: op.us for op in program.ops if isinstance(op, Launch) and op.param is not None}
    sliders = {name: Param(name, us, 0.0, MOST_US, STEP_US) for name, us in graphs.items() if us is not None}
    return {"host": Param("host work", HOST_US, 0.0, MOST_US, STEP_US), **sliders}


def record_here(told: Told) -> Program:
    """The recording of one variant made in this process, which must not use a GPU."""
    from refimpl.engine import Engine, SamplingParams
    from refimpl.lessons.lossless.load import Arrival
    from refimpl.lessons.lossless.play import play_unchecked
    from refimpl.record import record

    options: dict[str, Any] = {"fences": told.fences, "overlap": told.overlap}
    engine = Engine("nano", "dflash", "sim", max_running_requests=len(PROMPTS), max_context=CONTEXT, **options)
    params = SamplingParams(max_new_tokens=NEW_TOKENS, ignore_eos=True)
    load = [Arrival(0, tuple(engine.tokenizer.encode(prompt)), params) for prompt in PROMPTS]
    # Once before: the graphs are captured then, and memory of the first steps is there again.
    play_unchecked(engine.scheduler, load)
    with record("sim") as recording:
        _name(recording, engine.scheduler)
        recording.step(0)
        play_unchecked(engine.scheduler, load, recording.step)
    graphs = [runner.name for runner in engine.scheduler.worker.runners()]
    program = recording.program(id=f"engine/{told.id}", words=told.words)
    return folded(program, Turns(STEADY, SHOWN, graphs, HOST_US))


def _name(recording: Recording, scheduler: Scheduler) -> None:
    """The names that the engine's own text has for what its streams share."""
    for name in ("schedule", "forward", "copy"):
        recording.name(getattr(scheduler.streams, f"{name}_stream"), name)
    recording.name(scheduler.memory.req_to_token_pool.req_to_token, "req_to_token")
    recording.name(scheduler.future_map.new_seq_lens_buf, "new_seq_lens_buf")
    recording.name(scheduler.future_map.output_tokens_buf, "output_tokens_buf")


if __name__ == "__main__":
    import torch

    # The simulated device's operators are too small to be shared.
    torch.set_num_threads(1)
    print(json.dumps({told.id: program_to_json(record_here(told)) for told in TOLD}))
