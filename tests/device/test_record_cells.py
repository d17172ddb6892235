"""The bytes that index tensors name: exactly those, in few ranges, up to a bound."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.device.stated import Along, Leading
from refimpl.program import Mem
from refimpl.record.cells import MOST_RUNS, Cells, Shape, whole
from refimpl.record.work import Buffer


def settled(tensor: torch.Tensor, index: Any) -> Cells:
    buffer = Buffer(tensor.untyped_storage().nbytes(), Mem.DEVICE)
    cells = Cells(buffer, Shape.of(tensor), whole(buffer, tensor))
    cells.settle(index)
    return cells


def bytes_of(cells: Cells) -> set[int]:
    found = set[int]()
    for _, offset, length, rows, stride in cells.ranges:
        for row in range(rows):
            found |= set(range(offset + row * stride, offset + row * stride + length))
    return found


def expected(elements: torch.Tensor) -> set[int]:
    return {4 * int(e) + b for e in elements.reshape(-1) for b in range(4)}


@st.composite
def tables(draw: st.DrawFn) -> torch.Tensor:
    """A view of a storage whose elements hold their own place."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    table = torch.arange(int(np.prod(sizes)), dtype=torch.int32).view(sizes)
    table = table.permute(draw(st.permutations(range(len(sizes)))))
    for dim, size in enumerate(table.shape):
        begin, step = draw(st.integers(0, size - 1)), draw(st.integers(1, 2))
        table = table[(slice(None),) * dim + (slice(begin, None, step),)]
    return table


def indices(draw: st.DrawFn, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    index: list[Any] = []
    rows = draw(st.integers(0, 4))
    for size in sizes[: draw(st.integers(0, len(sizes)))]:
        kind = draw(st.sampled_from(["int", "slice", "rows", "mask", "none"]))
        if kind == "none":
            index.append(None)
        if kind == "int":
            index.append(draw(st.integers(-size, size - 1)))
        elif kind == "rows":
            index.append(
                torch.tensor(draw(st.lists(st.integers(-size, size - 1), min_size=rows, max_size=rows))).long()
            )
        elif kind == "mask" and not any(isinstance(i, torch.Tensor) for i in index):
            mask = torch.tensor(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
            rows = int(mask.sum())
            index.append(mask)
        else:
            begin = draw(st.integers(0, size))
            index.append(slice(begin, draw(st.integers(begin, size)), draw(st.integers(1, 2))))
    if draw(st.booleans()) and len([i for i in index if i is not None]) < len(sizes):
        index.append(...)
    return tuple(index)


def as_arrays(index: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(i.numpy() if isinstance(i, torch.Tensor) else i for i in index)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_an_index_touches_exactly_the_cells_that_it_names(data: st.DataObject) -> None:
    table = data.draw(tables())
    index = indices(data.draw, tuple(table.shape))
    cells = settled(table, as_arrays(index))
    assert bytes_of(cells) == expected(table[index])
    assert not cells.widened


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_gather_picks_one_cell_for_each_place_of_its_index(data: st.DataObject) -> None:
    table = data.draw(tables())
    dim = data.draw(st.integers(0, table.dim() - 1))
    shape = [data.draw(st.integers(1, size)) for size in table.shape]
    n = int(np.prod(shape))
    picked = torch.tensor(data.draw(st.lists(st.integers(0, table.shape[dim] - 1), min_size=n, max_size=n)))
    picked = picked.view(shape)
    cells = settled(table, Along(dim, picked.numpy()))
    assert bytes_of(cells) == expected(table.gather(dim, picked))


def test_rows_at_equal_distances_are_one_range() -> None:
    table = torch.zeros(64, 8)
    assert len(settled(table, (np.arange(0, 64, 2),)).ranges) == 1
    assert len(settled(table, (np.arange(10, 30),)).ranges) == 1
    assert len(settled(table, (slice(None), np.array([3]))).ranges) == 1


@pytest.mark.parametrize(("rows", "widened"), [(MOST_RUNS - 1, False), (3 * MOST_RUNS, True)])
def test_more_runs_than_the_bound_are_joined_where_the_gaps_are_least(rows: int, widened: bool) -> None:
    picked = np.cumsum(2 + np.arange(rows) % 7 * (np.arange(rows) % 3))
    table = torch.zeros(int(picked[-1]) + 1, 1)
    cells = settled(table, (picked,))
    assert cells.widened is widened
    assert len(cells.ranges) <= MOST_RUNS
    assert bytes_of(cells) >= expected(torch.from_numpy(picked))
    assert (bytes_of(cells) == expected(torch.from_numpy(picked))) is not widened


def test_until_the_values_are_known_the_whole_tensor_counts() -> None:
    table = torch.zeros(4, 4)
    buffer = Buffer(64, Mem.DEVICE)
    cells = Cells(buffer, Shape.of(table), whole(buffer, table))
    assert bytes_of(cells) == set(range(64))
    assert cells.widened


@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=4), st.data())
def test_of_each_row_of_indices_those_count_that_its_length_says(rows: list[list[int]], data: st.DataObject) -> None:
    table = torch.arange(12, dtype=torch.int32).view(6, 2)
    counts = [data.draw(st.integers(0, 3)) for _ in rows]
    cells = settled(table, Leading(np.array(rows), np.array(counts)))
    named = sorted({slot for row, count in zip(rows, counts, strict=True) for slot in row[:count]})
    assert bytes_of(cells) == expected(table[named])
    assert not cells.widened
