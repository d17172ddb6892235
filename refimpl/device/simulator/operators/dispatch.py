"""Where PyTorch's operators arrive: each is queued on the current stream, and a tensor that will hold its result is
handed back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.operators.actions import adopt, make_tensor, returned, seeded_actions
from refimpl.device.simulator.operators.backward import Unraised, called_by_autograd
from refimpl.device.simulator.operators.copies import block, copy, read_blocking
from refimpl.device.simulator.operators.effects import Operation
from refimpl.device.simulator.operators.plans import Operator, Plan, Spec, is_masked_fill, operator, plan
from refimpl.device.simulator.operators.touched import Ranges, ranges_of_call
from refimpl.device.simulator.ops import Kind
from refimpl.device.simulator.refused import refuse_index, refuse_operator
from refimpl.device.simulator.tensor import SimTensor

aten = torch.ops.aten
Special = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
_PLAIN = frozenset((int, float, bool, type(None)))
_ways: dict[Any, tuple[Special | None, Operator]] = {}


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Issues one operator.

    Raises:
        RuntimeError: The operator is not supported, or mixes devices; the sentence names it.
    """
    try:
        return _issue(func, args, kwargs)
    except Exception as error:
        if called_by_autograd(sys._getframe(1)):
            return Unraised(error)
        raise


def _issue(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs and (device := kwargs.get("device")) is not None:
        refuse_index(device)
    special, op = _ways.get(func) or _way(func)
    if special is not None:
        return special(func, args, kwargs)
    if op.masked and any(_on_host(i) for i in (*args[1], *args[2:3])):
        args = _moved_for_index(args)
    call = plan(func, op, args, kwargs)
    inner_args = _unwrap(args, op)
    inner_kwargs = kwargs
    if kwargs:
        inner_kwargs = {name: _unwrap_one(value, op) for name, value in kwargs.items()}
        if inner_kwargs.get("device") is not None:
            inner_kwargs["device"] = "cpu"
    if call.outputs is None:
        return _run_blocking(func, op, call, (args, kwargs), (inner_args, inner_kwargs))
    results, outs = returned(op, call.outputs, args, kwargs)
    make = seeded_actions(op, inner_args, inner_kwargs, outs) if op.random else None
    run = make() if make is not None else Operation(op, inner_args, inner_kwargs, outs)
    ranges = partial(_ranges, func, op, args, kwargs, results) if DEVICE.observed else None
    DEVICE.launch(Kind.LAUNCH, op.name, DEVICE.costs.kernel(call.bytes, call.flops), run, ranges, make)
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _ranges(func: Any, op: Operator, args: Any, kwargs: Any, results: list[Any]) -> Ranges:
    fresh = [r for at, r in zip(op.returned, results, strict=True) if at is None]
    return ranges_of_call(func, op, args, kwargs, fresh)


def _way(func: Any) -> tuple[Special | None, Operator]:
    """How an overload is issued; looked up once a call, since PyTorch hashes an overload in Python."""
    op, special = operator(func), _SPECIAL.get(func)
    if special is None:
        kinds = (op.composite, _decompose), (op.view, _view), (op.reshapes, _reshape), (op.allocates, _allocate)
        special = next((way for of_kind, way in kinds if of_kind), None)
    if special is None and not torch._C._dispatch_has_computed_kernel_for_dispatch_key(func.name(), "CPU"):
        refuse_operator(op.name)
    found = _ways[func] = special, op
    return found


def _decompose(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return func.decompose(*args, **kwargs)


def _allocate(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    outputs = plan(func, operator(func), args, kwargs).outputs
    return make_tensor(outputs[0]) if outputs else None


def _view(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    DEVICE.host_us += DEVICE.costs.view_us
    op = operator(func)
    return _wrap_views(op.call(*_unwrap(args, op), **kwargs), args[0])


def _run_blocking(func: Any, op: Operator, call: Plan, outer: tuple[Any, Any], inner: tuple[Any, Any]) -> Any:
    """Runs an operator whose result depends on values: the host blocks until it has run."""
    DEVICE.refuse_in_capture(f"{op.name}, whose result the host has to wait for,")
    if op.random:
        raise NotImplementedError(
            f"sim: {op.name} is random and of unknown shape, which is not supported: use another operator"
        )
    got: list[Any] = []

    def ranges() -> Ranges:
        return ranges_of_call(func, op, outer[0], outer[1], [])

    us = DEVICE.costs.kernel(call.bytes, call.flops)
    block(DEVICE.launch(Kind.LAUNCH, op.name, us, lambda: got.append(func(*inner[0], **inner[1])), ranges))
    values = () if not op.returned else got[0] if len(op.returned) > 1 else (got[0],)
    args, kwargs = outer
    results = [
        _argument(at, args, kwargs) if at is not None else adopt(value)
        for at, value in zip(op.returned, values, strict=True)
    ]
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _argument(at: int | str, args: Any, kwargs: Any) -> Any:
    return kwargs[at] if isinstance(at, str) else args[at]


def _wrap_views(result: Any, base: SimTensor) -> Any:
    """Shells for views of `base`; one of a normal tensor is a normal tensor in inference mode too."""
    if torch.is_inference_mode_enabled() and not base.is_inference():
        with torch.inference_mode(False):
            return _wrap_views(result, base)
    if isinstance(result, torch.Tensor):
        return _marked(SimTensor(result, base.lease))
    return [_marked(SimTensor(item, base.lease)) for item in result]


def _marked(shell: SimTensor) -> SimTensor:
    """Marks a shell as conjugate or negative where its view is: PyTorch asks the shell."""
    conjugate, negative = shell.simulated.is_conj(), shell.simulated.is_neg()
    if conjugate or negative:
        shell.lazy = True
        torch._C._set_conj(shell, conjugate)
        torch._C._set_neg(shell, negative)
    return shell


def _as_marked(shell: SimTensor) -> torch.Tensor:
    """The values of a shell whose marks PyTorch may have changed since: it takes them off while it writes in place."""
    inner = shell.simulated
    if shell.is_conj() != inner.is_conj():
        inner = inner.conj()
    return torch._neg_view(inner) if shell.is_neg() != inner.is_neg() else inner


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
    return [
        value.simulated
        if (kind := type(value)) is SimTensor and not value.lazy
        else value
        if kind in _PLAIN
        else _unwrap_one(value, op)
        for value in args
    ]


def _unwrap_one(value: Any, op: Operator) -> Any:
    if type(value) is SimTensor:
        return _as_marked(value) if value.lazy else value.simulated
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


def _moved_for_index(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of an index operator with the host's tensors moved to the device, which blocks the host, as on CUDA;
    there one value for a mask is a number of the kernel and stays."""
    indices = [_moved(index) for index in args[1]]
    if len(args) < 3 or is_masked_fill(args):
        return (args[0], indices, *args[2:])
    return (args[0], indices, _moved(args[2]) if args[2].dim() == 0 else args[2], *args[3:])


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
        target = make_tensor(spec)
    elif isinstance(spec, Spec) and device.type == "meta":
        return torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device="meta")
    elif isinstance(spec, Spec) and device.type == "cpu":
        if non_blocking:
            target = DEVICE.pinned.allocate(spec.shape, spec.stride, spec.dtype)
        else:
            target = torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device="cpu").zero_()
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


_SPECIAL: dict[Any, Special] = {
    aten._to_copy.default: _to_copy,
    aten.copy_.default: _copy_,
    aten._local_scalar_dense.default: _item,
    aten._fused_sdp_choice.default: _attention_choice,
    aten.resize_.default: _unsupported,
    aten.resize_as_.default: _unsupported,
    aten.set_.source_Storage: _unsupported,
    aten.set_.source_Tensor: _unsupported,
    aten.set_.source_Storage_storage_offset: _unsupported,
}
