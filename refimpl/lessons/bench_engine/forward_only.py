"""The control of the overlapped loop: the forward-stream work of one decode, its glue included, and no scheduler."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from refimpl import device as devices


class HasForward(Protocol):
    """What of an engine queues forward-stream work."""

    device: str
    worker: Any
    future_map: Any
    forward_stream: Any


def forward_work(engine: HasForward, batch: Any) -> Callable[[], object]:
    """What queues one decode as the loop does: resolve, the worker's forward with its publish, stash.

    Args:
        engine: idle; no request runs, so that what the decode writes is nobody's.
        batch: a batch that the worker was given before. Each call decodes the same rows at the same lengths.

    Returns:
        A function that queues it on the current stream, which has to be the forward stream.
    """
    relay, rows = engine.future_map, batch.req_pool_indices
    publish = partial(relay.publish, rows)

    def queue() -> None:
        relay.resolve_forward_inputs(rows)
        result = engine.worker.forward_decode(batch, publish)
        relay.stash(rows, result.relay)

    return queue


def replay_only(engine: HasForward, batch: Any) -> Callable[[], object]:
    """What queues the replay of the engine's own graphs alone: neither loading nor relay.

    Args:
        engine: idle.
        batch: a batch that was loaded last.
    """
    runners = engine.worker.runners()
    buckets = [(runner, runner.bucket(batch.batch_size)) for runner in runners]

    def queue() -> None:
        for runner, bucket in buckets:
            runner.replay(bucket, batch)

    return queue


def on_forward_stream(engine: HasForward, measure: Callable[[], list[float]]) -> list[float]:
    """Runs a measurement with the forward stream current."""
    with devices.get(engine.device).stream(engine.forward_stream):
        return measure()
