"""What an operator on small tensors costs the host on the simulated device, beside plain CPU torch, in one run.

Each figure is the time to issue an operator and to run it, per operator: as many as `OPS` are issued in a row, and the
device is idle at the end. The kernels are the CPU's, so the difference to plain CPU torch is what the simulation adds.
Time is the process's own CPU time on one thread: nothing here waits, so on an idle machine that is the time that
passes, and other programs do not count.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch

from refimpl import device

OPS = 200
WARM_UP = 3
BAR_US = 40.0
"""What an operator may cost on the simulated device."""

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One operator at one place (`cpu`, or `sim` under a schedule): microseconds per operator over ``n`` repeats."""

    operator: str
    on: str
    us: float
    us_p10: float
    us_p90: float
    n: int


def works(to: str) -> dict[str, Work]:
    """What is measured, on tensors of a device."""
    x, square = torch.ones(4, device=to), torch.ones(8, 8, device=to)
    rows, value = torch.tensor([1], device=to), torch.ones(1, device=to)
    return {
        "add": lambda: x + 1,
        "add_": lambda: x.add_(1),
        "matmul 8x8": lambda: square @ square,
        "copy_": lambda: x.copy_(x),
        "index_put_": lambda: x.index_put_((rows,), value),
        "slice": lambda: square[1:],
        "softmax": lambda: square.softmax(-1),
    }


def measure(repeats: int = 30, ops: int = OPS, progress: Callable[[str], None] = lambda _: None) -> list[Row]:
    """Every operator everywhere, the places alternating so that none has the machine to itself."""
    dev = device.sim()
    places: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "cpu": nullcontext,
        "timed": lambda: dev.schedule(dev.Timed()),
        "adversary": lambda: dev.schedule(dev.Adversary(seed=1)),
    }
    tables = {place: works("cpu" if place == "cpu" else "sim") for place in places}
    samples: dict[tuple[str, str], list[float]] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for repeat in range(WARM_UP + repeats):
            gc.collect()
            progress(f"repeat {repeat + 1} of {WARM_UP + repeats}")
            for place, under in places.items():
                for name, work in tables[place].items():
                    with under():
                        us = _us_per_op(work, ops, dev.synchronize)
                    if repeat >= WARM_UP:
                        samples.setdefault((name, place), []).append(us)
    finally:
        torch.set_num_threads(threads)
    return [_row(name, place, found) for (name, place), found in sorted(samples.items(), key=_by_operator(tables))]


def _us_per_op(work: Work, ops: int, synchronize: Work) -> float:
    for _ in range(ops // 10):
        work()  # a run of a schedule begins with an empty cache of memory
    synchronize()
    begin = time.process_time_ns()
    for _ in range(ops):
        work()
    synchronize()
    return (time.process_time_ns() - begin) / ops / 1000


def _by_operator(tables: dict[str, dict[str, Work]]) -> Callable[[tuple[tuple[str, str], object]], tuple[int, int]]:
    operators, places = list(tables["cpu"]), list(tables)
    return lambda sample: (operators.index(sample[0][0]), places.index(sample[0][1]))


def _row(name: str, place: str, samples: Sequence[float]) -> Row:
    ordered = sorted(samples)
    return Row(
        operator=name,
        on=place,
        us=round(statistics.median(ordered), 2),
        us_p10=round(ordered[len(ordered) // 10], 2),
        us_p90=round(ordered[-1 - len(ordered) // 10], 2),
        n=len(ordered),
    )


def table(rows: Sequence[Row]) -> str:
    """The rows for a terminal: median and, in brackets, p10 and p90."""
    places = list(dict.fromkeys(row.on for row in rows))
    lines = [f"{'µs per operator':20}" + "".join(f"{place:>24}" for place in places)]
    for operator in dict.fromkeys(row.operator for row in rows):
        cells = [row for row in rows if row.operator == operator]
        lines.append(
            f"{operator:20}" + "".join(f"{f'{r.us:.1f} ({r.us_p10:.1f} to {r.us_p90:.1f})':>24}" for r in cells)
        )
    worst = max((row for row in rows if row.on != "cpu"), key=lambda row: row.us)
    verdict = "within" if worst.us <= BAR_US else "over"
    lines.append(f"largest median on sim: {worst.us:.1f} µs ({worst.operator}, {worst.on}), {verdict} {BAR_US:.0f} µs")
    return "\n".join(lines)


def rows_json(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The rows as JSON values."""
    return (asdict(row) for row in rows)
