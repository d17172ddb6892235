"""Byte ranges against sets of bytes, and ranges too large for any set."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.program import Range, contains, normalized, overlap

SMALL = settings(deadline=None, derandomize=True, database=None)

small = st.builds(
    Range,
    buf=st.just("x"),
    off=st.integers(0, 30),
    len=st.integers(1, 9),
    rows=st.integers(1, 6),
    stride=st.integers(0, 13),
)


def bytes_of(r: Range) -> set[int]:
    return {r.off + row * r.stride + k for row in range(r.rows) for k in range(r.len)}


def scaled(r: Range, factor: int) -> Range:
    return Range(r.buf, r.off * factor, r.len * factor, r.rows, r.stride * factor)


def calls_of(f: Callable[[], Any]) -> int:
    """How many Python functions run, as a cost that no busy machine changes."""
    count = 0

    def seen(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        f()
    finally:
        sys.setprofile(None)
    return count


@settings(SMALL, max_examples=1000)
@given(small, small)
def test_overlap_is_the_first_of_the_common_bytes(a: Range, b: Range) -> None:
    common, found = bytes_of(a) & bytes_of(b), overlap(a, b)
    if not common:
        assert found is None
    else:
        assert found is not None
        assert found.rows == 1
        assert found.off == min(common)
        assert bytes_of(found) <= common


@settings(SMALL, max_examples=300)
@given(small, small)
def test_overlap_does_not_depend_on_the_order_of_its_ranges(a: Range, b: Range) -> None:
    one, other = overlap(a, b), overlap(b, a)
    assert (one and one.off) == (other and other.off)


@settings(SMALL, max_examples=1000)
@given(small, small)
def test_contains_is_true_only_when_every_byte_is_inside(outer: Range, inner: Range) -> None:
    if contains(outer, inner):
        assert bytes_of(inner) <= bytes_of(outer)


@settings(SMALL, max_examples=500)
@given(small, small)
def test_contains_is_exact_for_a_contiguous_outer_range(outer: Range, inner: Range) -> None:
    outer = outer._replace(rows=1)
    assert contains(outer, inner) == (bytes_of(inner) <= bytes_of(outer))


@SMALL
@given(small)
def test_a_range_contains_itself_and_its_normal_form_has_the_same_bytes(r: Range) -> None:
    assert contains(r, r)
    assert bytes_of(normalized(r)) == bytes_of(r)
    assert r.end == max(bytes_of(r)) + 1


@SMALL
@given(small, small)
def test_ranges_of_different_buffers_share_nothing(a: Range, b: Range) -> None:
    assert overlap(a, b._replace(buf="y")) is None
    assert not contains(a, a._replace(buf="y"))


@settings(SMALL, max_examples=300)
@given(small, small, st.sampled_from([3, 10**6, 10**12]))
def test_scaling_every_length_changes_neither_the_answer_nor_the_cost(a: Range, b: Range, factor: int) -> None:
    one, many = overlap(a, b), overlap(scaled(a, factor), scaled(b, factor))
    assert many == (one and scaled(one, factor))
    assert contains(scaled(a, factor), scaled(b, factor)) == contains(a, b)
    assert calls_of(lambda: overlap(scaled(a, factor), scaled(b, factor))) <= 40


BIG = 10**12


@pytest.mark.parametrize(
    ("a", "b", "first"),
    [
        (Range("x", 0, BIG), Range("x", BIG - 1, BIG), BIG - 1),
        (Range("x", 0, BIG), Range("x", BIG, BIG), None),
        # Two columns of one table of 10^12 rows; a column and a row; a column and the last byte before its next run.
        (Range("x", 0, 4, BIG, 16), Range("x", 4, 4, BIG, 16), None),
        (Range("x", 4, 4, BIG, 16), Range("x", 16 * (BIG - 1), 16), 16 * (BIG - 1) + 4),
        (Range("x", 0, 4, BIG, 16), Range("x", 16 * 7 + 4, 12), None),
        # Strides without a common divisor meet; with one they may never: 6i = 4j + 1 has no solution.
        (Range("x", 0, 1, BIG, 6), Range("x", 1, 1, BIG, 4), None),
        (Range("x", 0, 1, BIG, 7), Range("x", 3, 1, BIG, 5), 28),
        # 3i = 1 modulo 10^6 has its first solution at i = 666667, since 3 * 666667 = 2000001.
        (Range("x", 0, 1, BIG, 10**6 + 3), Range("x", 1, 1, BIG, 10**6), 666667 * (10**6 + 3)),
        # The only meeting lies after the last row.
        (Range("x", 0, 1, 666667, 10**6 + 3), Range("x", 1, 1, BIG, 10**6), None),
    ],
)
def test_ranges_of_10_to_the_12_are_compared_by_arithmetic(a: Range, b: Range, first: int | None) -> None:
    found = overlap(a, b)
    assert (found and found.off) == first
    assert calls_of(lambda: overlap(a, b)) <= 60
    assert (overlap(b, a) is None) == (first is None)


def test_a_column_is_not_the_table() -> None:
    table, column = Range("t", 0, 64), Range("t", 4, 4, 4, 16)
    assert contains(table, column)
    assert not contains(column, table)
    assert overlap(column, Range("t", 0, 4, 4, 16)) is None
