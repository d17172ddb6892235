"""Looks for an order of the simulated device in which a program gives a wrong value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from refimpl.device.select import get

T = TypeVar("T")


@dataclass(frozen=True)
class Corrupt(Generic[T]):
    """One order that gave a wrong value.

    Args:
        seed: The adversary's seed.
        id: The order, for `dev.Replay(id)`.
        value: What came out.
    """

    seed: int
    id: str
    value: T

    def __str__(self) -> str:
        return f"seed {self.seed}, schedule {self.id!r}: {self.value}"


@dataclass(frozen=True)
class Search(Generic[T]):
    """What a search found: `len(corrupt)` of `runs` were wrong.

    Args:
        runs: How many orders were tried.
        corrupt: Those that gave a wrong value, in the order of the seeds.
    """

    runs: int
    corrupt: tuple[Corrupt[T], ...]

    @property
    def first(self) -> Corrupt[T] | None:
        """The first that was wrong."""
        return self.corrupt[0] if self.corrupt else None

    def __str__(self) -> str:
        found = f"{len(self.corrupt)} of {self.runs} orders gave a wrong value"
        return f"{found}, the first: {self.first}" if self.first is not None else found


def search(body: Callable[[], T], right: T, seeds: Iterable[int], device: str = "sim") -> Search[T]:
    """Runs a program under one adversary per seed, and keeps the orders whose value differs from the right one.

    That none is found proves nothing: an order that goes wrong may be rare. `refimpl.order` proves.

    Args:
        body: The program. It begins afresh at each call, on an idle device; what it returns is compared.
        right: The right value, compared to the byte: tensors, bytes, numbers, text, and lists, tuples and dicts of
            them.
        seeds: The seeds to try.
        device: The simulated device.
    Returns:
        How many were tried, and for each wrong value its seed, its schedule's id and the value.
    Raises:
        ValueError: Another device is named: a GPU takes no orders.
    Order:
        The host blocks: the device is idle before and after each run.
    Example:
        >>> dev = get("sim")
        >>> def body():
        ...     x, other = torch.zeros(1, device="sim"), dev.Stream()
        ...     dev.synchronize()
        ...     x.fill_(7)
        ...     with dev.stream(other):
        ...         seen = x + 0
        ...     dev.synchronize()
        ...     return seen.tolist()
        >>> search(body, [7.0], range(20)).first.value
        [0.0]
    """
    if torch.device(device).type != "sim":
        raise ValueError(
            f"search(device={device!r}): only sim runs a program in an order of one's choice, so use 'sim'"
        )
    dev = get(device)
    runs, corrupt = 0, []
    for seed in seeds:
        with dev.schedule(dev.Adversary(seed)) as run:
            value = body()
        runs += 1
        if not same(value, right):
            corrupt.append(Corrupt(seed, run.id, value))
    return Search(runs, tuple(corrupt))


def first_corrupt(body: Callable[[], T], right: T, seeds: Iterable[int], device: str = "sim") -> Corrupt[T] | None:
    """The first seed whose order gives a wrong value, with the order's id and the value; None if there is none.

    As `search`, and it stops there.
    """
    return next((found for seed in seeds if (found := search(body, right, (seed,), device).first) is not None), None)


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal to the byte: 0.0 is not -0.0, and a NaN equals the same NaN."""
    left, right = _number(left), _number(right)
    for array in (torch.Tensor, np.ndarray):
        if isinstance(left, array) or isinstance(right, array):
            return isinstance(left, array) and isinstance(right, array) and _same_array(left, right)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if type(left) is type(right) and isinstance(left, (float, complex)):
        return np.asarray(left).tobytes() == np.asarray(right).tobytes()
    return bool(left == right)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _same_array(left: Any, right: Any) -> bool:
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if isinstance(left, np.ndarray):
        return same(left.tolist(), right.tolist()) if left.dtype.hasobject else left.tobytes() == right.tobytes()
    return _bytes(left) == _bytes(right)


def _bytes(tensor: torch.Tensor) -> bytes:
    values = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return values.reshape(-1).view(torch.uint8).numpy().tobytes()
