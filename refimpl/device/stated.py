"""`touches`: what the ops inside read and write, cell by cell, where a schema can name whole tensors alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import torch

from refimpl.device.indexed import checked, shown
from refimpl.device.listening import launched, named
from refimpl.device.simulator.install import installed

Item = torch.Tensor | tuple[Any, ...]
"""A tensor, all of it, or `(tensor, index, …)`, the cells `tensor[index, …]`."""


@dataclass(frozen=True, eq=False)
class Along:
    """The cells that `gather` and `scatter` pick: at each place of `index`, the one that it names along `dim`."""

    dim: int
    index: Any

    @property
    def parts(self) -> tuple[Any, ...]:
        """What has values."""
        return (self.index,)


@dataclass(frozen=True, eq=False)
class Leading:
    """The cells of the first dimension that a kernel picks which goes by lengths: of each row of `index`, `[n, width]`,
    those that its first `counts[row]` entries name."""

    index: Any
    counts: Any

    @property
    def parts(self) -> tuple[Any, ...]:
        """What has values."""
        return self.index, self.counts


Index = tuple[Any, ...] | Along | Leading


@dataclass(frozen=True)
class Touch:
    """What an op touches of a tensor.

    Args:
        tensor: The tensor.
        index: The cells `tensor[index]`: integers, slices, None, `...` and index tensors, on the host or on the
            device, where their values are those that the op finds when it runs. None is all of it.
    """

    tensor: torch.Tensor
    index: Index | None = None


class Stated(tuple[Any, ...]):
    """The index of a statement, which may be wrong, beside those that PyTorch has checked.

    Attributes:
        where: Which entry of which statement it is.
    """

    where: str = ""


def parts_of(index: Index) -> tuple[Any, ...]:
    """The entries of an index."""
    return index if isinstance(index, tuple) else index.parts


def mapped(index: Index, change: Callable[[Any], Any]) -> Index:
    """An index with `change` of each of its entries in their place."""
    if isinstance(index, Along):
        return Along(index.dim, change(index.index))
    if isinstance(index, Leading):
        return Leading(change(index.index), change(index.counts))
    if not isinstance(index, Stated):
        return tuple(change(entry) for entry in index)
    found = Stated(change(entry) for entry in index)
    found.where = index.where
    return found


class Statement:
    """What one `touches` block says.

    Args:
        reads, writes: What is touched.
        launch: Name of the one launch that the block is, else None.
    Attributes:
        stream: Where the launch goes, as a recorder names it; None before its first op is seen.
    """

    def __init__(self, reads: tuple[Touch, ...], writes: tuple[Touch, ...], launch: str | None) -> None:
        self.reads, self.writes, self.launch = reads, writes, launch
        self.stream: object = None

    def refuse_wait(self) -> None:
        """Raises if the block is one launch: it is none if the host, or a stream, waits inside, or marks an event."""
        if self.launch is not None:
            raise RuntimeError(f"{self._within}: something waits inside, or marks an event{self._remedy}")

    def refuse_second(self, stream: object) -> None:
        """Raises if the block is one launch, and has work on another stream than this."""
        if self.stream is None:
            self.stream = stream
        if self.launch is not None and self.stream != stream:
            raise RuntimeError(f"{self._within}: work goes to two streams inside{self._remedy}")

    @property
    def _within(self) -> str:
        return f"touches(launch={self.launch!r})"

    _remedy = ", so it is no one launch: leave out launch=, or put the kernel alone inside"


_statements: list[Statement] = []


def touches(
    reads: Iterable[Item] = (), writes: Iterable[Item] = (), launch: str | None = None
) -> AbstractContextManager[None]:
    """States exactly which bytes the ops inside read and write of the tensors that it names; of others the operator's
    schema says it.

    A schema names whole tensors. Where an engine writes some rows of a table and reads others, every correct step
    would look like a race. Indexing itself (`table[rows] = x`, `table[rows]`, `index_copy_`, `gather`, `scatter_`,
    `embedding`, …) needs no statement: its index tensors are looked up in the same way. A statement is for kernels
    that take a table and the indices apart. Nothing is computed unless somebody records.

    Args:
        reads: Per entry a tensor, all of it, or `(tensor, index, …)`, the cells that `tensor[index, …]` names: index
            tensors of the device or the host, integers, slices, None. An index tensor is no read of its own: state it
            too if the kernel reads it.
        writes: Likewise.
        launch: All that is issued inside is one launch of this name, which touches what is stated, even if no operator
            is seen, as with a Triton kernel. While somebody records, a wait inside, of the host or of a stream, an
            event, or work on a second stream is an error, but for waits and events in a capture: a recording could not
            tell on which side of it the bytes are touched. On a GPU, a launch that no operator shows is on the stream
            that is current where the block ends.
    Raises:
        TypeError: An entry is neither a tensor nor a tuple that begins with one, an index is none, or `launch` is no
            name.
        IndexError: An index does not fit its tensor; if that depends on values of index tensors, the recording raises
            it where it learns them, and names this call.
    Order:
        The host does not block. Index tensors of the device are read when the op runs, on the op's own stream.
    Example:
        >>> import torch
        >>> table, rows = torch.zeros(8, 4), torch.tensor([1, 5])
        >>> with touches(reads=[(table, rows), rows], launch="gather rows"):
        ...     pass
    """
    if launch is not None and (not isinstance(launch, str) or not launch):
        raise TypeError(f"touches(launch=…): {shown(launch)} is no name: give a str that is not empty")
    caller = sys._getframe(1)
    site = f"{PurePath(caller.f_code.co_filename).name}:{caller.f_lineno}"
    return _stating(Statement(_items("reads", reads, site), _items("writes", writes, site), launch))


def one_launch_around() -> Statement | None:
    """The outermost block around that is one launch."""
    return next((statement for statement in _statements if statement.launch is not None), None)


def stated(
    reads: Sequence[Touch], writes: Sequence[Touch], place: Callable[[torch.Tensor], object]
) -> tuple[list[Touch], list[Touch]]:
    """What an op touches, with the statements around it heard, the innermost first.

    Each op of a launch has all that is stated of it: which of them does it cannot be seen, and a recording that took
    one too early or too late would count on an order that does not hold.

    Args:
        reads, writes: What its schema says.
        place: The memory that a tensor lies in.
    """
    reads, writes, settled = list(reads), list(writes), set[object]()
    for statement in reversed(_statements):
        named_here = {place(t.tensor) for t in (*statement.reads, *statement.writes)} - settled
        kept = named_here
        if statement.launch is None:
            kept = named_here & {place(t.tensor) for t in (*reads, *writes)}
        reads = _replaced(reads, statement.reads, named_here, kept, place)
        writes = _replaced(writes, statement.writes, named_here, kept, place)
        settled |= kept
    return reads, writes


def _replaced(
    touched: list[Touch],
    by: tuple[Touch, ...],
    named_here: set[object],
    kept: set[object],
    place: Callable[[torch.Tensor], object],
) -> list[Touch]:
    return [t for t in touched if place(t.tensor) not in named_here] + [t for t in by if place(t.tensor) in kept]


@contextmanager
def _stating(statement: Statement) -> Iterator[None]:
    _statements.append(statement)
    try:
        with _one_launch(statement):
            yield
    finally:
        _statements.remove(statement)


def _one_launch(statement: Statement) -> AbstractContextManager[object]:
    if statement.launch is None:
        return nullcontext()
    if installed():
        from refimpl.device.simulator.operators.touched import one_launch

        return one_launch(statement)
    return _on_cuda(statement, statement.launch)


@contextmanager
def _on_cuda(statement: Statement, name: str) -> Iterator[None]:
    with named(name):
        yield
        launched(statement)  # a kernel that no operator shows may come after operators


def _items(field: str, items: Iterable[Item], site: str) -> tuple[Touch, ...]:
    if isinstance(items, torch.Tensor | str) or not isinstance(items, Iterable):
        raise TypeError(
            f"touches({field}=…): {shown(items)} is no list of tensors and (tensor, index, …), so put it in one"
        )
    found = []
    for at, item in enumerate(items):
        tensor, *index = item if isinstance(item, tuple) and item else (item,)
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"touches({field}=…): {shown(item)} is neither a tensor nor a tuple (tensor, index, …), "
                "so give one of these"
            )
        where = f"touches({field}=…), entry {at}, at {site}"
        found.append(Touch(tensor, _stated_index(where, tensor, tuple(index)) if index else None))
    return tuple(found)


def _stated_index(where: str, tensor: torch.Tensor, index: tuple[Any, ...]) -> Stated:
    found = Stated(checked(where, tensor, index))
    found.where = where
    return found
