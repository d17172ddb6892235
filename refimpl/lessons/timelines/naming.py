"""What a recording of the engine calls things: names and regions that are put on from outside.

The engine knows nothing of recordings. Its streams, tables and events have names already, in its own text; here a
recording is told of them, and each method of a step becomes a region, so that what it queues can be drawn as one op.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from refimpl import device as devices
from refimpl.engine.forward_batch import ForwardBatch
from refimpl.engine.kv_transfer import pools_of
from refimpl.engine.pools import SWATokenToKVPoolAllocator
from refimpl.engine.staging import DEPTH

if TYPE_CHECKING:
    from refimpl.engine.scheduler import Scheduler
    from refimpl.engine.workers.base import Worker
    from refimpl.record import Recording

COPY = "copy_to_cpu"
PREFILL = "prefill"
SEED = "seed"
"""What is done for a request whose prefill ran elsewhere: on schedule, by the methods that forward uses."""
LANES = {
    "schedule_stream": "schedule",
    "plan_stream": "plan",
    "forward_stream": "forward",
    "copy_stream": "copy",
    "fwd_prepare_d2h_stream": "copy of lengths",
}
"""What a stream of the engine is called, by its attribute."""
OF_TURN = "{} of turn {}"
"""What is made anew in each turn: its name, and the number of the turn."""
KV_TRANSFER = "kv transfer"
"""The agent that brings keys and values, which is no stream of the engine's."""
_NUMBERED = re.compile(r"(( of turn)? \d+)?( \(\d+\))?$")


def base(name: str) -> str:
    """A name without the number that tells it from its like: ``"copy_done"`` of ``"copy_done 1"``."""
    return _NUMBERED.sub("", name)


@contextmanager
def regions(scheduler: Scheduler) -> Iterator[None]:
    """Inside, what a method of the engine's step queues is in a region of its name; nothing else changes."""
    dev, around = devices.get(scheduler.device), list[str]()
    with ExitStack() as stack:
        for step in _steps(scheduler):
            call = getattr(step.owner, step.method)
            stack.enter_context(patch.object(step.owner, step.method, _within(dev, step, call, around)))
        yield


def name_things(recording: Recording, scheduler: Scheduler) -> None:
    """Names streams, tables, inputs of graphs and rings, as the engine's text does."""
    for attribute, stream in vars(scheduler.streams).items():
        recording.name(stream, LANES.get(attribute, attribute))
    for tensor, name in _tables(scheduler):
        recording.name(tensor, name)
    for at, slot in enumerate(scheduler.results._slots):
        recording.name(slot.aside, f"results {at}")
        recording.name(slot.pinned, f"results_cpu {at}")
        recording.name(slot.copy_done, f"copy_done {at}")


def name_step(recording: Recording, scheduler: Scheduler, turn: int) -> None:
    """Names what the step of a turn left in memory of its own; to be called behind the turn."""
    for thing, name in _left(scheduler):
        if thing is not None:
            recording.name(thing, OF_TURN.format(name, turn))
    for transfer in scheduler.prebuilt._transfers:
        for event in ("allocated", "quiet", "done"):
            if getattr(transfer, event) is not None:
                recording.name(getattr(transfer, event), f"{KV_TRANSFER} {event} {transfer.req.rid}")


def name_late(recording: Recording, scheduler: Scheduler, prebuilt: bool) -> None:
    """Names what is made when it is first needed, and then once; to be called at the end.

    Args:
        recording: of the engine.
        scheduler: the engine.
        prebuilt: whether an agent brought keys and values.
    """
    if scheduler.future_map.publish_ready is not None:
        recording.name(scheduler.future_map.publish_ready, "publish_ready")
    plan = getattr(scheduler.worker, "plan", None)
    if plan is not None:
        recording.name(plan.draft_done, "draft_done")
    if prebuilt:
        recording.name(scheduler.prebuilt.agent.kv_transfer_stream, KV_TRANSFER)
    last = scheduler.worker.last_shared_read_runner
    recording.name(last._read_done, "read_done")
    for (size, _), captured in last._captured.items():
        if captured.read_done is not None:
            recording.name(captured.read_done, f"read_done {size}")


def _left(scheduler: Scheduler) -> Iterator[tuple[Any, str]]:
    if scheduler.last_batch is None:
        return
    kept: Any = scheduler.batch_record_buf[scheduler.forward_ct % DEPTH]
    for batch in kept or ():
        if isinstance(batch, ForwardBatch):
            yield batch.req_pool_indices, "req_pool_indices"
            yield batch.seq_lens, "seq_lens"
            if batch.relay is not None and not scheduler.worker.relay_into(batch.batch_size):
                yield batch.relay.bonus_tokens, "bonus_tokens"
    left = scheduler.last_batch.spec_info
    if left is not None:
        yield left.new_seq_lens, "new_seq_lens"
        yield left.verify_done, "verify_done"


def _tables(scheduler: Scheduler) -> Iterator[tuple[Any, str]]:
    """Memory that lives as long as the engine, and is touched by more than one method."""
    memory, relay = scheduler.memory, scheduler.future_map
    yield memory.req_to_token_pool.req_to_token, "req_to_token"
    if isinstance(memory.allocator, SWATokenToKVPoolAllocator):
        yield memory.allocator.full_to_swa, "full_to_swa"
    yield relay.new_seq_lens_buf, "new_seq_lens_buf"
    yield relay.output_tokens_buf, "output_tokens_buf"
    yield from ((rows, name) for name, rows in relay.extras_buf.items())
    yield from ((pool._kv, f"kv of {name}") for name, pool in pools_of(scheduler.worker).items())
    yield from _inputs(scheduler.worker)
    yield from _outputs(scheduler.worker)


def _inputs(worker: Worker) -> Iterator[tuple[Any, str]]:
    """The static inputs of each runner that loads some."""
    known = set[int]()
    for runner in worker.runners():
        if id(runner.inputs) in known:
            continue
        known.add(id(runner.inputs))
        inputs = runner.inputs
        named = {"req_pool_indices": inputs.req_pool_indices, "seq_lens": inputs.seq_lens}
        named |= {"page_table": inputs.page_table, **inputs.tokens}
        if inputs.swa_page_table is not None:
            named["swa_page_table"] = inputs.swa_page_table
        yield from ((tensor, f"{runner.name}.{name}") for name, tensor in named.items())


def _outputs(worker: Worker) -> Iterator[tuple[Any, str]]:
    """What each graph leaves, in memory of the graph; one for each size. An input that it hands on has its name."""
    for runner in worker.runners():
        for (size, _), captured in runner._captured.items():
            for name, tensor in captured.outputs.items():
                if not any(tensor is given for given in captured.inputs.tokens.values()):
                    yield tensor, f"{runner.name}.{name} {size}"


@dataclass(frozen=True)
class _Step:
    """A method that is drawn.

    Args:
        owner: who has it.
        method: its name.
        name: what it is drawn as.
        part_of: the step that it is a part of where it is called within that one, and then not drawn by itself.
    """

    owner: Any
    method: str
    name: str
    part_of: str = ""


def _steps(scheduler: Scheduler) -> Iterator[_Step]:
    relay, worker = scheduler.future_map, scheduler.worker
    yield _Step(scheduler, "get_next_batch_to_run", "filter_batch")
    yield _Step(scheduler, "run_batch", "upload_rows")
    for method in ("prepare_for_extend", "prepare_for_decode", "retract_decode", "abort"):
        yield _Step(scheduler, method, method)
    yield _Step(scheduler.lengths, "resolve", "resolve_seq_lens")
    yield _Step(scheduler.lengths, "publish", "publish")
    yield _Step(scheduler.outputs, "process_batch_result_blocking", "process_batch_result")
    for method in ("publish", "stash", "resolve_forward_inputs"):
        yield _Step(relay, method, method)
    yield _Step(relay, "resolve_seq_lens_cpu_blocking", "resolve_seq_lens_cpu")
    yield _Step(scheduler.results, COPY, COPY)
    yield _Step(scheduler.sampling, "write", "write_sampling")
    yield _Step(worker, "forward_extend", PREFILL)
    yield _Step(scheduler.prebuilt, "_seed", SEED)
    yield _Step(scheduler.prebuilt, "_write_row", "prepare_for_prebuilt")
    yield _Step(scheduler.prebuilt.agent, "prepare", "prepare_kv_transfer")
    for runner in worker.runners():
        load = f"load_batch {runner.name}"
        yield _Step(runner, "load_batch", load)
        yield _Step(runner, "load_tokens", f"load_tokens {runner.name}", part_of=load)
        yield _Step(runner, "replay", runner.name)


def _within(dev: Any, step: _Step, call: Callable[..., Any], around: list[str]) -> Callable[..., Any]:
    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        if step.part_of in around:
            return call(*args, **options)
        name = f"{SEED} {step.name}" if SEED in around else step.name
        around.append(name)
        try:
            with dev.cost(name):
                return call(*args, **options)
        finally:
            around.pop()

    return run
