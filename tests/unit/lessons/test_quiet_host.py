"""Runs on a host whose speed wanders, with references that are given."""

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from refimpl.lessons.bench_engine import quiet
from refimpl.lessons.bench_engine.quiet import QuietHost


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """Two cores; what the thread was bound to, one after the other."""
    bound: list[set[int]] = [{0, 1}]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: bound[-1], raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, to: bound.append(set(to)), raising=False)
    return bound


def _given(times: list[float]) -> Callable[[], float]:
    waiting: Iterator[float] = iter(times)
    return lambda: next(waiting)


def test_a_run_is_given_the_core_on_which_the_reference_is_fastest(cores: list[set[int]]) -> None:
    where = []
    run = QuietHost(_given([40.0, 30.0, 31.0]), binds=True).run(lambda: where.append(cores[-1]))
    assert where == [{1}]
    assert cores[-1] == {0, 1}, "afterwards it may run anywhere again"
    assert (run.reference_us, run.again) == (31.0, 0)


def test_a_run_in_which_the_host_became_slower_is_made_again_and_left_out(cores: list[set[int]]) -> None:
    outcomes = iter(["disturbed", "quiet"])
    # Before on both cores, then after: the first run ends slower than it began.
    run = QuietHost(_given([30.0, 40.0, 50.0, 31.0, 40.0, 32.0]), binds=True).run(lambda: next(outcomes))
    assert (run.outcome, run.reference_us, run.again) == ("quiet", 32.0, 1)


def test_where_it_is_never_quiet_the_least_disturbed_run_counts(
    cores: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.3, 0.6, 0.9])
    monkeypatch.setattr(quiet, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(quiet, "PATIENCE_S", 1.0)
    slower = [30.0, 30.0, 60.0, 30.0, 30.0, 50.0, 30.0, 30.0, 70.0]
    outcomes = iter("abc")
    run = QuietHost(_given(slower), binds=True).run(lambda: next(outcomes))
    assert (run.outcome, run.reference_us, run.again) == ("b", 50.0, 2)


def test_an_error_within_a_run_gives_the_cores_back(cores: list[set[int]]) -> None:
    def broken() -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        QuietHost(lambda: 30.0, binds=True).run(broken)
    assert cores[-1] == {0, 1}


def test_where_time_is_virtual_nothing_is_bound_and_nothing_made_again(cores: list[set[int]]) -> None:
    run = QuietHost(_given([30.0, 90.0]), binds=False).run(lambda: "once")
    assert (run.outcome, run.again, cores) == ("once", 0, [{0, 1}])


def test_of_many_cores_a_few_are_tried_evenly_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[set[int]] = [set(range(30))]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: bound[0], raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, to: bound.append(set(to)), raising=False)
    QuietHost(lambda: 30.0, binds=True).run(lambda: None)
    assert bound[1:9] == [{core} for core in range(0, 30, 4)]


def test_a_run_that_was_slow_from_its_start_is_made_again(cores: list[set[int]]) -> None:
    host = QuietHost(_given([30.0, 31.0, 30.0, 50.0, 50.0, 50.0, 31.0, 33.0, 32.0]), binds=True)
    assert host.run(lambda: "first").again == 0
    outcomes = iter(["slow", "quiet"])
    run = host.run(lambda: next(outcomes))
    assert (run.outcome, run.again) == ("quiet", 1)
