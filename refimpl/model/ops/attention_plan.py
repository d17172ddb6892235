"""How paged attention is cut into programs: from shapes alone, so that a captured graph stays right as lengths grow."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_ROWS = 16
"""A tensor core's tile has no fewer rows."""
MOST_ROWS = 64
FEW_ENTRIES = 32
"""Entries at a time for the smallest blocks of rows, and in float32."""
MANY_ENTRIES = 64
"""Entries at a time for larger ones."""
MOST_SPLITS = 16
"""More help only contexts longer than those of this book, and the second kernel reads every one."""
PROGRAMS_OF_FEW_ROWS = 2
"""Programs a multiprocessor that are asked for before entries are split no further, of the smallest blocks."""
PROGRAMS_OF_MANY_ROWS = 1
"""Of larger blocks, which take more of it."""


@dataclass(frozen=True)
class Plan:
    """The cut of one call.

    Args:
        block_m: Rows a program takes, each query head of a token a row of its own.
        block_n: Entries a program reads at a time.
        splits: Programs that share the entries of one request; a power of two.
        warps: Warps a program.
        stages: Loads in flight a program.
    """

    block_m: int
    block_n: int
    splits: int
    warps: int
    stages: int


def plan_of(
    requests: int, kv_heads: int, rows: int, width: int, head_dim: int, element_bytes: int, multiprocessors: int
) -> Plan:
    """The cut for a call of these shapes.

    Args:
        requests: Of the batch, padding included.
        kv_heads: Key heads.
        rows: The most rows of one request and key head: tokens times query heads a key head.
        width: The most entries a request can have.
        head_dim: Elements a head.
        element_bytes: 2 or 4.
        multiprocessors: Of the device.
    Example:
        >>> plan_of(1, 8, 4, 4096, 128, 2, 132).splits, plan_of(64, 8, 4, 4096, 128, 2, 132).splits
        (16, 1)
    """
    block_m = min(max(_power_of_two(rows), LEAST_ROWS), MOST_ROWS if element_bytes == 2 else MOST_ROWS // 2)
    few = block_m == LEAST_ROWS
    block_n = FEW_ENTRIES if few or element_bytes == 4 else MANY_ENTRIES
    room = multiprocessors * (PROGRAMS_OF_FEW_ROWS if few else PROGRAMS_OF_MANY_ROWS)
    programs = requests * kv_heads * -(-rows // block_m)
    useful = -(-width // block_n)
    splits = min(_power_of_two_within(max(room // programs, 1)), _power_of_two(useful), MOST_SPLITS)
    return Plan(block_m, block_n, splits, warps=4, stages=3 if element_bytes == 2 else 2)


def _power_of_two(n: int) -> int:
    """The least that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _power_of_two_within(n: int) -> int:
    """The greatest that is at most `n`."""
    return 1 << (n.bit_length() - 1)
