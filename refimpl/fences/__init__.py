"""The fences of the five changes: one module each, every variant side by side, broken ones included."""

from refimpl.fences.chosen import Fences
from refimpl.fences.draft_done import DraftDone, extends_on_plan, fills_after_join, fork_plan, join_plan
from refimpl.fences.history import Expect, Load, Preset, history, preset
from refimpl.fences.lengths import Lengths
from refimpl.fences.publish import Publish, before_prebuilt, record_publish_ready, wait_publish_ready
from refimpl.fences.read_done import (
    ReadDone,
    SharedReadBoundary,
    keeps_mailbox,
    publishes_at_verify,
    recorded_at,
)
from refimpl.fences.verify_done import VerifyDone, maybe_wait_verify_done, self_fence
from refimpl.fences.war_barrier import Platform, WarBarrier, apply_war_barrier, barrier_stands

__all__ = [
    "DraftDone",
    "Expect",
    "Fences",
    "Lengths",
    "Load",
    "Platform",
    "Preset",
    "Publish",
    "ReadDone",
    "SharedReadBoundary",
    "VerifyDone",
    "WarBarrier",
    "apply_war_barrier",
    "barrier_stands",
    "before_prebuilt",
    "extends_on_plan",
    "fills_after_join",
    "fork_plan",
    "history",
    "join_plan",
    "keeps_mailbox",
    "maybe_wait_verify_done",
    "preset",
    "publishes_at_verify",
    "record_publish_ready",
    "recorded_at",
    "self_fence",
    "wait_publish_ready",
]
