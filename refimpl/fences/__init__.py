"""The fences of the five changes: one module each, every variant side by side, broken ones included."""

from refimpl.fences.chosen import Fences
from refimpl.fences.publish import Publish, wait_publish_ready
from refimpl.fences.read_done import ReadDone
from refimpl.fences.verify_done import VerifyDone, maybe_wait_verify_done
from refimpl.fences.war_barrier import WarBarrier, apply_war_barrier

__all__ = [
    "Fences",
    "Publish",
    "ReadDone",
    "VerifyDone",
    "WarBarrier",
    "apply_war_barrier",
    "maybe_wait_verify_done",
    "wait_publish_ready",
]
