"""What the allocators see of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from refimpl.device.simulator.capture import Capture
    from refimpl.device.simulator.ops import HostKind, Observer, Op, Queue


class Device(Protocol):
    """The stream that allocates now, the capture under way, who is to be told, and how far each stream is."""

    current: Queue
    capture: Capture | None
    observers: list[Observer]

    def queue(self, id_: int) -> Queue:
        """The queue of a stream."""

    def block(self, op: Op | None, kind: HostKind, queue: Queue | None = None) -> None:
        """The host blocks until `op` has run."""

    def refuse_in_capture(self, what: str) -> None:
        """Raises in a graph capture."""
