"""``Runner``: runs of one engine, each under an order of its own, judged by the text and by what was dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from refimpl import device as devices
from refimpl.engine.kv_transfer import Prebuilt
from refimpl.engine.prefill_rank import PrefillRank
from refimpl.engine.request import Req
from refimpl.fences import Load
from refimpl.lessons.history.loads import draw
from refimpl.lessons.history.stalled import stalled
from refimpl.lessons.history.subject import Built, Subject, build, rebuilt
from refimpl.lessons.history.unmasked import wrong_forwards
from refimpl.lessons.history.unrepaired import is_repaired, unrepaired
from refimpl.lessons.history.watched import every_token
from refimpl.lessons.lossless.campaign import wrong_end
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.oracle import judge_greedy
from refimpl.lessons.lossless.play import play
from refimpl.model.qwen3 import Qwen3
from refimpl.program.errors import UserError

FAULTS = (RuntimeError, AssertionError, ValueError, IndexError, UserError)
"""What a run with wrong values may end in: an index that the device refuses, an account that does not add up."""
WORDS = 300
"""Characters that are kept of an error."""


@dataclass(frozen=True)
class Ran:
    """What came of one run.

    Args:
        seed: of its requests, and of its order or its stalls.
        schedule: on ``sim`` the id of the order, which replays it; else empty.
        wrong: what is wrong with the text; empty where every token is the oracle's choice.
        fault: the error in which it ended; empty for none. A fault counts as wrong.
        unmasked: what is wrong with what was computed, dropped or not.
        verifies, emitted: decode steps of single requests, and the tokens that these emitted.
    """

    seed: int
    schedule: str = ""
    wrong: tuple[str, ...] = ()
    fault: str = ""
    unmasked: tuple[str, ...] = ()
    verifies: int = 0
    emitted: int = 0

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Ran:
        """As it was sent."""
        given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
        return cls(**given)


class Runner:
    """An engine that is run again and again.

    Args:
        subject: which engine.
    """

    def __init__(self, subject: Subject) -> None:
        self.built = build(subject)
        self._rank = PrefillRank.beside(self.built.scheduler) if subject.load is Load.PREBUILT else None

    def run(self, seed: int) -> Ran:
        """One run; behind a fault the engine is built anew.

        Args:
            seed: of the requests, and of the order (``sim``) or of the stalls (``cuda``).
        """
        ran = self._run(seed)
        if not is_repaired(self.built.subject.fences) or ran.fault:
            return ran
        with unrepaired(self.built.scheduler):
            bare = self._run(seed)
        return replace(ran, unmasked=(*bare.wrong, *bare.unmasked, *filter(None, [bare.fault])))

    def _run(self, seed: int) -> Ran:
        subject, scheduler = self.built.subject, self.built.scheduler
        load = draw(subject.load, subject.models, seed)
        prebuilt = self._prefilled_blocking(load)
        order = None
        try:
            with every_token(scheduler) as seen, disturbed(self.built, seed) as order:
                reqs = play(scheduler, load, prebuilt=prebuilt).reqs
        except FAULTS as error:
            self.built = rebuilt(self.built)
            return Ran(seed, order.id if order is not None else "", fault=_shown(error))
        return Ran(
            seed=seed,
            schedule=order.id if order is not None else "",
            wrong=tuple(_wrong_texts(self.built.target, reqs)),
            unmasked=tuple(wrong_forwards(seen.stays, self.built.target, self.built.draft)),
            verifies=sum(times for req in reqs for times in req.accept_lens.values()),
            emitted=sum(length * times for req in reqs for length, times in req.accept_lens.items()),
        )

    def _prefilled_blocking(self, load: Sequence[Arrival]) -> dict[Arrival, Prebuilt]:
        """What the other rank has done before the run, in which nothing is disturbed."""
        if self._rank is None:
            return {}
        return {one: self._rank.prefill_blocking(list(one.prompt_ids), one.params) for one in load if one.prebuilt}


@contextmanager
def disturbed(built: Built, seed: int) -> Iterator[Any]:
    """Inside, streams run in an order that is legal and unkind: the adversary's on ``sim``, with stalls on a GPU.

    Yields:
        On ``sim`` the run, which has the order's id; else None.
    """
    with ExitStack() as stack:
        if built.subject.device == "sim":
            dev = devices.sim()
            yield stack.enter_context(dev.schedule(dev.Adversary(seed=seed)))
        else:
            stack.enter_context(stalled(built.scheduler, seed))
            yield None


def _wrong_texts(target: Qwen3, reqs: tuple[Req, ...]) -> Iterator[str]:
    for req in reqs:
        judged = judge_greedy(target, req.prompt_ids, req.output_ids)
        if judged.wrong:
            yield f"request {req.rid}, {req.prompt_ids} -> {req.output_ids}: tokens {list(judged.wrong)} are wrong"
        end = wrong_end(req, target.config.eos_token_id)
        if end is not None:
            yield f"request {req.rid}: {end}"


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:WORDS]
