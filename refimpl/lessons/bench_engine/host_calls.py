"""How many calls a step makes on the device, by kind: what its host work is made of, on any host."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from refimpl import device as devices
from refimpl.engine.request import Req
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.bench_engine.drive import Loop
from refimpl.model.ops.triton_launch import Kernel

OPERATOR, KERNEL = "operator", "Triton kernel"
_EVENT = {"record": "record", "wait": "wait", "synchronize": "synchronize"}
_STREAM = {"synchronize": "synchronize", "__enter__": "stream switch"}
_GRAPH = {"replay": "replay"}


@contextmanager
def counted(device: str) -> Iterator[Counter[str]]:
    """Counts the calls made inside: operators on tensors of the device, kernels, and those of events, streams, graphs.

    A call that makes another, as `wait_stream` records and waits, counts as what it makes.

    Args:
        device: `cuda` or `sim`.
    """
    dev, calls = devices.get(device), Counter[str]()
    with ExitStack() as stack:
        for kind, names in (
            (type(dev.Event()), _EVENT),
            (type(dev.Stream()), _STREAM),
            (dev.CUDAGraph, _GRAPH),
            (Kernel, {"launch": KERNEL}),
        ):
            for name, counts_as in names.items():
                stack.enter_context(patch.object(kind, name, _counting(getattr(kind, name), calls, counts_as)))
        stack.enter_context(_Operators(device, calls))
        yield calls


def calls_a_step(scheduler: Scheduler, reqs: Sequence[Req], loop: Loop = Loop.OVERLAP) -> dict[str, float]:
    """Calls of a steady step by kind: medians over the turns of a run.

    Args:
        scheduler: idle, with its graphs captured.
        reqs: requests that decode together, so that most turns are decodes of all of them.
        loop: which loop.

    Raises:
        ValueError: no request.
    """
    if not reqs:
        raise ValueError("calls of no request: give some")
    scheduler.inbox.extend(reqs)
    turns, before = list[Counter[str]](), Counter[str]()
    with counted(scheduler.device) as calls:
        for _ in loop.start(scheduler):
            turns.append(calls - before)
            before = calls.copy()
    kinds = sorted({kind for turn in turns for kind in turn})
    medians = {kind: statistics.median(turn[kind] for turn in turns) for kind in kinds}
    return {kind: median for kind, median in medians.items() if median}


class _Operators(TorchDispatchMode):
    """Counts operators; views count too, since the host makes them."""

    def __init__(self, device: str, calls: Counter[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device, self._calls = device, calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        tensors = (leaf for leaf in tree_leaves((args, kwargs, out)) if isinstance(leaf, torch.Tensor))
        if any(tensor.device.type == self._device for tensor in tensors):
            self._calls[OPERATOR] += 1
        return out


def _counting(call: Callable[..., Any], calls: Counter[str], counts_as: str) -> Callable[..., Any]:
    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        calls[counts_as] += 1
        return call(*args, **options)

    return run
