"""What each call costs the host, in a rotation of all of them.

| figure | the call |
|---|---|
| clock_us | reading the host's clock |
| region_us | entering and leaving a named region |
| view_us | a view of a tensor |
| stream_us | half of entering and leaving `with dev.stream(…)`: asking for the current stream costs about as much |
| first_record_us | making an event, and recording it for the first time |
| record_us, wait_us | recording an event again; letting a stream wait for one |
| wait_stream_us | `wait_stream`: an event made, recorded and waited for |
| synchronize_us, query_us | of an event that has executed |
| graph_N_host_us | launching a graph of N small kernels in a row |

Operators are launches of small kernels and copies through PyTorch, by the names they have on the simulated device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from refimpl.device.calibration.clocks import Call, in_rotation
from refimpl.device.calibration.values import Sample
from refimpl.device.host import cost, host_clock_us
from refimpl.device.select import get

PAIRED = ("stream_us",)


def host_costs(device: str, rounds: int, graph_nodes: Sequence[int]) -> tuple[dict[str, Sample], dict[str, Sample]]:
    """The figures of the table, and the operators'."""
    dev = get(device)
    plain = {**_marks(device, dev), **_names(device, dev)}
    plain |= {f"graph_{nodes}_host_us": graph_of(device, nodes).replay for nodes in graph_nodes}
    operators = _operators(device, dev)
    times = in_rotation(dev, {**plain, **operators}, rounds)
    halved = {name: [us / 2 for us in times[name]] if name in PAIRED else times[name] for name in times}
    samples = {name: Sample.of(values, "us") for name, values in halved.items()}
    return {name: samples[name] for name in plain}, {name: samples[name] for name in operators}


def _marks(device: str, dev: Any) -> dict[str, Call]:
    one, two, done, again = dev.Stream(), dev.Stream(), dev.Event(), dev.Event()
    done.record(one)
    return {
        "first_record_us": lambda: dev.Event().record(one),
        "record_us": lambda: again.record(one),
        "wait_us": lambda: two.wait_event(done),
        "wait_stream_us": lambda: two.wait_stream(one),
        "synchronize_us": done.synchronize,
        "query_us": done.query,
    }


def _names(device: str, dev: Any) -> dict[str, Call]:
    rows, one = torch.randint(9, (64, 16), device=device), dev.Stream()

    def region() -> None:
        with cost(device, "step"):
            pass

    def stream() -> None:
        with dev.stream(one):
            pass

    return {
        "clock_us": lambda: host_clock_us(device),
        "region_us": region,
        "view_us": lambda: rows[3],
        "stream_us": stream,
    }


def _operators(device: str, dev: Any) -> dict[str, Call]:
    rows, at = torch.randint(9, (64, 16), device=device), torch.randint(64, (16,), device=device)
    row, other = rows[3], torch.randint(9, (16,), device=device)
    values, pinned = torch.randn(16, 16, device=device), dev.pinned(16, torch.int64)
    pinned.copy_(other)
    return {
        "add_": lambda: row.add_(1),
        "fill_": lambda: row.fill_(3),
        "copy D2D": lambda: row.copy_(other),
        "copy H2D": lambda: row.copy_(pinned, non_blocking=True),
        "copy D2H": lambda: pinned.copy_(row, non_blocking=True),
        "mul": lambda: values * values,
        "mm": lambda: values @ values,
        "index": lambda: rows[at],
        "index_put_": lambda: rows.__setitem__(at, other),
        "argmax": lambda: values.argmax(dim=-1),
    }


def graph_of(device: str, nodes: int) -> Any:
    """A captured graph of `nodes` small kernels in a row."""
    dev = get(device)
    x, graph = torch.randint(9, (16,), device=device), dev.CUDAGraph()
    with dev.graph(graph):
        for _ in range(nodes):
            x.add_(1)
    graph.replay()
    return graph
