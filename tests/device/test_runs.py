"""What a run under a schedule begins with, and what it leaves behind."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from refimpl.device.search import search

SEEDS = range(30)


def beside(dev: Any, outside: Any) -> list[list[float]]:
    """A stream from outside writes, and two of the run's own read without a fence."""
    one, two = dev.Stream(), dev.Stream()
    x = torch.zeros(4, device="sim")
    dev.synchronize()
    with dev.stream(outside):
        x.fill_(1)
    with dev.stream(one):
        y = x + 0
    with dev.stream(two):
        z = x * 2
    dev.synchronize()
    return [y.tolist(), z.tolist()]


def test_an_order_found_beside_a_stream_from_outside_replays(dev: Any) -> None:
    outside = dev.Stream()
    found = search(lambda: beside(dev, outside), [[1.0] * 4, [2.0] * 4], SEEDS)
    assert found.corrupt
    for corrupt in found.corrupt:
        with dev.schedule(dev.Replay(corrupt.id)) as run:
            assert beside(dev, outside) == corrupt.value
        assert run.id == corrupt.id


def test_a_run_shares_no_stream_with_its_surroundings_and_gives_back_its_own(dev: Any) -> None:
    for priority in (0, -1):
        outside = dev.Stream(priority=priority)
        taken = []
        for seed in range(3):
            with dev.schedule(dev.Adversary(seed)):
                taken.append([dev.Stream(priority=priority) for _ in range(2)])
        assert taken[0] == taken[1] == taken[2]
        assert outside not in taken[0]
        assert dev.Stream(priority=priority) == taken[0][0]


def test_a_run_begins_with_the_random_numbers_of_the_last_seed(dev: Any) -> None:
    torch.manual_seed(7)
    first = torch.rand(2, device="sim").tolist()
    with dev.schedule(dev.Adversary(1)) as run:
        inside = torch.rand(2, device="sim").tolist()
        torch.rand(5, device="sim")
    with dev.schedule(dev.Replay(run.id)):
        assert torch.rand(2, device="sim").tolist() == inside == first


def test_a_run_leaves_the_random_numbers_around_it_alone(dev: Any) -> None:
    torch.manual_seed(7)
    expected = [torch.rand(1, device="sim").item() for _ in range(2)]
    torch.manual_seed(7)
    found = [torch.rand(1, device="sim").item()]
    with dev.schedule(dev.Adversary(1)):
        dev.manual_seed(3)
        torch.rand(1, device="sim")
    found.append(torch.rand(1, device="sim").item())
    assert found == expected
    assert dev.initial_seed() == 7


def test_a_generator_of_the_programs_own_goes_on(dev: Any) -> None:
    own = dev.Generator()
    own.manual_seed(1)
    values = []
    for seed in range(2):
        with dev.schedule(dev.Adversary(seed)):
            values.append(torch.rand(2, device="sim", generator=own).tolist())
    assert values[0] != values[1]


def test_one_schedule_context_runs_more_than_once(dev: Any) -> None:
    context = dev.schedule(dev.Adversary(3))
    with context as first:
        torch.zeros(2, device="sim")
    with context as second, context as third:
        torch.zeros(2, device="sim")
    assert first is not second is not third
    assert second.schedule is third.schedule


def test_schedules_that_overlap_are_an_error_and_leave_what_was_around_them(dev: Any) -> None:
    gc.collect()
    outer_id, allocated = dev.current_schedule_id(), dev.memory_allocated()
    first, second = dev.schedule(dev.Adversary(1)), dev.schedule(dev.Adversary(2))
    first.__enter__()
    x = torch.ones(3, device="sim")
    second.__enter__()
    x.add_(1)
    with pytest.raises(RuntimeError, match="leave last what was entered first"):
        first.__exit__(None, None, None)
    assert dev.current_schedule_id() == outer_id
    with pytest.raises(RuntimeError, match="leave last what was entered first"):
        second.__exit__(None, None, None)
    assert dev.current_schedule_id() == outer_id
    del x
    gc.collect()
    assert dev.memory_allocated() == allocated
    assert (torch.ones(2, device="sim") + 1).tolist() == [2, 2]


def test_a_schedule_in_an_abandoned_generator_ends_with_it(dev: Any) -> None:
    def body() -> Iterator[None]:
        with dev.schedule(dev.Adversary(1)):
            torch.ones(2, device="sim")
            yield

    outer_id = dev.current_schedule_id()
    running = body()
    next(running)
    running.close()
    assert dev.current_schedule_id() == outer_id


@pytest.mark.parametrize("given", [None, "h1", 3])
def test_what_is_no_schedule_is_named(dev: Any, given: Any) -> None:
    with pytest.raises(TypeError, match=r"use Timed\(\), Adversary\(seed=3\) or Replay\(run.id\)"):
        dev.schedule(given)


def test_a_class_is_no_schedule(dev: Any) -> None:
    with pytest.raises(TypeError, match=r"schedule\(.*Timed.*\): use Timed\(\)"):
        dev.schedule(dev.Timed)


@pytest.mark.parametrize("given", [None, 3, b"h1"])
def test_an_id_is_text(dev: Any, given: Any) -> None:
    with pytest.raises(TypeError, match="use the id of a run"):
        dev.Replay(given)


@pytest.mark.parametrize("costs", [None, "h200", {}])
def test_the_costs_of_a_schedule_are_a_cost_model(dev: Any, costs: Any) -> None:
    for make in (dev.Timed, lambda costs: dev.Adversary(1, costs=costs), lambda costs: dev.Replay("", costs=costs)):
        with pytest.raises(TypeError, match=r"costs=.*\): use a CostModel"):
            make(costs=costs)


@pytest.mark.parametrize("chance", [None, "a", 1.5, float("nan")])
def test_a_chance_lies_between_0_and_1(dev: Any, chance: Any) -> None:
    for name in ("torn", "change"):
        with pytest.raises(ValueError, match=f"{name}=.*use a chance between 0 and 1"):
            dev.Adversary(1, **{name: chance})
