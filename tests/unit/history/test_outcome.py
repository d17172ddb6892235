from dataclasses import replace

import pytest

from refimpl.fences import Expect, Preset, preset
from refimpl.lessons.history.outcome import Gathered, Outcome
from refimpl.lessons.history.recorded import Found
from refimpl.lessons.history.runner import Ran
from refimpl.lessons.history.tasks import Do
from refimpl.lessons.history.timed import Cost

RIGHT = Ran(seed=0, verifies=10, emitted=20)
WRONG = replace(RIGHT, wrong=("request 0: tokens [1] are wrong",))
DROPPED = replace(RIGHT, unmasked=("request 0: tokens [2] are not what comes next",))
FAULT = Ran(seed=0, fault="RuntimeError: index 99 is out of bounds")
SLOW = replace(RIGHT, emitted=15)
RACE = Found("WAR", "req_to_token", 2, "WAR on req_to_token: …")
NAMES = {Expect.RIGHT: "latest", Expect.RACY_MASKED: "no-barrier", Expect.RACY_HARMFUL: "no-publish"}
KEYS = {"preset", "device", "runs", "wrong_runs", "accept_len", "races", "host_blocked_us", "step_us", "gpu_idle"}


def outcome(expect: Expect, *ran: Ran, races: tuple[Found, ...] = (RACE,)) -> Outcome:
    row: Preset = preset(NAMES[expect])
    assert row.expect is expect
    return Outcome(row, "sim", "tiny", ran, (RIGHT,), races, Cost(4, 0.0, 1.0, 200.0, 0.5))


def test_what_is_right_has_no_race_no_wrong_token_and_none_among_those_that_are_dropped() -> None:
    assert outcome(Expect.RIGHT, RIGHT, races=()).agrees
    assert not outcome(Expect.RIGHT, RIGHT).agrees
    for bad in (WRONG, FAULT, DROPPED):
        assert not outcome(Expect.RIGHT, RIGHT, bad, races=()).agrees


def test_what_is_masked_has_a_race_and_is_wrong_in_dropped_tokens_alone() -> None:
    assert outcome(Expect.RACY_MASKED, RIGHT, DROPPED).agrees
    assert not outcome(Expect.RACY_MASKED, RIGHT).agrees
    assert not outcome(Expect.RACY_MASKED, DROPPED, races=()).agrees
    assert not outcome(Expect.RACY_MASKED, DROPPED, WRONG).agrees


@pytest.mark.parametrize("harm", [WRONG, FAULT, SLOW])
def test_what_is_harmful_has_a_race_and_is_wrong_faults_or_accepts_less_than_its_control(harm: Ran) -> None:
    assert outcome(Expect.RACY_HARMFUL, harm).agrees
    assert not outcome(Expect.RACY_HARMFUL, harm, races=()).agrees
    assert not outcome(Expect.RACY_HARMFUL, RIGHT).agrees


def test_acceptance_is_compared_with_the_same_requests_alone() -> None:
    assert not outcome(Expect.RACY_HARMFUL, replace(SLOW, seed=7)).accepts_less


def test_a_fault_counts_as_a_wrong_run() -> None:
    row = outcome(Expect.RACY_HARMFUL, RIGHT, FAULT, WRONG).to_json()
    assert (row["runs"], row["wrong_runs"], row["faults"]) == (3, 2, 1)
    assert row["first_wrong"]["words"] == FAULT.fault


def test_the_json_has_the_keys_that_are_promised() -> None:
    row = outcome(Expect.RIGHT, RIGHT, races=()).to_json()
    assert set(row) >= KEYS
    assert row["host_blocked_us"] == {"before_launch": 0.0, "after_launch": 1.0}
    assert (row["accept_len"], row["step_us"], row["gpu_idle"], row["races"]) == (2.0, 200.0, 0.5, [])


def test_without_a_steady_step_times_are_unknown() -> None:
    row = replace(outcome(Expect.RACY_HARMFUL, FAULT), cost=None).to_json()
    assert (row["accept_len"], row["step_us"], row["gpu_idle"]) == (None, None, None)
    assert row["host_blocked_us"] == {"before_launch": None, "after_launch": None}


def test_rows_come_in_any_order_and_are_told_by_seed() -> None:
    gathered = Gathered()
    for seed in (2, 0, 1):
        gathered.take(Do.RUNS, {"seed": seed, "wrong": [], "unmasked": []})
    gathered.take(Do.RACES, vars(RACE))
    found = gathered.outcome(preset("latest"), "sim", "tiny")
    assert [one.seed for one in found.ran] == [0, 1, 2]
    assert found.races == (RACE,)
    assert found.cost is None
