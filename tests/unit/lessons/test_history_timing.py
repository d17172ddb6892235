"""The timings of the fences on the simulated device, where times are known: nano weights, random."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from subprocess import CompletedProcess
from typing import Any

import pytest

import refimpl.device as devices
from refimpl.fences import Expect, preset
from refimpl.lessons.bench_engine.observed import Step
from refimpl.lessons.bench_engine.subject import Subject
from refimpl.lessons.bench_engine.table import table
from refimpl.lessons.bench_engine.timing import LEAST_REPEATS
from refimpl.lessons.history_timing import report as reports
from refimpl.lessons.history_timing.bars import bars
from refimpl.lessons.history_timing.cases import CONTROL, DFLASH, EAGLE, PARTS, SELF_FENCE, Case, Group, Pair, groups
from refimpl.lessons.history_timing.engines import Engines, eagle_like
from refimpl.lessons.history_timing.measure import Bench, longest
from refimpl.lessons.history_timing.plan import DRAFTS, MODELS, SIMULATED, Amounts, Share
from refimpl.lessons.history_timing.report import Run
from refimpl.lessons.history_timing.rows import FenceRow, PairRow, Taken, pair_row
from refimpl.model.registry import random_draft, random_target
from refimpl.model.shapes import FAMILIES
from tests.unit.lessons.timed_rows import ROW

BATCH = 2
SHARE = Share(BATCH, rounds=1, steps=3)
AMOUNTS = replace(SIMULATED, shares=(SHARE,), swept=BATCH)
SCHEDULE_MS = 0.2
"""Less than a forward, so that it fits beside one."""


def make(name: str = "nano") -> Subject:
    devices.sim()
    family = FAMILIES["nano"]
    target = random_target(family.target, "sim")
    return Subject(name, target, {kind: random_draft(family.drafts()[kind], target) for kind in DRAFTS})


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench(Engines(make(), AMOUNTS.batches, longest(AMOUNTS)), AMOUNTS)
    yield made
    made.close()


def measured(bench: Bench, *cases: Case) -> list[FenceRow]:
    rows, _ = bench.measured(Group(SHARE, cases))
    return rows


def test_the_self_fence_holds_the_host_before_the_launch_and_the_barrier_behind_it(bench: Bench) -> None:
    fenced, latest = measured(bench, Case(SELF_FENCE, DFLASH), Case("latest", DFLASH))
    gap_us = 1000 * (fenced.step_ms - fenced.host_ms)
    assert gap_us > 100
    assert fenced.before_us > 0.9 * gap_us
    assert latest.before_us == latest.before_p90_us == 0
    assert latest.after_us > 0.9 * 1000 * (latest.step_ms - latest.host_ms)
    assert fenced.launch_ms > latest.launch_ms + fenced.before_us / 1000 - 0.01
    assert latest.step_ms < fenced.step_ms


def test_a_host_that_needs_lengths_stands_still_before_the_launch_whatever_the_fence(bench: Bench) -> None:
    free, bound = measured(bench, Case("latest", DFLASH), Case("latest", DFLASH, needs_cpu_seq_lens=True))
    assert free.before_us == 0
    assert bound.before_us > 50


def test_each_row_has_as_many_steps_as_were_asked_for_and_keeps_its_bounds(bench: Bench) -> None:
    overlapped, control = measured(bench, Case("coarse", DFLASH), Case(CONTROL, DFLASH))
    assert overlapped.n == control.n == SHARE.steps
    for row in (overlapped, control):
        assert row.over_lower > 0.99
        assert row.over_upper < 1.01
    assert control.step_ms > overlapped.step_ms
    assert control.idle_share > overlapped.idle_share


def test_schedules_own_work_hides_behind_a_forward_under_the_event_alone(bench: Bench) -> None:
    event, coarse = (Case(name, DFLASH, added_schedule_ms=SCHEDULE_MS) for name in ("latest", "coarse"))
    rows, (pair,) = bench.measured(Group(SHARE, (event, coarse), (Pair(event, coarse),)))
    hidden, added = rows
    assert added.step_ms - hidden.step_ms == pytest.approx(SCHEDULE_MS, rel=0.1)
    assert pair.ratio == pytest.approx(hidden.step_ms / added.step_ms)
    assert pair.difference_us == pytest.approx(1000 * (hidden.step_ms - added.step_ms))


def test_an_item_on_schedule_gives_the_stall_back_under_the_coarse_barrier(bench: Bench) -> None:
    event, coarse, bare = measured(
        bench, Case("latest", DFLASH, item=True), Case("coarse", DFLASH, item=True), Case("coarse", DFLASH)
    )
    assert bare.before_us == 0
    assert 0 < event.before_us < coarse.before_us
    assert coarse.step_ms > 1.1 * bare.step_ms


def test_cases_that_differ_in_what_is_added_share_an_engine(bench: Bench) -> None:
    case = Case("coarse", DFLASH)
    engines = bench.engines
    assert engines.scheduler(case) is engines.scheduler(replace(case, added_host_ms=1.0, item=True))
    assert engines.scheduler(case) is not engines.scheduler(replace(case, again=True))
    assert engines.scheduler(case).config.batch_sizes == (BATCH,)


@pytest.mark.parametrize("amounts", MODELS["cuda"].values(), ids=list(MODELS["cuda"]))
def test_on_a_gpu_each_median_is_of_thirty_steps_at_least(amounts: Amounts) -> None:
    assert min(share.rounds * share.steps for share in amounts.shares) >= LEAST_REPEATS
    assert amounts.batches == (1, 16, 64)


def taken(*rounds: list[float]) -> Taken:
    steps = [[Step(us, 0.0, 0.0, 0.0, 0.0, None, None) for us in of] for of in rounds]
    return Taken(1.0, steps)


def test_a_pair_is_compared_round_by_round() -> None:
    pair = Pair(Case("latest", DFLASH), Case("coarse", DFLASH))
    # The device slowed down between the rounds; the two variants are as far apart in each.
    row = pair_row(pair, "nano", BATCH, taken([90.0, 90.0, 91.0], [180.0]), taken([100.0], [200.0, 200.0]))
    assert (row.ratio, row.ratio_p10, row.ratio_p90) == (0.9, 0.9, 0.9)
    assert (row.difference_us, row.rounds) == (-15.0, 2)


@pytest.mark.parametrize("amounts", [amounts for models in MODELS.values() for amounts in models.values()])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_times_presets_of_the_history_and_sets_against_each_other_what_takes_turns(
    part: str, amounts: Amounts
) -> None:
    for group in groups(part, amounts):
        assert len(set(group.cases)) == len(group.cases)
        for case in group.cases:
            assert preset(case.preset).expect is not Expect.RACY_HARMFUL or part == "chain"
        for pair in group.pairs:
            assert {pair.case, pair.control} <= set(group.cases)
            assert pair.case != pair.control


def test_a_size_without_an_eagle_head_gets_one_as_wide_as_its_target() -> None:
    shape = FAMILIES["8b"].target
    head = eagle_like(shape)
    assert (head.hidden_size, head.num_key_value_heads) == (shape.hidden_size, shape.num_key_value_heads)
    assert max(head.feature_layers) < shape.num_hidden_layers - 1


def test_such_a_head_decodes(bench: Bench) -> None:
    target = bench.subject.target
    subject = Subject("nano", target, {EAGLE: random_draft(eagle_like(target.config), target)})
    other = Bench(Engines(subject, AMOUNTS.batches, longest(AMOUNTS)), AMOUNTS)
    (row,) = measured(other, Case("latest", EAGLE))
    assert row.n == SHARE.steps


def fence_row(**changed: Any) -> dict[str, Any]:
    row = replace(
        ROW,
        preset=SELF_FENCE,
        step_ms=10.0,
        step_p10_ms=10.0,
        step_p90_ms=10.0,
        before_us=8500.0,
        before_p10_us=8500.0,
        before_p90_us=8500.0,
        after_us=500.0,
        launch_ms=9.0,
        host_ms=1.0,
        forward_ms=9.5,
        over_lower=10 / 9.5,
        over_upper=10 / 10.5,
        idle_share=0.05,
    )
    return asdict(replace(row, **changed))


def chain_pair(**changed: Any) -> dict[str, Any]:
    row = PairRow(
        model="8b",
        draft=EAGLE,
        batch=16,
        preset="chained",
        control="plain",
        again=False,
        added_host_ms=0.0,
        added_schedule_ms=0.0,
        item=False,
        ratio=1.004,
        ratio_p10=1.0,
        ratio_p90=1.01,
        difference_us=4.0,
        rounds=6,
    )
    return asdict(replace(row, **changed))


def test_the_self_fence_is_held_to_the_gap_that_its_own_step_leaves() -> None:
    found, *_ = bars({"self_fence": [fence_row()]})
    assert (found.measured, found.bar, found.reached) == (8500.0, 8100.0, True)
    found, *_ = bars({"self_fence": [fence_row(before_us=7000.0)]})
    assert not found.reached


def test_the_barrier_may_not_hold_the_host_before_the_launch_but_a_kernel_that_needs_lengths_may() -> None:
    late = {"before_p90_us": 30.0}
    found, *_ = bars({"self_fence": [fence_row(preset="29556", **late)]})
    assert not found.reached
    held = bars({"self_fence": [fence_row(preset="29556", needs_cpu_seq_lens=True, **late)]})
    assert not [bar for bar in held if "blocked" in bar.what]


def test_a_difference_is_measurable_if_two_equal_engines_differ_less() -> None:
    same = chain_pair(preset="plain", again=True, ratio=1.0, ratio_p10=0.995, ratio_p90=1.001)
    (found,) = bars({"chain_pairs": [chain_pair(), same]})
    assert found.reached
    (found,) = bars({"chain_pairs": [chain_pair(ratio=1.008), same]})
    assert not found.reached


def test_the_step_farthest_beyond_its_bounds_is_held_to_them() -> None:
    held = bars({"plan_stream": [fence_row(), fence_row(over_lower=0.9), fence_row(over_upper=1.1)]})
    assert [(bar.measured, bar.reached) for bar in held] == [(0.9, False), (1.1, False)]


def test_a_part_that_fails_is_told_and_the_others_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such thing")

    kept: list[dict[str, Any]] = []
    monkeypatch.setitem(PARTS, "read_done", fail)
    amounts = replace(AMOUNTS, chained=(DFLASH,))
    run = Run("sim", only=("read_done", "chain"), keep=kept.append, models={"nano": amounts}, subjects=make)
    found = run.measure()
    assert found["failed"] == ["nano: read_done: RuntimeError: no such thing"]
    assert [row["preset"] for row in found["chain"]] == [
        "seed-overwrite-barrier-dflash",
        "seed-chain-barrier-dflash",
        "seed-overwrite-barrier-dflash",
    ]
    assert [pair["again"] for pair in found["chain_pairs"]] == [False, True]
    assert kept[-1] == found
    assert "failed: nano: read_done" in table(found)


def test_what_time_was_short_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "load", lambda *_: make())
    found = Run("sim", only=("chain",), seconds=0.0, models={"nano": AMOUNTS}).measure()
    assert found["left_out"] == [f"nano: chain: batch {BATCH}"]


def test_an_unknown_part_is_refused_with_those_there_are(refimpl: Callable[..., CompletedProcess[str]]) -> None:
    done = refimpl("bench", "fences", "--only", "chain,speed")
    assert done.returncode != 0
    assert "'speed' is no part" in done.stderr
    assert "wait_or_synchronize" in done.stderr
