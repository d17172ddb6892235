"""The engine's timelines: presets of the history recorded, drawn side by side, and what follows from their programs.

The way of one: ``loads`` says what is decoded, ``record`` runs it under a tap with the names and regions of ``naming``,
``steps`` folds some turns of it. ``proofs`` states the order that a fence makes, edge by edge, or the shortest one that
shows a race.
"""

from refimpl.lessons.timelines.steps import engine_steps

__all__ = ["engine_steps"]
