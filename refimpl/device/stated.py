"""`touches`: what the ops inside read and write, cell by cell, where a schema can name whole tensors alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from refimpl.device.listening import launched, named
from refimpl.device.simulator.install import installed

Item = torch.Tensor | tuple[Any, ...]
"""A tensor, all of it, or `(tensor, index, …)`, the cells `tensor[index, …]`."""


@dataclass(frozen=True, eq=False)
class Along:
    """The cells that `gather` and `scatter` pick: at each place of `index`, the one that it names along `dim`."""

    dim: int
    index: Any


@dataclass(frozen=True)
class Touch:
    """What an op touches of a tensor.

    Args:
        tensor: The tensor.
        index: The cells `tensor[index]`: integers, slices, None, `...` and index tensors, on the host or on the
            device, where their values are those that the op finds when it runs. None is all of it.
    """

    tensor: torch.Tensor
    index: tuple[Any, ...] | Along | None = None


class Statement:
    """What one `touches` block says.

    Args:
        reads, writes: What is touched.
        launch: Name of the one launch that the block is, else None.
    Attributes:
        taken: The launch's first op has been issued, and carries all that is stated.
    """

    def __init__(self, reads: tuple[Touch, ...], writes: tuple[Touch, ...], launch: str | None) -> None:
        self.reads, self.writes, self.launch = reads, writes, launch
        self.taken = False


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
            is seen, as with a Triton kernel.
    Raises:
        TypeError: An entry is neither a tensor nor a tuple that begins with one.
    Order:
        The host does not block. Index tensors of the device are read when the op runs, on the op's own stream.
    Example:
        >>> import torch
        >>> table, rows = torch.zeros(8, 4), torch.tensor([1, 5])
        >>> with touches(reads=[(table, rows), rows], launch="gather rows"):
        ...     pass
    """
    statement = Statement(_items("reads", reads), _items("writes", writes), launch)
    return _stating(statement)


def stated(
    reads: Sequence[Touch], writes: Sequence[Touch], place: Callable[[torch.Tensor], object]
) -> tuple[list[Touch], list[Touch]]:
    """What an op touches, with the statements around it heard, the innermost first.

    Args:
        reads, writes: What its schema says.
        place: The memory that a tensor lies in.
    """
    reads, writes, settled = list(reads), list(writes), set[object]()
    for statement in reversed(_statements):
        named_here = {place(t.tensor) for t in (*statement.reads, *statement.writes)} - settled
        if statement.launch is None:
            kept = named_here & {place(t.tensor) for t in (*reads, *writes)}
        else:
            kept, statement.taken = set() if statement.taken else named_here, True
        reads = _replaced(reads, statement.reads, named_here, kept, place)
        writes = _replaced(writes, statement.writes, named_here, kept, place)
        settled |= named_here
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
        if not statement.taken:
            launched(statement)


def _items(field: str, items: Iterable[Item]) -> tuple[Touch, ...]:
    found = []
    for item in items:
        tensor, *index = item if isinstance(item, tuple) and item else (item,)
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"touches({field}=…): {item!r} is neither a tensor nor a tuple (tensor, index, …), so give one of these"
            )
        found.append(Touch(tensor, tuple(index) if index else None))
    return tuple(found)
