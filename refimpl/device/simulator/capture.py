"""Graph capture: ops noted instead of queued, and issued again at each replay on the same memory."""

from __future__ import annotations

from collections.abc import Callable

from refimpl.device.simulator.memory.free_blocks import Pool
from refimpl.device.simulator.ops import Kind, Op, Queue


class Capture:
    """The ops captured from one stream, and from those that joined it by waiting for an event of the capture.

    Args:
        origin: The queue on which the capture began.
        pool: Where memory allocated in the capture comes from.
    Attributes:
        broken_by: What ended the capture before its time, so that it can only be given up, as on CUDA.
    """

    def __init__(self, origin: Queue, pool: Pool) -> None:
        self.origin, self.pool = origin, pool
        self.nodes: list[Op] = []
        self.broken_by: str | None = None
        self._tails: dict[Queue, Op | None] = {origin: None}
        self._nodes: set[Op] = set()

    def takes(self, op: Op) -> bool:
        """Whether `op` belongs to the capture; a wait for a captured event brings its stream in."""
        return op.queue in self._tails or any(other in self._nodes for other in op.after)

    def covers(self, queue: Queue) -> bool:
        """Whether ops of `queue` are being captured."""
        return queue in self._tails

    def holds(self, op: Op) -> bool:
        """Whether `op` is a node of this capture."""
        return op in self._nodes

    def add(self, op: Op) -> None:
        """Notes an op; it waits for nothing outside the capture, because an outside event means nothing at the
        replay."""
        self._refuse_broken()
        outside = [other for other in op.after if other not in self._nodes and not _is_external(op)]
        if outside:
            self.broken_by = "a wait for an event recorded outside of it"
            raise RuntimeError(
                f"sim: {op.queue} waits in a graph capture for an event recorded outside of it: "
                "record it inside, or make it with external=True"
            )
        op.captured = True
        op.previous = self._tails.get(op.queue)
        self._tails[op.queue] = op
        self._nodes.add(op)
        self.nodes.append(op)

    def close(self) -> None:
        """Ends the capture; every stream that joined must have been joined back."""
        self._refuse_broken()
        seen, todo = set[Op](), [op for op in (self._tails[self.origin],) if op is not None]
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += [other for other in (*at.after, at.previous) if other is not None]
        for queue, tail in self._tails.items():
            if tail is not None and tail not in seen:
                raise RuntimeError(
                    f"sim: {queue} joined the capture begun on {self.origin} and was not joined back: "
                    f"let {self.origin} wait for it before the end"
                )

    def _refuse_broken(self) -> None:
        if self.broken_by is not None:
            raise RuntimeError(f"sim: {self.broken_by} broke the graph capture: give it up and capture again")

    def instantiate(self, queue: Queue, lane: Callable[[], Queue]) -> list[Op]:
        """Fresh ops for one launch on `queue`, in the order of the capture.

        Args:
            queue: Takes the part of the stream on which the capture began.
            lane: Makes a queue for each other stream.
        """
        lanes = {self.origin: queue}
        fresh: dict[Op, Op] = {}
        for node in self.nodes:
            if node.queue not in lanes:
                lanes[node.queue] = lane()
            op = fresh[node] = node.again(lanes[node.queue])
            op.after = tuple(fresh[other] for other in node.after if other in fresh)
            if _is_external(node) and node.event is not None:
                if node.kind is Kind.RECORD:
                    node.event.hold(op)
                elif node.event.mark is not None:
                    op.after = (node.event.mark,)
        return list(fresh.values())


def _is_external(op: Op) -> bool:
    return op.event is not None and op.event.external
