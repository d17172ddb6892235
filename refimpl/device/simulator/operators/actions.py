"""What the device does when it gets to an operator, and the memory it does it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.memory.layouts import Layout, layout_of
from refimpl.device.simulator.operators.effects import Operation, Seeded
from refimpl.device.simulator.operators.plans import Operator, Outputs, Spec
from refimpl.device.simulator.ops import Action
from refimpl.device.simulator.tensor import SimTensor


def returned(
    op: Operator, outputs: Outputs, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """What the call returns, and per return value the memory that its run has to fill: None for an argument."""
    if len(outputs) == 1 and isinstance(spec := outputs[0], Spec):
        made = _made(spec.layout)
        return [made], [made.simulated]
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


def seeded_actions(op: Operator, args: list[Any], kwargs: dict[str, Any], outs: list[Any]) -> Callable[[], Action]:
    """What makes the action of one run of a random operator: the seed is drawn then, in issue order, so that no
    schedule changes its numbers."""
    generator = kwargs.get("generator")
    if generator is None:
        generator = next((a for a in args if isinstance(a, torch.Generator)), DEVICE.generator)
    plain_args = [None if isinstance(a, torch.Generator) else a for a in args]
    plain_kwargs = {name: None if name == "generator" else value for name, value in kwargs.items()}
    operation = Operation(op, plain_args, plain_kwargs, outs)

    def make() -> Action:
        seed = int(torch.randint(2**62, (), generator=generator, device="cpu"))
        return Seeded(operation, seed)

    return make


def make_tensor(spec: Spec | list[Spec] | None) -> Any:
    """A tensor in new device memory; None where there is nothing to make."""
    return _made(spec.layout) if isinstance(spec, Spec) else None


def _made(layout: Layout) -> SimTensor:
    memory, lease = DEVICE.memory.allocate(layout)
    return SimTensor.of(layout, memory, lease)


def adopt(value: Any) -> Any:
    """The tensors that an operator of unknown shape made, as tensors of the device; what is no tensor stays as it
    is."""
    if isinstance(value, torch.Tensor):
        made = _made(layout_of(tuple(value.shape), value.stride(), value.dtype))
        made.simulated.copy_(value)
        return made
    return [adopt(item) for item in value] if isinstance(value, (list, tuple)) else value
