"""What the device does when it gets to an operator, and the memory it does it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from refimpl.device.simulator.buffers import Buffer, Memory, allocate
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import Action
from refimpl.device.simulator.plans import Operator, Outputs, Spec
from refimpl.device.simulator.tensor import SimTensor


def returned(
    op: Operator, outputs: Outputs, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """What the call returns, and per return value the memory that its run has to fill: None for an argument."""
    results: list[Any] = []
    outs: list[Any] = []
    for at, spec in zip(op.returned, outputs, strict=True):
        if at is not None:
            result: Any = kwargs[at] if isinstance(at, str) else args[at]
            outs.append(None)
        elif isinstance(spec, list):
            result = [make_tensor(one) for one in spec]
            outs.append([one.simulated for one in result])
        else:
            result = make_tensor(spec)
            outs.append(None if result is None else result.simulated)
        results.append(result)
    return results, outs


def action_of(func: Any, args: list[Any], kwargs: dict[str, Any], outs: list[Any]) -> Action:
    """What the device does when it gets there."""
    if not any(out is not None for out in outs):
        return lambda: func(*args, **kwargs)
    if len(outs) == 1:
        out = outs[0]
        return lambda: _store(out, func(*args, **kwargs))

    def run() -> None:
        for out, value in zip(outs, func(*args, **kwargs), strict=True):
            _store(out, value)

    return run


def seeded_actions(func: Any, args: list[Any], kwargs: dict[str, Any], outs: list[Any]) -> Callable[[], Action]:
    """What makes the action of one run of a random operator: the seed is drawn then, in issue order, so that no
    schedule changes its numbers."""
    generator = kwargs.get("generator")
    if generator is None:
        generator = next((a for a in args if isinstance(a, torch.Generator)), DEVICE.generator)
    plain_args = [None if isinstance(a, torch.Generator) else a for a in args]
    plain_kwargs = {name: None if name == "generator" else value for name, value in kwargs.items()}
    action = action_of(func, plain_args, plain_kwargs, outs)

    def make() -> Action:
        seed = int(torch.randint(2**62, (), generator=generator, device="cpu"))
        return lambda: _seeded(action, seed)

    return make


def _seeded(action: Action, seed: int) -> None:
    default = torch.default_generator
    state = default.get_state()
    default.manual_seed(seed)
    try:
        action()
    finally:
        default.set_state(state)


def _store(out: Any, value: Any) -> None:
    if isinstance(out, list):
        for one, got in zip(out, value, strict=True):
            one.copy_(got)
    elif out is not None and (value.numel() or not out.numel()):  # CPU kernels leave saved statistics out where unused
        out.copy_(value)


def make_tensor(spec: Spec | list[Spec] | None) -> Any:
    """A tensor in new device memory; None where there is nothing to make."""
    if not isinstance(spec, Spec):
        return None
    inner, buffer = allocate(spec.shape, spec.stride, spec.dtype, DEVICE.current.id)
    for observer in DEVICE.observers:
        observer.on_allocate(buffer)
    return SimTensor(inner, buffer)


def adopt(value: Any) -> Any:
    """The tensors that an operator of unknown shape made, as tensors of the device; what is no tensor stays as it
    is."""
    if isinstance(value, torch.Tensor):
        return SimTensor(value, Buffer(value.untyped_storage().nbytes(), Memory.DEVICE, DEVICE.current.id))
    return [adopt(item) for item in value] if isinstance(value, (list, tuple)) else value
