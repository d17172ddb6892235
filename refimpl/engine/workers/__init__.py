"""The ways to decode, one interface: plain, EAGLE, multi-layer EAGLE, DFLASH."""

from refimpl.engine.workers.base import Resources, Worker
from refimpl.engine.workers.make import make_worker

__all__ = ["Resources", "Worker", "make_worker"]
