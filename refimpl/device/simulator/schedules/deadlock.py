"""Why nothing can run: one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from refimpl.device.simulator.ops import Op

_NAMED = 6


def lane_name(op: Op) -> str:
    """How a sentence names the queue of an op: by its lane in the run's id, if it has one."""
    return f"lane {op.queue.lane}" if op.queue.lane else f"stream {op.queue.id}"


def op_name(op: Op) -> str:
    """How a sentence names an op."""
    return f"{op.name!r} on {lane_name(op)}"


def waits_for(op: Op) -> str:
    """What the op at the head of its queue waits for."""
    return " and ".join(
        op_name(other) if other.seq >= 0 else f"{other.name!r}, which was not issued"
        for other in op.after
        if not other.done
    )


def deadlock(heads: Iterable[Op], blocked: Sequence[Op]) -> RuntimeError:
    """The error for a host that is blocked while nothing can run.

    Args:
        heads: The op at the head of each queue that is not empty.
        blocked: What the host waits for.
    """
    wanted = " and ".join(op_name(op) for op in blocked if not op.done)
    stuck = [f"{lane_name(head)} is at {head.name!r}, which waits for {waits_for(head)}" for head in heads]
    more = [f"and {len(stuck) - _NAMED} more lanes wait"] if len(stuck) > _NAMED else []
    return RuntimeError("; ".join([f"deadlock: the host waits for {wanted}", *stuck[:_NAMED], *more]))
