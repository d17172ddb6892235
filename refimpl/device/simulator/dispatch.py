"""Where PyTorch's operators arrive: each is queued on the current stream, and a tensor that will hold its result is
handed back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from refimpl.device.simulator.buffers import Access, Buffer, Memory, accesses, allocate
from refimpl.device.simulator.copies import block, copy, read_blocking
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import Action, Kind
from refimpl.device.simulator.plans import Operator, Outputs, Plan, Spec, operator, plan, written_and_read
from refimpl.device.simulator.tensor import SimTensor

aten = torch.ops.aten


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Issues one operator.

    Raises:
        RuntimeError: The operator is not supported, or mixes devices; the sentence names it.
    """
    special = _SPECIAL.get(func)
    if special is not None:
        return special(func, args, kwargs)
    op = operator(func)
    if op.view:
        return _wrap_views(func(*_unwrap(args, op), **kwargs), args[0])
    if op.reshapes:
        return _reshape(func, args, kwargs)
    if op.masked and any(_on_host(i) for i in args[1] if i is not None):
        args = (args[0], [_moved(i) for i in args[1]], *args[2:])
    call = plan(func, op, args, kwargs)
    if op.allocates:
        return _new(call.outputs[0]) if call.outputs else None
    inner_args = _unwrap(args, op)
    inner_kwargs = {name: _unwrap_one(value, op) for name, value in kwargs.items()} if kwargs else kwargs
    if inner_kwargs.get("device") is not None:
        inner_kwargs["device"] = "cpu"
    if call.outputs is None:
        return _run_blocking(func, op, call, (args, kwargs), (inner_args, inner_kwargs))
    results, outs = _results(op, call.outputs, args, kwargs)
    make = _seeding(func, inner_args, inner_kwargs, outs) if op.random else None
    run = make() if make is not None else _action(func, inner_args, inner_kwargs, outs)

    def ranges() -> tuple[tuple[Access, ...], tuple[Access, ...]]:
        return _ranges(op, args, kwargs, [r for at, r in zip(op.returned, results, strict=True) if at is None])

    DEVICE.launch(Kind.LAUNCH, op.name, DEVICE.costs.kernel(call.bytes, call.flops), run, ranges, make)
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _results(
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
            result = [_new(one) for one in spec]
            outs.append([one.simulated for one in result])
        else:
            result = _new(spec)
            outs.append(None if result is None else result.simulated)
        results.append(result)
    return results, outs


def _action(func: Any, args: list[Any], kwargs: dict[str, Any], outs: list[Any]) -> Action:
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


def _seeding(func: Any, args: list[Any], kwargs: dict[str, Any], outs: list[Any]) -> Callable[[], Action]:
    """What makes the action of one run of a random operator: the seed is drawn then, in issue order, so that no
    schedule changes its numbers."""
    generator = kwargs.get("generator")
    if generator is None:
        generator = next((a for a in args if isinstance(a, torch.Generator)), DEVICE.generator)
    plain_args = [None if isinstance(a, torch.Generator) else a for a in args]
    plain_kwargs = {name: None if name == "generator" else value for name, value in kwargs.items()}
    action = _action(func, plain_args, plain_kwargs, outs)

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
    elif out is not None:
        out.copy_(value)


def _run_blocking(func: Any, op: Operator, call: Plan, outer: tuple[Any, Any], inner: tuple[Any, Any]) -> Any:
    """Runs an operator whose result depends on values: the host blocks until it has run."""
    DEVICE.refuse_in_capture(f"{op.name}, whose result the host has to wait for,")
    if op.random:
        raise NotImplementedError(
            f"sim: {op.name} is random and of unknown shape, which is not supported: use another operator"
        )
    got: list[Any] = []

    def ranges() -> tuple[tuple[Access, ...], tuple[Access, ...]]:
        return _ranges(op, outer[0], outer[1], [])

    us = DEVICE.costs.kernel(call.bytes, call.flops)
    block(DEVICE.launch(Kind.LAUNCH, op.name, us, lambda: got.append(func(*inner[0], **inner[1])), ranges))
    values = got[0] if len(op.returned) > 1 else (got[0],)
    args, kwargs = outer
    results = [
        _argument(at, args, kwargs) if at is not None else _adopt(value)
        for at, value in zip(op.returned, values, strict=True)
    ]
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _ranges(op: Operator, args: Any, kwargs: Any, fresh: list[Any]) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    written, read = written_and_read(op, args, kwargs)
    new = [t for value in fresh for t in (value if isinstance(value, list) else [value]) if t is not None]
    return _of_device(read), _of_device([*written, *new])


def _of_device(tensors: list[torch.Tensor]) -> tuple[Access, ...]:
    return tuple(a for t in tensors if isinstance(t, SimTensor) for a in accesses(t.buffer, t.simulated))


def _argument(at: int | str, args: Any, kwargs: Any) -> Any:
    return kwargs[at] if isinstance(at, str) else args[at]


def _new(spec: Spec | list[Spec] | None) -> Any:
    if not isinstance(spec, Spec):
        return None
    inner, buffer = allocate(spec.shape, spec.stride, spec.dtype, DEVICE.current.id)
    for observer in DEVICE.observers:
        observer.on_allocate(buffer)
    return SimTensor(inner, buffer)


def _adopt(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return SimTensor(value, Buffer(value.untyped_storage().nbytes(), Memory.DEVICE, DEVICE.current.id))
    return [_adopt(item) for item in value] if isinstance(value, (list, tuple)) else value


def _wrap_views(result: Any, base: SimTensor) -> Any:
    if isinstance(result, torch.Tensor):
        return SimTensor(result, base.buffer)
    return [SimTensor(item, base.buffer) for item in result]


def _reshape(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SimTensor:
    """Changes the shape of a tensor in place: its shell by PyTorch's own kernel, and a new view in the shell.

    Queued ops keep the view they were issued with.
    """
    target: SimTensor = args[0]
    view = target.simulated.detach()
    func(view, *args[1:], **kwargs)
    with no_dispatch():
        in_tls = torch._C._meta_in_tls_dispatch_include()
        torch._C._set_meta_in_tls_dispatch_include(True)
        try:
            func(*args, **kwargs)
        finally:
            torch._C._set_meta_in_tls_dispatch_include(in_tls)
    target.hold(view)
    return target


def _unwrap(args: tuple[Any, ...], op: Operator) -> list[Any]:
    return [_unwrap_one(value, op) for value in args]


def _unwrap_one(value: Any, op: Operator) -> Any:
    if type(value) is SimTensor:
        return value.simulated
    if isinstance(value, (list, tuple)):
        return [_unwrap_one(item, op) for item in value]
    if isinstance(value, torch.Tensor):
        if value.dim() == 0:
            return value.clone()
        raise RuntimeError(
            f"sim: {op.name} of tensors on sim and on {value.device}: "
            f"move the one of shape {tuple(value.shape)} to sim first"
        )
    return value


def _on_host(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, SimTensor)


def _moved(value: Any) -> Any:
    return _to_copy(aten._to_copy.default, (value,), {"device": "sim"}) if _on_host(value) else value


def _to_copy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    source = args[0]
    device = torch.device(kwargs["device"]) if kwargs.get("device") is not None else source.device
    non_blocking = bool(kwargs.get("non_blocking"))
    op = operator(func)
    specs = plan(
        func,
        op,
        args,
        {name: value for name, value in kwargs.items() if name not in ("non_blocking", "pin_memory")}
        | {"device": device},
    )
    spec = specs.outputs[0] if specs.outputs else None
    if device.type == "sim":
        target = _new(spec)
    elif isinstance(spec, Spec) and device.type == "cpu":
        target = torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device="cpu").zero_()
        if non_blocking:
            DEVICE.host_buffers.pinned(target)
    else:
        raise RuntimeError(f"sim: a copy from sim to {device}: go through the host, with .cpu()")
    copy(target, source, non_blocking)
    return target


def _copy_(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, source = args[0], args[1]
    copy(
        target,
        source.broadcast_to(target.shape) if source.shape != target.shape else source,
        bool(args[2]) if len(args) > 2 else bool(kwargs.get("non_blocking")),
    )
    return target


def _item(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return read_blocking(args[0])


def _attention_choice(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    return 0


def _unsupported(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise NotImplementedError(
        f"sim: {func.overloadpacket.__name__} is not supported, because a tensor on sim keeps its memory: "
        "make a new tensor instead"
    )


_SPECIAL: dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    aten._to_copy.default: _to_copy,
    aten.copy_.default: _copy_,
    aten._local_scalar_dense.default: _item,
    aten._fused_sdp_choice.default: _attention_choice,
    aten.resize_.default: _unsupported,
    aten.set_.source_Storage: _unsupported,
    aten.set_.source_Tensor: _unsupported,
    aten.set_.source_Storage_storage_offset: _unsupported,
}
