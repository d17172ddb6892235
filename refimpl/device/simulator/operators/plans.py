"""What the simulated device must know of an operator before it runs: what comes out, what is written, what it costs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import flop_registry

from refimpl.device.simulator.memory.layouts import Layout, layout_of
from refimpl.device.simulator.tensor import SimTensor

aten = torch.ops.aten

_MASKABLE = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
_ALIASING = {aten._unsafe_view.default, aten.lift_fresh.default, aten._reshape_alias.default}
_ALLOCATING = {
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
}
_TABLE_FIRST = (
    "embedding",
    "index",
    "index_select",
    "gather",
    "index_put_",
    "scatter_",
    "scatter_add_",
    "index_add_",
    "index_copy_",
    "index_fill_",
)
_OVERWRITING = (
    "copy_",
    "fill_",
    "zero_",
    "normal_",
    "uniform_",
    "random_",
    "exponential_",
    "bernoulli_",
    "index_put_",
    "scatter_",
    "index_copy_",
)
_SHAPED_BY_DEVICE = (
    "_batch_norm_with_update",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
)
_SHAPED_BY_RUNNING = ("_embedding_bag", "_embedding_bag_forward_only")
_SPECIAL_LAYOUTS = ("_nested_", "_to_sparse", "quantize_per", "to_mkldnn")
_NUMBERS = (int, float, bool, complex)
_CACHED_PLANS = 1024


@dataclass(frozen=True)
class Spec:
    """Shape, strides in elements and dtype of one output."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @cached_property
    def layout(self) -> Layout:
        """What it needs of memory."""
        return layout_of(self.shape, self.stride, self.dtype)

    @cached_property
    def bytes(self) -> int:
        """Size of the values."""
        total = self.dtype.itemsize
        for size in self.shape:
            total *= size
        return total


class Operator:
    """What the schema of one overload says, worked out once.

    Attributes:
        name: Short name, such as "add".
        call: Runs it, as a call of the overload does with a Python function in between.
        composite: It is written in terms of other operators, which arrive one by one except in inference mode.
        view: Its result aliases an argument, and no device work is needed.
        reshapes: It changes its first argument's shape or strides, and no bytes.
        allocates: It makes memory and does no work.
        random: It draws random numbers.
        blocks: Its result depends on values, so the host has to wait.
        returned: Per return value, the position or name of the argument that it is, or None if it is new.
        written: Positions and names of the arguments that it writes.
        overwrites: It writes without reading what it writes.
        table_first: It touches few rows of its first argument.
        plans: What calls gave, by the shapes of their arguments.
        shaped_by_device: The CPU's kernel gives some results another type or shape than those of other devices.
        shaped_by_running: PyTorch's own prediction of what the CPU's kernel gives is wrong, so it is tried with zeros.
    """

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name = str(func.overloadpacket.__name__)
        if self.name.startswith(_SPECIAL_LAYOUTS):
            refuse_layout(self.name)
        self.call: Callable[..., Any] = func._op
        self.composite = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
        self.view = func.is_view or func in _ALIASING
        self.reshapes = torch.Tag.inplace_view in func.tags
        self.allocates = func in _ALLOCATING
        self.random = torch.Tag.nondeterministic_seeded in func.tags
        tensors = ("Tensor", "List[Tensor]", "Optional[Tensor]")
        dynamic = torch.Tag.dynamic_output_shape in func.tags or torch.Tag.data_dependent_output in func.tags
        self.masked = func in _MASKABLE  # indexing by numbers, too, has the tag, and only a mask makes the host wait
        self.blocks = (dynamic and not self.masked) or any(str(r.type) not in tensors for r in schema.returns)
        self.written = tuple(
            a.name if a.kwarg_only else i
            for i, a in enumerate(schema.arguments)
            if a.alias_info and a.alias_info.is_write
        )
        aliases = {
            name: (a.name if a.kwarg_only else i)
            for i, a in enumerate(schema.arguments)
            if a.alias_info and a.alias_info.is_write
            for name in a.alias_info.before_set
        }
        self.returned = tuple(
            next((aliases[n] for n in r.alias_info.before_set if n in aliases), None) if r.alias_info else None
            for r in schema.returns
        )
        self.overwrites = self.name in _OVERWRITING
        self.table_first = self.name in _TABLE_FIRST
        self.shaped_by_device = self.name in _SHAPED_BY_DEVICE
        self.shaped_by_running = self.name in _SHAPED_BY_RUNNING
        # A number shapes nothing where there are tensors, and would fill the cache; a factory's numbers are its shape.
        self.factory = not any("Tensor" in str(a.type) for a in schema.arguments)
        numbers = ("number", "float", "Tensor", "Optional[number]", "Optional[float]", "Optional[Tensor]")
        self.plans: dict[Any, Plan] = {}
        self.by_type = tuple(not self.factory and str(a.type) in numbers for a in schema.arguments)


Outputs = tuple[Spec | list[Spec] | None, ...]


@dataclass(frozen=True)
class Plan:
    """What one call with arguments of these shapes gives.

    Args:
        outputs: A spec per return value: None for an argument returned, a list for a list of tensors. None if only
            running it can tell.
        bytes: What it moves in device memory.
        flops: What it computes in matrix products.
    """

    outputs: Outputs | None
    bytes: int
    flops: int


_operators: dict[Any, Operator] = {}


def operator(func: Any) -> Operator:
    """The facts about an overload."""
    found = _operators.get(func)
    if found is None:
        found = _operators[func] = Operator(func)
    return found


def plan(func: Any, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    """The plan of one call, kept by the shapes of its arguments."""
    try:
        signed = tuple(
            [
                a.signature if type(a) is SimTensor else type(a) if number and type(a) in _NUMBERS else _signature(a)
                for a, number in zip(args, op.by_type, strict=False)
            ]
        )
        key = (signed, *[(k, _signature(v)) for k, v in kwargs.items()]) if kwargs else signed
        found = op.plans.get(key)
    except TypeError:
        return _work_out(func, op, args, kwargs)
    if found is None:
        if len(op.plans) >= _CACHED_PLANS:
            op.plans.clear()
        found = op.plans[key] = _work_out(func, op, args, kwargs)
    return found


def is_masked_fill(args: tuple[Any, ...]) -> bool:
    """Whether `index_put_` puts one number of the host where one mask says so, which needs no look at the mask.

    Source: pytorch `aten/src/ATen/native/TensorAdvancedIndexing.cpp`, `canDispatchToMaskedFill`.
    """
    accumulates = len(args) > 3 and bool(args[3])
    value, indices = args[2], _tensors(args[1])
    one = value.numel() == 1 and type(value) is not SimTensor and not accumulates
    return one and len(indices) == 1 and indices[0].dtype in (torch.bool, torch.uint8)


def _signature(value: Any) -> Any:
    if type(value) is SimTensor:
        return value.signature
    if isinstance(value, torch.Tensor):
        return ("host", value.dtype, value.shape, value.stride())
    if isinstance(value, (list, tuple)):
        return tuple([_signature(item) for item in value])
    return (type(value), value)


def _work_out(func: Any, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
    tensors = [t for a in (args[1:] if op.table_first else args) for t in _tensors(a)] + [
        t for a in kwargs.values() for t in _tensors(a)
    ]
    moved = sum(t.numel() * t.element_size() for t in tensors)
    masks = [t for t in _tensors(args[1]) if t.dtype in (torch.bool, torch.uint8)] if op.masked else []
    if masks and func is aten.index_put_.default and is_masked_fill(args):
        return Plan((None,), moved, 0)  # as on CUDA, where it is a masked fill
    if op.blocks or masks:
        return Plan(None, moved, 0)
    where = "cpu" if op.shaped_by_device or op.shaped_by_running else "meta"
    with FakeTensorMode() if op.shaped_by_device else nullcontext():
        meta_args, meta_kwargs = [_empty(a, where) for a in args], {k: _empty(v, where) for k, v in kwargs.items()}
        if op.shaped_by_running:
            meta_args = [_zeros(a) if isinstance(a, torch.Tensor) else a for a in args]
        if meta_kwargs.get("device") is not None:
            meta_kwargs["device"] = where
        try:
            result = func(*meta_args, **meta_kwargs)
        except NotImplementedError:
            known = all(alias is not None for alias in op.returned)
            return Plan((None,) * len(op.returned) if known else None, moved, 0)
    if "out" in kwargs and result.shape != kwargs["out"].shape:
        raise RuntimeError(
            f"sim: {op.name}(out=…) gives shape {tuple(result.shape)} and out has {tuple(kwargs['out'].shape)}: "
            "give it the right shape, sim does not resize"
        )
    results = () if not op.returned else (result,) if len(op.returned) == 1 else tuple(result)
    if any(t.layout is not torch.strided for value in results for t in _tensors(value)):
        refuse_layout(op.name)
    outputs = tuple(
        None if alias is not None else _spec(value) for alias, value in zip(op.returned, results, strict=True)
    )
    moved += sum(
        spec.bytes for out in outputs for spec in (out if isinstance(out, list) else [out]) if spec is not None
    )
    counter = flop_registry.get(func.overloadpacket)
    return Plan(outputs, moved, int(counter(*meta_args, **meta_kwargs, out_val=result)) if counter else 0)


def refuse_layout(name: str) -> NoReturn:
    """Raises for an operator that makes a tensor of a kind that the device does not have.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        f"sim: {name} is not supported, because a tensor on sim is dense, neither sparse nor nested nor quantized: "
        "use a dense one, or work on the host, with .cpu()"
    )


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [item for item in value if isinstance(item, torch.Tensor)]
    return []


def _empty(value: Any, where: str) -> Any:
    """`value` with tensors without bytes, which tell shapes and types, in place of its own."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=where)
    if isinstance(value, (list, tuple)):
        return [_empty(item, where) for item in value]
    return None if isinstance(value, torch.Generator) else value


def _zeros(like: torch.Tensor) -> torch.Tensor:
    """Zeros of this shape on the CPU; the rows of a table share their memory."""
    if like.dim() < 2:
        return torch.zeros(like.shape, dtype=like.dtype, device="cpu")
    row = torch.empty_strided(like.shape[1:], like.stride()[1:], dtype=like.dtype, device="cpu").zero_()
    return row.expand(like.shape)


def _spec(value: Any) -> Spec | list[Spec] | None:
    if isinstance(value, torch.Tensor):
        return Spec(tuple(value.shape), tuple(value.stride()), value.dtype)
    if value is None:
        return None
    return [Spec(tuple(t.shape), tuple(t.stride()), t.dtype) for t in value]


def written_and_read(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The tensors that one call writes, and those it reads, by its schema."""
    written: list[torch.Tensor] = []
    overwritten: list[torch.Tensor] = []
    for at in op.written:
        found = _tensors(kwargs.get(at) if isinstance(at, str) else args[at] if at < len(args) else None)
        written += found
        overwritten += found if isinstance(at, str) or op.overwrites else []
    everything = [t for value in (*args, *kwargs.values()) for t in _tensors(value)]
    return written, [t for t in everything if not any(t is other for other in overwritten)]
