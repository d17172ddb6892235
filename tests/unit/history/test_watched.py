"""What the observer sees of a run, and what it leaves behind."""

from functools import cache

import pytest
import torch

from refimpl import device as devices
from refimpl.fences import Load
from refimpl.lessons.history.loads import draw
from refimpl.lessons.history.subject import Built, Subject, build
from refimpl.lessons.history.unmasked import wrong_forwards
from refimpl.lessons.history.watched import EveryToken, every_token
from refimpl.lessons.lossless.play import play
from refimpl.program.errors import UserError


@cache
def built(worker: str) -> Built:
    torch.set_num_threads(1)
    return build(Subject(worker, Load.HANDOVER))


def seen(worker: str, seed: int = 0) -> tuple[Built, EveryToken, dict[int, list[int]]]:
    one, dev = built(worker), devices.sim()
    load = draw(one.subject.load, "tiny", seed)
    with every_token(one.scheduler) as found, dev.schedule(dev.Timed()):
        reqs = play(one.scheduler, load).reqs
    return one, found, {req.rid: req.output_ids for req in reqs}


@pytest.mark.parametrize("worker", ["plain", "dflash", "eagle", "mtp"])
def test_what_every_forward_brought_begins_with_what_was_emitted_and_goes_on_behind_it(worker: str) -> None:
    _, found, texts = seen(worker)
    longer = 0
    for (rid, epoch), stay in found.stays.items():
        assert epoch == 0
        assert stay.tokens[: len(texts[rid])] == texts[rid]
        longer += len(stay.tokens) > len(texts[rid])
    assert longer > len(texts) / 2


def test_a_token_that_was_changed_is_found_wherever_it_stands() -> None:
    one, found, _ = seen("dflash")
    assert not list(wrong_forwards(found.stays, one.target, one.draft))
    stay = next(iter(found.stays.values()))
    stay.rows[-1][-1] = (stay.rows[-1][-1] + 1) % 40
    (words,) = wrong_forwards(found.stays, one.target, one.draft)
    assert "not what comes next" in words


def test_a_hidden_state_of_other_tokens_is_found_though_every_token_is_right() -> None:
    one, found, _ = seen("eagle")
    assert not list(wrong_forwards(found.stays, one.target, one.draft))
    stay = next(stay for stay in found.stays.values() if len(stay.hidden) > 1)
    stay.hidden[-1] = stay.hidden[0]
    (words,) = wrong_forwards(found.stays, one.target, one.draft)
    assert f"forwards [{len(stay.rows) - 1}]" in words


def test_afterwards_the_scheduler_has_its_own_methods_again() -> None:
    scheduler = seen("dflash")[0].scheduler
    assert scheduler.run_batch.__func__ is type(scheduler).run_batch  # type: ignore[attr-defined]
    assert scheduler.future_map.stash.__func__ is type(scheduler.future_map).stash  # type: ignore[attr-defined]


def test_unknown_models_are_refused_by_name() -> None:
    with pytest.raises(UserError, match="'huge': use one of tiny, nano, small"):
        Subject("dflash", Load.STEADY, models="huge")
