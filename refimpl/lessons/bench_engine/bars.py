"""What the engine is held to, and whether a run's figures reach it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refimpl.lessons.bench_engine import peers
from refimpl.lessons.bench_engine.drive import Loop
from refimpl.lessons.bench_engine.engine_loops import engine_name
from refimpl.lessons.bench_engine.subject import PLAIN

Rows = Sequence[Mapping[str, Any]]
LARGE = "8b"
SMALL = "small"
LARGE_ROWS = 16
MOST_OVER_FORWARD = 1.01
MOST_IDLE = 0.01
MOST_OVER_PRODUCTS = 1.15
MOST_OVER_BOUND = 1.05
MOST_HOST_MS = 0.4
LEAST_OVER_PEER = 5.0
LEAST_OVER_PLAIN = 2.5
LEAST_ACCEPT_LEN = 4.0
LEAST_ACCEPT_LEN_SAMPLED = 2.0
LEAST_UNIQUE_8GRAMS = 0.5


@dataclass(frozen=True)
class Bar:
    """One figure beside what it has to reach.

    Args:
        what: the figure, in words.
        measured: what it came to.
        bar: what it has to reach.
        at_most: True if it may not be larger, False if it may not be smaller.
        reached: whether it does.
    """

    what: str
    measured: float
    bar: float
    at_most: bool
    reached: bool

    @classmethod
    def most(cls, what: str, measured: float, bar: float) -> "Bar":
        """A figure that may not be larger than `bar`."""
        return cls(what, measured, bar, True, measured <= bar)

    @classmethod
    def least(cls, what: str, measured: float, bar: float) -> "Bar":
        """A figure that may not be smaller than `bar`."""
        return cls(what, measured, bar, False, measured >= bar)


def bars(data: Mapping[str, Rows]) -> list[Bar]:
    """Every bar for which the run has figures.

    Args:
        data: rows by part, as the report has them.
    """
    return [
        *_plain_steps(data.get("plain_steps", ())),
        *_overlapped(data.get("overlapped_steps", ())),
        *_beside_peers(data.get("batched", ())),
        *_alone(data.get("alone", ())),
        *_acceptance(data.get("acceptance", ())),
    ]


def _plain_steps(rows: Rows) -> Iterator[Bar]:
    for row in rows:
        if row["model"] == LARGE:
            yield Bar.most(
                f"{LARGE}, batch {row['batch']}: plain step over the matrix products alone",
                row["over_products"],
                MOST_OVER_PRODUCTS,
            )


def _overlapped(rows: Rows) -> Iterator[Bar]:
    for row in rows:
        name = f"{row['model']}, {row['draft']}, batch {row['batch']}"
        if row["model"] == LARGE and row["batch"] >= LARGE_ROWS:
            yield Bar.most(f"{name}: overlapped step over its forward work", row["over_forward"], MOST_OVER_FORWARD)
            yield Bar.most(f"{name}: share of a step in which the GPU idles", row["idle_share"], MOST_IDLE)
        if row["model"] == SMALL:
            yield Bar.most(f"{name}: step over the longer of host and forward", row["over_bound"], MOST_OVER_BOUND)
            if row["draft"] != PLAIN and row["batch"] == LARGE_ROWS:
                yield Bar.most(f"{name}: host work a step, ms", row["host_ms"], MOST_HOST_MS)


def _beside_peers(rows: Rows) -> Iterator[Bar]:
    ours = engine_name(PLAIN, Loop.OVERLAP)
    for model, batch in dict.fromkeys((row["model"], row["batch"]) for row in rows):
        rate = {row["loop"]: row["tokens_per_s"] for row in rows if row["model"] == model and row["batch"] == batch}
        for peer in (peers.BATCH_ITS_OWN, peers.BATCH_FITTED):
            if ours in rate and peer in rate:
                yield Bar.least(f"{model}, batch {batch}: plain over {peer}", rate[ours] / rate[peer], LEAST_OVER_PEER)


def _alone(rows: Rows) -> Iterator[Bar]:
    rate = {row["loop"]: row["tokens_per_s"] for row in rows if row["model"] == LARGE}
    plain, dflash = engine_name(PLAIN), engine_name("dflash")
    if plain in rate and dflash in rate:
        yield Bar.least(f"{LARGE}, batch 1: dflash over plain", rate[dflash] / rate[plain], LEAST_OVER_PLAIN)


def _acceptance(rows: Rows) -> Iterator[Bar]:
    for row in _of_code(rows):
        name = f"{row['model']}, {row['draft']}, code, T={row['temperature']:g}"
        if row["temperature"] == 0 and row["draft"] in ("eagle", "dflash"):
            yield Bar.least(f"{name}: tokens a verify", row["accept_len"], LEAST_ACCEPT_LEN)
            yield Bar.least(f"{name}: unique 8-grams", row["unique_8grams"], LEAST_UNIQUE_8GRAMS)
        if row["temperature"] == 1 and row["draft"] in ("eagle", "dflash"):
            yield Bar.least(f"{name}: tokens a verify", row["accept_len"], LEAST_ACCEPT_LEN_SAMPLED)


def _of_code(rows: Rows) -> Iterable[Mapping[str, Any]]:
    return (row for row in rows if row["model"] == SMALL and row["domain"] == "code")
