"""The history's table, row by row: what the checker says of the engine's recorded program, and what comes out of runs.

``python -m refimpl history`` does the same with more orders, and keeps what it finds.
"""

import pytest
import torch

from refimpl.fences import Expect, Preset, history, preset
from refimpl.lessons.history.outcome import Outcome
from refimpl.lessons.history.presets import Plan
from refimpl.lessons.history.recorded import races, recorded
from refimpl.lessons.history.runner import Ran, Runner
from refimpl.lessons.history.subject import Subject, subject_of

ORDERS, MASKED_ORDERS, MOST_ORDERS = 20, 6, 60
"""Orders in which what is right must be right; in which a mask must hold; and among which what is wrong must show."""
PLAN = Plan("sim", "tiny", runs=ORDERS)


def rows(*expected: Expect) -> list[str]:
    return [one.name for one in history() if one.expect in expected]


def subject(name: str) -> Subject:
    torch.set_num_threads(1)
    return subject_of(preset(name), PLAN.models_of(preset(name)))


@pytest.mark.parametrize("name", rows(*Expect))
def test_the_checker_finds_a_race_in_the_recorded_program_where_the_table_expects_one(name: str) -> None:
    found = races(recorded(subject(name)))
    assert bool(found) == (preset(name).expect is not Expect.RIGHT), found


@pytest.mark.parametrize("name", rows(Expect.RIGHT))
def test_what_is_right_computes_the_right_tokens_in_every_order_those_that_are_dropped_too(name: str) -> None:
    runner = Runner(subject(name))
    ran = [runner.run(seed) for seed in range(ORDERS)]
    assert [(one.seed, one.wrong, one.fault, one.unmasked) for one in ran] == [
        (seed, (), "", ()) for seed in range(ORDERS)
    ]


@pytest.mark.parametrize("name", rows(Expect.RACY_MASKED))
def test_what_is_masked_gives_the_right_text_and_computes_wrong_tokens_in_some_order(name: str) -> None:
    runner, unmasked = Runner(subject(name)), list[int]()
    for seed in range(MOST_ORDERS):
        if seed >= MASKED_ORDERS and unmasked:
            break
        one = runner.run(seed)
        assert (one.wrong, one.fault) == ((), "")
        unmasked += [seed] if one.unmasked else []
    assert unmasked


@pytest.mark.parametrize("name", rows(Expect.RACY_HARMFUL))
def test_what_is_harmful_spoils_text_acceptance_or_the_process_in_some_order(name: str) -> None:
    one, control = Runner(subject(name)), Runner(subject(name).control)
    assert any(_harmed(preset(name), one.run(seed), control, seed) for seed in range(MOST_ORDERS))


def _harmed(row: Preset, ran: Ran, control: Runner, seed: int) -> bool:
    if ran.wrong or ran.fault:
        return True
    outcome = Outcome(row, "sim", "", (ran,), (control.run(seed),), (), None)
    return bool(outcome.accepts_less)
