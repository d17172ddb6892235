"""Which bytes an op touches: whole tensors by the operator's schema, cells where its index tensors name them, and what
`touches` states.

`touched` is generic over tensors; the rest names them as the simulated device does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.memory.buffers import Access, Buffer, accesses, meet
from refimpl.device.simulator.operators.plans import Operator, aten, written_and_read
from refimpl.device.simulator.ops import Kind, Op
from refimpl.device.simulator.tensor import SimTensor
from refimpl.device.stated import Along, Index, Leading, Statement, Touch, mapped, parts_of, stated


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a tensor that an index names, whose values are on the device: to be looked up when the op has run.

    Args:
        buffer: The allocation.
        tensor: The CPU tensor behind the tensor; it keeps no memory from being handed on.
        index: The index, with CPU tensors for those of the device. None if the op writes where its index tensors lie,
            so that nobody can tell afterwards what they were: the tensor as a whole stands for the cells.
    """

    buffer: Buffer
    tensor: torch.Tensor
    index: Index | None


Touched = Access | Cells
Ranges = tuple[tuple[Touched, ...], tuple[Touched, ...]]


def touched(
    func: Any, op: Operator, args: Any, kwargs: Any, fresh: Sequence[torch.Tensor]
) -> tuple[list[Touch], list[Touch]]:
    """What one call of an operator reads and writes.

    Args:
        func: The overload.
        op: What its schema says.
        args, kwargs: Its arguments.
        fresh: The tensors that it makes.
    """
    written, read = written_and_read(op, args, kwargs)
    index = _index(func, args)
    own = _cells_of(func, args)
    reads, writes = [Touch(t, own.get(id(t))) for t in read], [Touch(t, own.get(id(t))) for t in (*written, *fresh)]
    if index is None:
        return reads, writes
    table, picked = args[0], Touch(args[0], index)
    in_place = any(t is table for t in written)
    reads = [t for t in reads if t.tensor is not table]
    if not in_place or _accumulates(func, op, args):
        reads.insert(0, picked)
    return reads, [picked if t.tensor is table else t for t in writes]


def ranges_of_call(func: Any, op: Operator, args: Any, kwargs: Any, fresh: Sequence[Any]) -> Ranges:
    """The bytes that one call reads and writes on the device; `fresh` may hold lists of tensors, and None."""
    made = [t for value in fresh for t in (value if isinstance(value, list) else [value]) if t is not None]
    reads, writes = touched(func, op, args, kwargs, made)
    return ranges_of([t for t in reads if _on_device(t)], [t for t in writes if _on_device(t)])


def ranges_of(reads: Sequence[Touch], writes: Sequence[Touch]) -> Ranges:
    """The bytes of what is touched, with the statements around it heard."""
    reads, writes = stated(reads, writes, _buffer)
    written = [_inner(touch.tensor) for touch in writes]
    return _touched(reads, written), _touched(writes, written)


@contextmanager
def one_launch(statement: Statement) -> Iterator[None]:
    """All ops inside are one launch; where there is none, one that does nothing stands for it."""
    with DEVICE.region(statement.launch or "", None, 1.0) as region:
        yield
        if region.empty:
            op = Op(Kind.LAUNCH, region.name, DEVICE.current)
            if DEVICE.observers or DEVICE.capture is not None:
                op.reads, op.writes = ranges_of((), ())
            DEVICE.issue(op)


def _on_device(touch: Touch) -> bool:
    return isinstance(touch.tensor, SimTensor)


def _buffer(tensor: torch.Tensor) -> Buffer:
    return tensor.buffer if isinstance(tensor, SimTensor) else DEVICE.host_buffers.of(tensor)


def _touched(touches: Sequence[Touch], written: Sequence[torch.Tensor]) -> tuple[Touched, ...]:
    found: list[Touched] = []
    for touch in touches:
        buffer, inner = _buffer(touch.tensor), _inner(touch.tensor)
        if touch.index is None:
            found += accesses(buffer, inner)
        else:
            parts = parts_of(touch.index)
            lost = any(isinstance(part, SimTensor) and meet(part.simulated, written) for part in parts)
            found.append(Cells(buffer, inner, None if lost else mapped(touch.index, _held)))
    return tuple(found)


def _inner(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.simulated if isinstance(tensor, SimTensor) else tensor


def _held(index: Any) -> Any:
    """An index of the device as it will be; one of the host as it is now."""
    if isinstance(index, SimTensor):
        return index.simulated
    if isinstance(index, torch.Tensor):
        with no_dispatch():
            return index.clone()
    return index


def _index(func: Any, args: Any) -> Index | None:
    """The cells of its first argument that a call names, or None for all of it."""
    find = _FIND.get(func)
    return find(args) if find is not None and args[0].dim() > 0 else None


def _cells_of(func: Any, args: Any) -> dict[int, Index]:
    """What an operator of somebody's own says with its attribute `cells`: which of its tensors it touches in part, by
    the argument's name, and the names of the arguments that pick the cells of the first dimension: indices, or rows of
    indices and how many of each row count."""
    cells = getattr(func, "cells", None)
    if cells is None:
        return {}
    given = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)}
    return {
        id(given[table]): (given[picked[0]],) if len(picked) == 1 else Leading(*(given[name] for name in picked))
        for table, picked in cells.items()
    }


def _listed(args: Any) -> Index:
    return tuple(slice(None) if i is None else i for i in args[1])


def _in_dimension(args: Any) -> Index:
    return *(slice(None) for _ in range(args[1] % args[0].dim())), args[2]


def _along(args: Any) -> Index:
    return Along(args[1] % args[0].dim(), args[2])


def _first(args: Any) -> Index:
    return (args[1],)


_FIND: dict[Any, Callable[[Any], Index]] = {
    **dict.fromkeys(
        (aten.index.Tensor, aten.index.Tensor_out, aten.index_put_.default, aten._index_put_impl_.default), _listed
    ),
    **dict.fromkeys(
        (
            aten.index_select.default,
            aten.index_select.out,
            aten.index_copy_.default,
            aten.index_add_.default,
            aten.index_reduce_.default,
            aten.index_fill_.int_Scalar,
            aten.index_fill_.int_Tensor,
        ),
        _in_dimension,
    ),
    **dict.fromkeys(
        (
            aten.gather.default,
            aten.gather.out,
            aten.scatter_.src,
            aten.scatter_.value,
            aten.scatter_.reduce,
            aten.scatter_.value_reduce,
            aten.scatter_add_.default,
            aten.scatter_reduce_.two,
        ),
        _along,
    ),
    aten.embedding.default: _first,
}
_ADDING = {
    aten.index_add_.default,
    aten.index_reduce_.default,
    aten.scatter_.reduce,
    aten.scatter_.value_reduce,
    aten.scatter_add_.default,
    aten.scatter_reduce_.two,
}


def _accumulates(func: Any, op: Operator, args: Any) -> bool:
    """Whether an operator reads the cells that it writes."""
    return func in _ADDING or (op.name in ("index_put_", "_index_put_impl_") and len(args) > 3 and bool(args[3]))
