"""Which figures of a benchmark of the engine did not reach their bar, and what the same run says about why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refimpl.lessons.bench_engine.bars import Bar, bars
from refimpl.lessons.bench_engine.engine_loops import engine_name
from refimpl.lessons.bench_engine.subject import PLAIN

Row = Mapping[str, Any]
Data = Mapping[str, Any]
TOGETHER = ("batched", "alone")
"""Parts whose bars compare rows with each other; those of other parts are about one row each."""

OURS = tuple(engine_name(draft) for draft in (PLAIN, "dflash"))


@dataclass(frozen=True)
class Shortfall:
    """A bar that was not reached.

    Args:
        bar: the figure beside what it had to reach.
        why: one sentence, with the figures of its row.
    """

    bar: Bar
    why: str


def shortfalls(data: Data) -> list[Shortfall]:
    """All of them, in the order of the run's bars.

    Args:
        data: rows by part; a part may be missing.
    """
    return [*_of_rows(data), *_of_comparisons(data)]


def _of_rows(data: Data) -> Iterator[Shortfall]:
    for part in ("plain_steps", "overlapped_steps", "acceptance"):
        for row in _beside_the_fastest(data.get(part, ())):
            for bar in bars({part: [row]}):
                if not bar.reached:
                    field = next(name for name in WHY if row.get(name) == bar.measured)
                    yield Shortfall(bar, WHY[field](row))


def _beside_the_fastest(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows; those that have a host reference also have the smallest of them all, under `fastest_us`."""
    measured = [row["reference_us"] for row in rows if "reference_us" in row]
    for row in rows:
        yield {**row, "fastest_us": min(measured)} if "reference_us" in row else row


def _of_comparisons(data: Data) -> Iterator[Shortfall]:
    for part in TOGETHER:
        rows: Sequence[Row] = data.get(part, ())
        for model, batch in dict.fromkeys((row["model"], row["batch"]) for row in rows):
            group = [row for row in rows if (row["model"], row["batch"]) == (model, batch)]
            for bar in bars({part: group}):
                if not bar.reached:
                    compared = (row for row in group if row["loop"] in OURS or bar.what.endswith(row["loop"]))
                    yield Shortfall(bar, " ".join(map(_step, compared)))


def _step(row: Row) -> str:
    tokens = f" and brings {row['accept_len']:.2f} tokens" if row["accept_len"] != 1 else ""
    return f"A step of {row['loop']} takes {row['step_ms']:.2f} ms{tokens}."


def _over_products(row: Row) -> str:
    return (
        f"The graph takes {row['bare_ms']:.3f} ms, its matrix products alone {row['products_ms']:.3f} ms: attention, "
        "norms, the choice of the token and the gaps between kernels are the rest."
    )


def _pace(row: Row) -> str:
    host, forward = f"{row['host_ms']:.3f} ms", f"{row['forward_ms']:.3f} ms"
    if row["host_ms"] > row["forward_ms"]:
        return f"The host needs {host} a step and the forward stream {forward}, so the host sets the pace."
    return (
        f"The step takes {row['step_ms']:.3f} ms, though the host needs {host} and the forward stream {forward}: the "
        "two do not overlap completely."
    )


def _idle(row: Row) -> str:
    idle_ms = row["idle_share"] * row["device_step_ms"]
    return f"The forward stream has nothing to do for {idle_ms:.3f} ms a step. {_pace(row)}"


def _host(row: Row) -> str:
    hidden = row["host_ms"] <= row["forward_ms"]
    words = "It is hidden behind" if hidden else "It is longer than"
    forward = f"{words} the forward's {row['forward_ms']:.3f} ms."
    if "reference_us" not in row:
        return f"The scheduler is Python, and so is each of its calls into torch. {forward}"
    calls, slower = sum(row["calls"].values()), row["reference_us"] / row["fastest_us"]
    return (
        f"The host makes {calls:.0f} calls a step, from Python. The reference calls cost {row['reference_us']:.1f} µs "
        f"beside this row, {slower:.2f} times those of the fastest. {forward}"
    )


def _accept_len(row: Row) -> str:
    rejected = row["histogram"][0] / row["verifies"]
    return f"In {rejected:.0%} of {row['verifies']:,} verifies the first draft is rejected already."


def _unique(row: Row) -> str:
    return "The text repeats itself: a small target that always takes the likeliest token soon runs in circles."


WHY: dict[str, Callable[[Row], str]] = {
    "over_products": _over_products,
    "over_forward": _pace,
    "over_bound": _pace,
    "idle_share": _idle,
    "host_ms": _host,
    "accept_len": _accept_len,
    "unique_8grams": _unique,
}
"""By the field that a bar is about."""
