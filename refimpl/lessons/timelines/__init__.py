"""The engine's timelines: presets of the history recorded, drawn side by side, and what follows from their programs.

The way of one: ``loads`` says what is decoded, ``record`` runs it under a tap with the names and regions of ``naming``,
``folded`` keeps some turns of it, and ``steps`` puts presets side by side. ``proofs`` states the order that a fence
makes, edge by edge, or the shortest order that shows a race, which ``replayed`` runs. ``presets`` records on either
device for the checker; on a GPU ``kernels`` lets a recording see what Triton launches.

Example:
    A chapter's cell::

        from refimpl.lessons import timelines
        timelines.show(["before-25465", "25465"], "The host no longer stands still.")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from refimpl.lessons.timelines.proofs import (
    Counterexample,
    Proof,
    counterexample,
    fences_by_name,
    proof,
    races,
    without,
    without_each,
)
from refimpl.lessons.timelines.steps import engine_steps, recorded_apart

if TYPE_CHECKING:
    from refimpl.fences import Load
    from refimpl.view import Timeline

__all__ = [
    "Counterexample",
    "Proof",
    "counterexample",
    "engine_steps",
    "fences_by_name",
    "proof",
    "races",
    "recorded_apart",
    "show",
    "without",
    "without_each",
]


def show(
    names: Sequence[str],
    caption: str,
    load: Load | None = None,
    first: str | None = None,
    predict: bool | str | Mapping[str, Any] | None = None,
) -> Timeline:
    """The timeline of some presets, alive.

    Args:
        names, load, first: as of :func:`engine_steps`.
        caption: the claim that the picture makes.
        predict: what the reader is asked before the answer is shown, as of :class:`~refimpl.view.Timeline`.
    """
    from refimpl.view import Timeline

    return Timeline(engine_steps(names, load, first), caption=caption, predict=predict)
