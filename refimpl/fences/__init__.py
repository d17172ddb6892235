"""The fences of the five changes: one module each, every variant side by side, broken ones included."""

from refimpl.fences.verify_done import VerifyDone, maybe_wait_verify_done

__all__ = ["VerifyDone", "maybe_wait_verify_done"]
