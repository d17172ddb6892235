"""How an op acts: apart from what the host is in the middle of, and with one sentence where it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from refimpl.device.simulator.ops import Action, Effect, Landing, Op
from refimpl.device.simulator.schedules.run import Run

Result = TypeVar("Result")
_Keys = torch._C._ForceDispatchKeyGuard


def execute(op: Op, run: Run) -> None:
    """Does all of an op at one instant."""
    op.done = True
    if op.run is not None:
        _act(op, op.run, run)


def execute_piece(op: Op, piece: int, pieces: int, run: Run) -> None:
    """Does one of the pieces of an op, in turn from 0: it reads at the first, and has run after the last."""
    if piece == 0:
        op.landing = _act(op, lambda: _begun(op.run, pieces), run)
    if (landing := op.landing) is not None:
        _act(op, lambda: landing(piece), run)
    op.done = piece == pieces - 1


def _begun(action: Action | None, pieces: int) -> Landing | None:
    """Begins an action; what is left to store, if anything."""
    if isinstance(action, Effect):
        return action.begin(pieces)
    if action is not None:
        action()
    return None


def _act(op: Op, action: Callable[[], Result], run: Run) -> Result:
    """Does device work apart from what the host is in the middle of: autograd, inference mode, autocast, dispatch
    modes, and another operator on its way, for which PyTorch puts the keys aside that resolve conjugate views."""
    try:
        with _Keys(*_OF_DEVICE):
            return action()
    except NotImplementedError as error:
        op.done, op.run, op.landing = True, None, None
        raise NotImplementedError(
            f"sim: {op.name} is not supported: PyTorch has no CPU kernel for it, so use other operators"
        ) from error
    except Exception as error:
        op.done, op.run, op.landing = True, None, None
        order = "" if run.named is None else f" (in the order of schedule {run.named!r})"
        raise RuntimeError(
            f"sim: {op.name} failed on {op.queue} when it ran, after it was issued: {error}{order}"
        ) from error


def _keys_of_device() -> tuple[torch._C.DispatchKeySet, torch._C.DispatchKeySet]:
    with torch._C._AutoDispatchBelowADInplaceOrView():
        excluded = torch._C._dispatch_tls_local_exclude_set().add(torch._C.DispatchKey.AutocastCPU)
        return torch._C._dispatch_tls_local_include_set(), excluded


_OF_DEVICE = _keys_of_device()
