"""What the tap notes down, before names are known."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.device.simulator.buffers import Access
from refimpl.device.simulator.capture import Capture
from refimpl.device.simulator.ops import HostStep, Op, Queue


@dataclass(frozen=True)
class Called:
    """Where and when the host made a call.

    Args:
        site: File, line and function.
        step: Iteration of the loop, if it was told.
    """

    site: str | None
    step: int | None


@dataclass(frozen=True)
class Issued:
    """One op put in a queue, or several of one cost region.

    Args:
        ops: The ops, in order.
        called: Where and when the first was issued.
    """

    ops: tuple[Op, ...]
    called: Called


@dataclass(frozen=True)
class Launched:
    """One launch of a graph.

    Args:
        capture: Which graph.
        queue: The queue it was launched on.
        ops: Its nodes.
        after: Per node, the nodes that it comes after.
        called: Where and when.
    """

    capture: Capture
    queue: Queue
    ops: tuple[Op, ...]
    after: tuple[tuple[Op, ...], ...]
    called: Called


@dataclass(frozen=True)
class Stepped:
    """The host blocked, asked or worked."""

    step: HostStep
    called: Called


@dataclass(frozen=True)
class Touched:
    """The host read or wrote memory that the device copies from or to.

    Args:
        access: The bytes.
        writes: It wrote them.
        at_us: Host time.
        called: Where and when.
    """

    access: Access
    writes: bool
    at_us: float
    called: Called


Entry = Issued | Launched | Stepped | Touched
