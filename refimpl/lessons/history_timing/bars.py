"""What the timings are held to, and whether a run's figures reach it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refimpl.lessons.bench_engine.bars import Bar
from refimpl.lessons.history_timing.cases import BARRIERS, PARTS, SELF_FENCE

Row = Mapping[str, Any]
PAIRS = "_pairs"
"""Ends the key of a part's rows that set two cases against each other."""
LEAST_BLOCKED = 0.9
"""Of all standing still, what the self-fence moves before the launch."""
MOST_BLOCKED_US = 20.0
MOST_OVER_COARSE = 1.005
LEAST_MEASURABLE = 0.001
"""A difference that a run of this length cannot tell from none."""
MARGIN = 0.03
"""How far a step may be beyond its bounds, whose parts are measured at other moments."""


def bars(data: Mapping[str, Sequence[Row]]) -> list[Bar]:
    """Every bar for which the run has figures.

    Args:
        data: rows by part, and the pairs.
    """
    return [
        *(bar for row in data.get("self_fence", ()) for bar in _before_the_launch(row)),
        *map(_no_slower_than_coarse, data.get("read_done" + PAIRS, ())),
        *_chain_costs_nothing(data.get("chain" + PAIRS, ())),
        *(bar for part, rows in data.items() if part in PARTS for bar in _within_bounds(part, rows)),
    ]


def _before_the_launch(row: Row) -> Iterator[Bar]:
    if row["needs_cpu_seq_lens"]:
        return
    name = f"{row['model']}, batch {row['batch']}, {row['preset']}: host blocked before the launch, µs"
    if row["preset"] == SELF_FENCE:
        gap_us = 1000 * max(0.0, row["step_ms"] - row["host_ms"])
        yield Bar.least(name, row["before_us"], LEAST_BLOCKED * gap_us)
    elif row["preset"] in BARRIERS:
        yield Bar.most(name, row["before_p90_us"], MOST_BLOCKED_US)


def _no_slower_than_coarse(row: Row) -> Bar:
    return Bar.most(f"{_named(row)}: step under read_done over coarse", row["ratio"], MOST_OVER_COARSE)


def _chain_costs_nothing(pairs: Sequence[Row]) -> Iterator[Bar]:
    """The difference between a chained and a plain record, beside that of two engines that are the same."""
    found = {(_named(row), row["again"]): row for row in pairs}
    for (name, again), row in found.items():
        same = found.get((name, True))
        if not again and same is not None:
            spread = max(abs(same["ratio_p10"] - 1), abs(same["ratio_p90"] - 1))
            most = max(spread, LEAST_MEASURABLE)
            yield Bar.most(f"{name}: chained over plain record, off 1", abs(row["ratio"] - 1), most)


def _within_bounds(part: str, rows: Sequence[Row]) -> Iterator[Bar]:
    """The step that is farthest beyond either bound, for each set of weights."""
    for model in dict.fromkeys(row["model"] for row in rows):
        mine = [row for row in rows if row["model"] == model]
        least, most = min(row["over_lower"] for row in mine), max(row["over_upper"] for row in mine)
        yield Bar.least(f"{part}: {model}: least step over the longest of its parts", least, 1 - MARGIN)
        yield Bar.most(f"{part}: {model}: longest step over the sum of its parts", most, 1 + MARGIN)


def _named(row: Row) -> str:
    words = [row["model"], row["draft"], f"batch {row['batch']}"]
    words += [f"{row['added_host_ms']:g} ms of host work"] if row["added_host_ms"] else []
    words += [f"{row['added_schedule_ms']:g} ms on schedule"] if row["added_schedule_ms"] else []
    return ", ".join([*words, *(["an item()"] if row["item"] else [])])
