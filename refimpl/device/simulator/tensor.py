"""The tensor of the simulated device: a shell with the device's name around a CPU tensor that holds the bytes."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from refimpl.device.simulator.refused import refuse_dlpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from refimpl.device.simulator.memory.allocator import Lease
    from refimpl.device.simulator.memory.buffers import Buffer
    from refimpl.device.simulator.memory.layouts import Layout
    from refimpl.device.simulator.streams import Stream


@cache
def _device() -> torch.device:
    return torch.device("sim", 0)


class SimTensor(torch.Tensor):
    """A tensor on `sim`: `simulated` holds its values once the device has computed them, so only the device looks
    there.

    Args:
        simulated: The CPU tensor.
        lease: The right to the memory, shared with its views: when none of them is left, the memory is free.
    Attributes:
        signature: Its type, shape and strides, by which plans are known.
        dispatch: Where its operators arrive; set when the device is installed.
    """

    simulated: torch.Tensor
    lease: Lease
    signature: tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]
    dispatch: ClassVar[Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]]
    lazy = False  # whether the shell has ever said that it is conjugate or negative

    @staticmethod
    def __new__(cls, simulated: torch.Tensor, lease: Lease) -> SimTensor:
        dtype, shape, stride = signature = (simulated.dtype, simulated.shape, simulated.stride())
        self: SimTensor = torch.Tensor._make_wrapper_subclass(
            cls, shape, strides=stride, storage_offset=simulated.storage_offset(), dtype=dtype, device=_device()
        )
        self.simulated, self.signature, self.lease = simulated, signature, lease
        return self

    @staticmethod
    def of(layout: Layout, simulated: torch.Tensor, lease: Lease) -> SimTensor:
        """A tensor of this layout that begins where its memory begins."""
        self: SimTensor = torch.Tensor._make_wrapper_subclass(
            SimTensor, layout.shape, layout.stride, dtype=layout.dtype, device=_device()
        )
        self.simulated, self.signature, self.lease = simulated, layout.signature, lease
        return self

    def hold(self, simulated: torch.Tensor) -> None:
        """Takes `simulated` as the tensor behind the shell."""
        self.simulated = simulated
        self.signature = (simulated.dtype, simulated.shape, simulated.stride())

    @property
    def buffer(self) -> Buffer:
        """The allocation it lies in, shared with its views."""
        return self.lease.buffer

    @property
    def data(self) -> torch.Tensor:
        """The tensor without its history, on the same memory."""
        plain: torch.Tensor = torch.Tensor.data.__get__(self)  # type: ignore[attr-defined]
        return plain

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        """Takes the memory of `value`, which must be on sim; ops queued before keep the memory they were issued
        with."""
        if not isinstance(value, SimTensor):
            raise TypeError(f"sim: a tensor on {value.device} as the data of a tensor on sim: move it to sim first")
        torch.Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self.hold(value.simulated)
        self.lease = value.lease

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return cls.dispatch(func, args, kwargs or {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """The values, as on CUDA: printing blocks the host."""
        text = repr(self.detach().cpu())
        grad = ", requires_grad=True" if self.requires_grad else ""
        if self.grad_fn is not None:
            grad = f", grad_fn=<{type(self.grad_fn).__name__}>"
        kind = "Parameter containing:\n" if isinstance(self, torch.nn.Parameter) else ""
        return f"{kind}{text[:-1]}, device='sim:0'{grad})"

    def __format__(self, spec: str) -> str:
        """The value of a tensor without dimensions, as on CUDA: formatting blocks the host."""
        return format(self.detach().item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def tolist(self) -> Any:
        """The values as Python numbers; blocks the host."""
        return self.detach().cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Raises, as on CUDA, unless `force`."""
        if not force:
            raise TypeError("sim: numpy() of a tensor on sim: copy it to the host first, with .cpu()")
        return self.detach().cpu().numpy()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()

    def __dlpack__(self, **options: Any) -> Any:
        """Raises: who reads the bytes would not wait for the device."""
        refuse_dlpack()

    def __dlpack_device__(self) -> Any:
        """Raises, as `__dlpack__`."""
        refuse_dlpack()

    def __setitem__(self, index: Any, value: Any) -> None:
        """Stores at an index. A number goes through a tensor on the host, as on CUDA: so `x[rows] = 1.0` and
        `x[0] = 1.0` copy it to the device and block the host, and `x[1:] = 1.0` does not.

        Source: pytorch `torch/csrc/autograd/python_variable_indexing.cpp`, `THPVariable_setitem`.
        """
        if isinstance(value, (bool, int, float, complex)):
            value = torch.tensor(value, dtype=self.dtype, device="cpu")
        super().__setitem__(index, value)

    def data_ptr(self) -> int:
        """An address by which two tensors can be told to alias; there is nothing to read there before the device is
        done."""
        return self.simulated.data_ptr()

    def record_stream(self, stream: Stream) -> None:  # type: ignore[override]
        """Tells the allocator that `stream` uses this memory too: when its last tensor is gone, it is not handed on
        before all that is then queued on `stream` has run."""
        from refimpl.device.simulator.streams import stream_of

        self.lease.record_stream(stream_of(stream).stream_id)

    def untyped_storage(self) -> torch.UntypedStorage:
        """Raises: the bytes belong to the device."""
        raise NotImplementedError(
            "sim: the storage of a tensor on sim is the device's own: copy the tensor to the host first, with .cpu()"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickles the values, by a copy that blocks the host: `torch.load` gives a tensor on sim, or on the device
        that its `map_location` names, which a process without sim needs. Tensors that share memory are saved one by
        one."""
        if isinstance(self, torch.nn.Parameter):
            return torch._utils._rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict())
        values = self.detach().cpu()
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, (values, self.dtype, "sim:0", self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> SimTensor:
        if id(self) in memo:
            known: SimTensor = memo[id(self)]
            return known
        if not self.is_leaf:
            raise RuntimeError("sim: deepcopy of a tensor that is not a leaf of autograd: detach it first")
        copied: Any = self.detach().clone().requires_grad_(self.requires_grad)
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, requires_grad=self.requires_grad)
        memo[id(self)] = copied
        return copied  # type: ignore[no-any-return]

    def is_pinned(self, device: Any = None) -> bool:
        """False: device memory is not host memory."""
        return False
