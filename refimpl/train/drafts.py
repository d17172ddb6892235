"""One draft's training, whichever its kind: on the corpus, then on what the target writes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from refimpl.model import registry
from refimpl.model.dflash import DFlash
from refimpl.model.eagle import Eagle3
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.qwen3 import Qwen3
from refimpl.model.shapes import FAMILIES
from refimpl.model.weights_io import Draft, load_weights, save_weights
from refimpl.train import compiling, corpus, dflash, eagle, mtp
from refimpl.train.initial import initialize
from refimpl.train.loop import train_until, trainable
from refimpl.train.plan import SizePlan, Training
from refimpl.train.text import CorpusText, DraftText
from refimpl.train.workplace import Say, Workplace, wait_for_file


def train_draft(kind: str, size: str, plan: SizePlan, place: Workplace, deadline: float, say: Say) -> dict[str, Any]:
    """Train and save a draft; it is compiled while the target that it waits for may still be in training.

    Args:
        kind: `eagle`, `mtp` or `dflash`.
        size: of the target.
        plan: of that size.
        place: files and device.
        deadline: in seconds of `time.time()`.
        say: told of progress.
    """
    family, training = FAMILIES[size], plan.drafts[kind]
    target = registry.random_target(family.target, place.device)
    draft = registry.build_draft(family.drafts()[kind], target).to(place.device)
    initialize(draft, layers=getattr(draft.config, "num_hidden_layers", 1), seed=1)
    resumed = place.resume(draft, size, kind, say)
    known = CorpusText(place.corpus, corpus.TRAIN, place.device, seed=4)
    text = DraftText(known, place.shards(size), training.own_share, seed=5)

    def batch() -> tuple[Tensor, ...]:
        return batch_of(draft, text.batch(training.rows, plan.context), training)

    loss = compiling.ready(loss_of(draft, target, training), trainable(draft), batch(), place, say)
    newest = Newest(target, place.weights_file(size, "target"), say)
    if not place.resume(target, size, "target", say):
        newest.wait(deadline)

    def between() -> None:
        newest.look()
        text.refresh()

    tokens = training.rows * plan.context
    history = train_until(trainable(draft), lambda: loss(*batch()), training.optimizing, deadline, tokens, say, between)
    if not newest.loaded:
        raise TimeoutError(f"the {size} target did not appear in time: the {kind} draft has learned from an old one")
    save_weights(draft, place.weights_file(size, kind))
    say(f"saved after {history.steps} steps; the target's own text had {text.own_tokens:,} tokens")
    parameters = sum(parameter.numel() for parameter in draft.parameters())
    return {"parameters": parameters, **history.to_json(), "own_tokens": text.own_tokens, "resumed": resumed}


class Newest:
    """Puts the target into place when the job that trains it has written it.

    Args:
        target: to be filled; of an earlier run until then, or of random numbers.
        file: where the weights appear.
        say: told when they do.
    """

    def __init__(self, target: Qwen3, file: Path, say: Say) -> None:
        """Does not look yet."""
        self._target, self._file, self._say = target, file, say
        self.loaded = False

    def look(self) -> None:
        """Loads the weights if they are there, once."""
        if not self.loaded and self._file.is_file():
            load_weights(self._target, self._file)
            self.loaded = True
            self._say("the target is there")

    def wait(self, deadline: float) -> None:
        """Blocks until they are there."""
        wait_for_file(self._file, deadline)
        self.look()


def loss_of(draft: Draft, target: Qwen3, training: Training) -> Callable[..., Tensor]:
    """The loss of a kind, as a function of what `batch_of` gives."""
    hard = training.hard_share
    match draft:
        case Eagle3():
            return lambda tokens: eagle.loss(draft, target, tokens, hard)
        case MultiLayerEagle():
            return lambda tokens: mtp.loss(draft, target, tokens, hard)
        case DFlash():
            return lambda tokens, anchors: dflash.loss(draft, target, tokens, anchors, hard)


def batch_of(draft: Draft, tokens: Tensor, training: Training) -> tuple[Tensor, ...]:
    """What a kind's loss takes: the tokens, and for DFLASH the anchors in them."""
    if not isinstance(draft, DFlash):
        return (tokens,)
    rows, length = tokens.shape
    return tokens, dflash.draw_anchors(rows, length, draft.config.block_size, training.anchors, tokens.device)
