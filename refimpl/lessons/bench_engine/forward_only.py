"""The control of the overlapped loop: the forward-stream work of one step, its glue included, and no scheduler."""

from collections.abc import Callable
from functools import partial
from itertools import count

import torch

from refimpl import device as devices
from refimpl.engine.forward_batch import ForwardBatch
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.bench_engine.timing import queued_back_to_back_ms

Queue = Callable[[], object]


def forward_work(scheduler: Scheduler, batch: ForwardBatch) -> Queue:
    """What queues the forward-stream work of one step as the scheduler does: relay, forward, publish, stash, results.

    Args:
        scheduler: idle: what the step writes belongs to nobody then.
        batch: one that the worker was given before. Each call runs the same rows at the same lengths.
    """
    relay, rows, steps = scheduler.future_map, batch.req_pool_indices, count()
    publish = partial(relay.publish, rows)

    def queue() -> None:
        if not batch.forward_mode.is_extend():
            worker = scheduler.worker
            relay.resolve_forward_inputs(rows, worker.relayed(batch.mode), worker.relay_into(batch.batch_size))
        result = scheduler.worker.forward_batch_generation(batch, publish)
        relay.stash(rows, result.relay)
        scheduler.results.copy_to_cpu(result, next(steps))

    return queue


def replays(scheduler: Scheduler, batch: ForwardBatch) -> Queue:
    """What queues the replays of one step's graphs alone, on the inputs that were loaded last: no glue.

    Args:
        scheduler: idle.
        batch: the one that was loaded last.
    """
    runners = scheduler.worker.runners()

    def queue() -> None:
        for runner in runners:
            runner.replay(batch)

    return queue


def forward_stream_ms(scheduler: Scheduler, work: Queue, repeats: int, stall_us: float) -> list[float]:
    """Milliseconds of each of several pieces queued back to back on the forward stream of an idle scheduler.

    Args:
        scheduler: whose stream.
        work: queues one piece.
        repeats: pieces.
        stall_us: how long the stream sleeps first, so that a host slower than the device is not what is measured.

    Order:
        The host blocks until the device is idle.
    """
    dev = devices.get(scheduler.device)
    with torch.inference_mode(), dev.stream(scheduler.forward_stream):
        times = queued_back_to_back_ms(dev, work, repeats, stall_us=stall_us)
    dev.synchronize()
    return times
