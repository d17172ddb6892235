"""What a tap notes down, in the order in which the host made the calls, before names are known."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.record.work import Access, Buffer, HostStep, Lane, Named, Work


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
    """One piece of work put in a stream, or several of one region.

    Args:
        works: The work, in order.
        called: Where and when the first was issued.
    """

    works: tuple[Work, ...]
    called: Called


@dataclass(frozen=True)
class Launched:
    """One launch of a graph.

    Args:
        graph: Which graph.
        lane: The stream it was launched on.
        works: Its nodes.
        after: Per node, the nodes that it comes after.
        called: Where and when.
        region: The innermost region it was launched in.
    """

    graph: int
    lane: Lane
    works: tuple[Work, ...]
    after: tuple[tuple[Work, ...], ...]
    called: Called
    region: Named | None = None


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
        called: Where and when.
    """

    access: Access
    writes: bool
    called: Called


@dataclass(frozen=True)
class Lived:
    """The allocator handed a buffer out or took it back.

    Args:
        buffer: The buffer.
        begins: It was handed out.
        called: Where and when.
    """

    buffer: Buffer
    begins: bool
    called: Called


@dataclass(frozen=True)
class Lent:
    """`record_stream`: the allocator learned that another stream uses a buffer."""

    buffer: Buffer
    lane: Lane
    called: Called


Entry = Issued | Launched | Stepped | Touched | Lived | Lent


def region_of(entry: Entry) -> str | None:
    """The name of the innermost region in which the host issued this work; None outside, and for what is no work."""
    region = entry.region if isinstance(entry, Launched) else None
    if isinstance(entry, Issued):
        region = entry.works[0].region
    return None if region is None else region.name
