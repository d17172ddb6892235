"""Triton's kernels as operators of PyTorch's: so a recording on a GPU sees them, with the cells that they touch.

A recording hears PyTorch's dispatcher, and a Triton kernel is launched past it. On the simulated device each op of the
models is one operator already, whose schema says what it writes and whose ``cells`` which rows. Here the same operators
get the kernels as their implementation on CUDA: so the engine launches what it launches otherwise, and both devices
record one program. Put on from outside, while the engine is built and while it is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from refimpl.model.ops import whole

_SHARED = ("rms_norm", "add_rms_norm", "qk_norm_rope_store", "silu_and_mul", "store_kv", "paged_attention")
"""Ops that are one operator on both devices."""
_TABLES = "Tensor req_to_token, Tensor req_pool_indices, Tensor seq_lens"
_LOAD_ROWS = f"load_rows({_TABLES}, Tensor(a!) indices, Tensor(b!) lens, Tensor(c!) page_table, int bucket) -> ()"
_RELOAD_ROWS = f"reload_rows({_TABLES}, Tensor(a!) page_table) -> ()"
"""On ``sim`` these are several operators. The latter is ``load_rows`` from its own snapshot, whose rows and lengths it
leaves as they are."""
_ROWS = {"req_to_token": ("req_pool_indices",)}


@contextmanager
def kernels_as_operators() -> Iterator[None]:
    """Inside, ops of the models on a GPU are operators that launch the kernels.

    Order:
        As of the kernels.
    """
    from refimpl.model.ops import triton_all

    with ExitStack() as stack:
        for name, call in _operators(stack, triton_all).items():
            stack.enter_context(patch.object(triton_all, name, call))
        yield


def _operators(stack: ExitStack, kernels: ModuleType) -> dict[str, Callable[..., Any]]:
    """By name of the op; they are there until the stack unwinds."""
    shared = _library(stack, "IMPL")
    for name in _SHARED:
        shared.impl(name, getattr(kernels, name), "CUDA")
    rotate: Callable[..., tuple[Tensor, Tensor, Tensor]] = kernels.qk_norm_rope
    shared.impl("qk_norm_rope", lambda *call: rotate(*call)[:2], "CUDA")
    return {
        **{name: getattr(whole, name) for name in _SHARED},
        "qk_norm_rope": whole.qk_norm_rope,
        "load_rows": _load_rows(stack, kernels.load_rows),
    }


def _load_rows(stack: ExitStack, kernel: Callable[..., None]) -> Callable[..., None]:
    def again(table: Tensor, rows: Tensor, lens: Tensor, out: Tensor) -> None:
        kernel(table, rows, lens, rows, lens, out, rows.shape[0])

    own = _library(stack, "FRAGMENT")
    own.define(_LOAD_ROWS)
    own.impl("load_rows", kernel, "CUDA")
    own.define(_RELOAD_ROWS)
    own.impl("reload_rows", again, "CUDA")
    operators: Any = torch.ops.refimpl
    load, reload = operators.load_rows.default, operators.reload_rows.default
    for operator in (load, reload):
        operator.cells = _ROWS

    def call(
        table: Tensor, rows: Tensor, lens: Tensor, indices: Tensor, out_lens: Tensor, out: Tensor, bucket: int
    ) -> None:
        if rows.data_ptr() == indices.data_ptr():
            reload(table, rows, lens, out)
        else:
            load(table, rows, lens, indices, out_lens, out, bucket)

    return call


def _library(stack: ExitStack, kind: str) -> torch.library.Library:
    library: torch.library.Library = stack.enter_context(torch.library._scoped_library("refimpl", kind))
    return library
