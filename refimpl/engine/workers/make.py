"""Which worker a draft needs."""

from __future__ import annotations

from refimpl.engine.config import EngineConfig
from refimpl.engine.errors import EngineError
from refimpl.engine.workers.base import Resources, Worker
from refimpl.engine.workers.dflash import DFlashWorker
from refimpl.engine.workers.eagle import EagleWorker, chain_alloc_len
from refimpl.engine.workers.eagle_tree import EagleTreeWorker, tree_alloc_len
from refimpl.engine.workers.mtp import MtpWorker, mtp_alloc_len
from refimpl.engine.workers.plain import PlainWorker
from refimpl.model.dflash import DFlash
from refimpl.model.eagle import Eagle3
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.weights_io import Draft


def make_worker(resources: Resources, draft: Draft | None) -> Worker:
    """The worker for a draft model; plain decoding without one."""
    match draft:
        case None:
            return PlainWorker(resources)
        case DFlash():
            return DFlashWorker(resources, draft)
        case Eagle3():
            return (EagleTreeWorker if resources.config.draft_topk > 1 else EagleWorker)(resources, draft)
        case MultiLayerEagle():
            return MtpWorker(resources, draft)


def alloc_len_of(draft: Draft | None, config: EngineConfig) -> int:
    """Slots behind the committed length that one step writes, at most.

    Raises:
        EngineError: an option that the draft has no use for, or more of it than it bears.
    """
    match draft:
        case None:
            _refuse_options("without a draft nothing is drafted", config)
            return 1
        case DFlash():
            _refuse_options("DFLASH drafts a block in one forward", config)
            return draft.config.block_size
        case Eagle3():
            return (tree_alloc_len if config.draft_topk > 1 else chain_alloc_len)(draft, config)
        case MultiLayerEagle():
            return mtp_alloc_len(draft, config)


def _refuse_options(why: str, config: EngineConfig) -> None:
    """What would be ignored in silence is refused."""
    for name, unset in (("draft_steps", None), ("draft_topk", 1)):
        if getattr(config, name) != unset:
            raise EngineError(f"{name}={getattr(config, name)}: {why}, so leave it out")
