"""A search over seeds: how many orders were wrong, and the order of each."""

from typing import Any

import numpy as np
import pytest
import torch

from refimpl.device.search import first_corrupt, same, search


def handover(dev: Any, fence: bool) -> torch.Tensor:
    x, other = torch.zeros(2, device="sim"), dev.Stream()
    dev.synchronize()
    x.fill_(7)
    if fence:
        other.wait_stream(dev.current_stream())
    with dev.stream(other):
        seen = x + 0
    dev.synchronize()
    return seen


def test_a_search_gives_each_wrong_value_with_an_order_that_replays(dev: Any) -> None:
    right = torch.full((2,), 7.0)
    found = search(lambda: handover(dev, fence=False), right, range(30))
    assert found.runs == 30
    assert found.corrupt
    for corrupt in found.corrupt:
        with dev.schedule(dev.Replay(corrupt.id)):
            assert same(handover(dev, fence=False), corrupt.value)
        assert not same(corrupt.value, right)


def test_a_fenced_program_is_never_wrong(dev: Any) -> None:
    found = search(lambda: handover(dev, fence=True), torch.full((2,), 7.0), range(20))
    assert (found.runs, found.corrupt, found.first) == (20, (), None)


def test_what_is_found_prints_its_seed_and_its_id(dev: Any) -> None:
    found = search(lambda: handover(dev, fence=False).tolist(), [7.0, 7.0], range(30))
    first = found.first
    assert first is not None
    assert f"seed {first.seed}, schedule {first.id!r}" in str(first)
    assert str(found).startswith(f"{len(found.corrupt)} of 30 orders")


def test_the_first_is_the_first_of_the_search(dev: Any) -> None:
    first = first_corrupt(lambda: handover(dev, fence=False).tolist(), [7.0, 7.0], range(30))
    assert first == search(lambda: handover(dev, fence=False).tolist(), [7.0, 7.0], range(30)).first


def test_a_gpu_takes_no_orders() -> None:
    with pytest.raises(ValueError, match="use 'sim'"):
        search(lambda: 1, 1, range(2), device="cuda")


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (float("nan"), float("nan"), True),
        ([1, (2, b"x")], [1, (2, b"x")], True),
        ([1, 2], [1, 2, 3], False),
        ({"a": torch.ones(2)}, {"a": torch.ones(2)}, True),
        ({"a": torch.ones(2)}, {"a": torch.tensor([1.0, 2.0])}, False),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), False),
        (torch.tensor(float("nan")), torch.tensor(float("nan")), True),
        (torch.tensor(0.0), torch.tensor(-0.0), False),
        (torch.ones(2), 1, False),
        (0.0, -0.0, False),
        (complex(0.0, -0.0), 0j, False),
        (1, 1.0, True),
        (np.ones(2), np.ones(2), True),
        (np.ones(2), np.ones(2, dtype=np.float32), False),
        (np.zeros(2), -np.zeros(2), False),
        (np.array([np.nan]), np.array([np.nan]), True),
        (np.ones(2), [1.0, 1.0], False),
        (np.float64(1.0), 1.0, True),
        (np.float32(0.0), -0.0, False),
        (np.array([1, "a"], dtype=object), np.array([1, "a"], dtype=object), True),
        (torch.ones(2), np.ones(2, dtype=np.float32), False),
    ],
)
def test_values_are_compared_to_the_byte(left: Any, right: Any, equal: bool) -> None:
    assert same(left, right) is equal
