"""What ops do to memory: operators, random operators, copies; each at one instant or piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from refimpl.device.simulator.operators.plans import Operator
from refimpl.device.simulator.operators.twins import Twins
from refimpl.device.simulator.ops import Effect, Landing


class Operation(Effect):
    """Runs an operator on the CPU tensors behind its arguments.

    Args:
        op: The operator.
        args, kwargs: Its arguments, with CPU tensors.
        outs: Per return value the memory to fill: a tensor, a list of tensors, or None for an argument that it writes.
    """

    __slots__ = ("_args", "_kwargs", "_op", "_outs")

    def __init__(self, op: Operator, args: list[Any], kwargs: dict[str, Any], outs: list[Any]) -> None:
        self._op, self._args, self._kwargs, self._outs = op, args, kwargs, outs

    def __call__(self) -> None:
        """Reads and writes at once."""
        _fill(self._outs, self._op.call(*self._args, **self._kwargs))

    def begin(self, pieces: int) -> Landing:
        """Reads now, and computes in twins of what the operator writes."""
        at_write = [at for at in self._op.written if self._has(at)]
        written = [self._kwargs.get(at) if isinstance(at, str) else self._args[at] for at in at_write]
        twins = Twins(_tensors([*written, *self._outs]))
        args = [_swapped(value, twins.of) for value in self._args]
        kwargs = {name: _swapped(value, twins.of) for name, value in self._kwargs.items()}
        _fill([_swapped(out, twins.of) for out in self._outs], self._op.call(*args, **kwargs))
        return twins.landing(pieces)

    def _has(self, at: int | str) -> bool:
        return isinstance(at, str) or at < len(self._args)


class Seeded(Effect):
    """A random operator with the seed that was drawn for it when it was issued.

    Args:
        effect: The operator, which draws from PyTorch's default generator.
        seed: The seed.
    """

    __slots__ = ("_effect", "_seed")

    def __init__(self, effect: Effect, seed: int) -> None:
        self._effect, self._seed = effect, seed

    def __call__(self) -> None:
        """Draws, and writes at once."""
        with _seeded(self._seed):
            self._effect()

    def begin(self, pieces: int) -> Landing:
        """Draws now."""
        with _seeded(self._seed):
            return self._effect.begin(pieces)


class Move(Effect):
    """A copy between two CPU tensors, which stand for memory of the device or are the host's.

    Args:
        into: The target.
        out_of: The source, of a shape that can be broadcast to it.
    """

    __slots__ = ("_into", "_out_of")

    def __init__(self, into: torch.Tensor, out_of: torch.Tensor) -> None:
        self._into, self._out_of = into, out_of

    def __call__(self) -> None:
        """Reads and writes at once."""
        self._into.copy_(self._out_of)

    def begin(self, pieces: int) -> Landing:
        """Reads now."""
        twins = Twins([self._into])
        twins.of(self._into).copy_(twins.of(self._out_of))
        return twins.landing(pieces)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    default = torch.default_generator
    state = default.get_state()
    default.manual_seed(seed)
    try:
        yield
    finally:
        default.set_state(state)


def _fill(outs: list[Any], value: Any) -> None:
    """Stores what an operator returned in the memory that was handed out for it."""
    if len(outs) == 1:
        _store(outs[0], value)
    elif outs:
        for out, got in zip(outs, value, strict=True):
            _store(out, got)


def _store(out: Any, value: Any) -> None:
    if isinstance(out, list):
        for one, got in zip(out, value, strict=True):
            one.copy_(got)
    elif out is not None:
        out.copy_(value)


def _tensors(values: list[Any]) -> list[torch.Tensor]:
    flat = [item for value in values for item in (value if isinstance(value, (list, tuple)) else [value])]
    return [item for item in flat if isinstance(item, torch.Tensor)]


def _swapped(value: Any, twin_of: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return twin_of(value)
    return [_swapped(item, twin_of) for item in value] if isinstance(value, (list, tuple)) else value
