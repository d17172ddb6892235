"""What every tap does: it notes entries in the order in which the host made the calls."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import PurePath
from types import CodeType
from typing import Any

import torch

from refimpl.device.stated import one_launch_around
from refimpl.record.entries import Called, Entry, Issued, Launched, Lent, Lived, Stepped, Touched
from refimpl.record.names import Key
from refimpl.record.work import Access, Buffer, HostKind, HostStep, Kind, Lane, Named, Work, one_region

_MACHINERY = ("torch", "refimpl.device", "refimpl.record", "contextlib")


class Tap(ABC):
    """Collects entries; a device's tap says what they are.

    Attributes:
        entries: What was noted.
        step: Iteration of the loop, as the recorded code tells it.
        source: Where the program comes from, in words.
    """

    source: str

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.step: int | None = None

    @abstractmethod
    def attached(self) -> AbstractContextManager[object]:
        """Notes what the code inside does, from an idle device to an idle device."""

    @abstractmethod
    def key_of(self, thing: Any) -> Key | None:
        """What tells a stream, an event, a graph or a tensor's memory from others; None for anything else."""

    @abstractmethod
    def is_on_device(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies on the device."""

    @abstractmethod
    def accesses_of_host(self, tensor: torch.Tensor) -> Iterable[Access]:
        """The bytes of a host tensor, if the device copies from or to that memory or could do so by itself."""

    def clock_us(self) -> float | None:
        """The device's own clock, if it tells when things ran."""
        return None

    def issued(self, work: Work) -> None:
        """Notes work; what one region issues in a row is one entry, which comes after what the allocator did
        meanwhile.

        Raises:
            RuntimeError: It cannot belong to the one launch that `touches` states.
        """
        at = len(self.entries) - 1
        while at >= 0 and isinstance(self.entries[at], Lived | Lent):
            at -= 1
        last = self.entries[at] if at >= 0 else None
        if isinstance(last, Issued) and one_region(last.works[-1], work):
            del self.entries[at]
            self.entries.append(Issued((*last.works, work), last.called))
        else:
            self.entries.append(Issued((work,), self.called()))
        if (statement := one_launch_around()) is not None:
            if work.kind in (Kind.RECORD, Kind.WAIT):
                statement.refuse_wait()
            statement.refuse_second(work.lane)

    def launched(
        self,
        graph: int,
        lane: Lane,
        works: tuple[Work, ...],
        after: tuple[tuple[Work, ...], ...],
        region: Named | None = None,
    ) -> None:
        """Notes a launch of a graph."""
        self.entries.append(Launched(graph, lane, works, after, self.called(), region))

    def stepped(self, step: HostStep) -> None:
        """Notes what the host did."""
        self.entries.append(Stepped(step, self.called()))
        if step.kind not in (HostKind.WORK, HostKind.STAGING) and (statement := one_launch_around()) is not None:
            statement.refuse_wait()

    def touched(self, tensor: torch.Tensor, writes: bool) -> None:
        """Notes an access of the host, where the device copies from or to that memory."""
        called = self.called()
        self.entries += [Touched(access, writes, called) for access in self.accesses_of_host(tensor)]

    def lived(self, buffer: Buffer, begins: bool) -> None:
        """Notes that the allocator handed a buffer out or took it back."""
        self.entries.append(Lived(buffer, begins, self.called()))

    def lent(self, buffer: Buffer, lane: Lane) -> None:
        """Notes that the allocator learned of another stream's use."""
        self.entries.append(Lent(buffer, lane, self.called()))

    def called(self) -> Called:
        """The innermost frame that is neither PyTorch's nor ours."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(_MACHINERY):
            outer = frame.f_back
            if outer is None:
                return Called(None, self.step)
            frame = outer
        return Called(_site(frame.f_code, frame.f_lineno), self.step)


def _site(code: CodeType, line: int) -> str:
    """File, line and function; a notebook's cell has a file of its own, whose name says nothing to a reader."""
    path = PurePath(code.co_filename)
    name = "cell" if path.parent.name.startswith("ipykernel_") else path.name
    return f"{name}:{line}" if code.co_name == "<module>" else f"{name}:{line} ({code.co_name})"
