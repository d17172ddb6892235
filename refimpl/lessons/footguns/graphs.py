"""Footguns with captured graphs: static inputs and outputs are read and written when a replay runs."""

from typing import Any

import torch

from refimpl.lessons.footguns.kit import Footgun, Setting, Values, values
from refimpl.order import Hazard


def captured(at: Setting, lens: torch.Tensor, out: torch.Tensor, read_done: Any = None) -> Any:
    """A graph that lags behind, takes ``lens`` into memory of its own, and ends with ten times that in ``out``.

    Args:
        at: where.
        lens, out: its static input and output.
        read_done: an external event that the graph records once it has read its input.
    """
    side = at.dev.Stream()
    with at.dev.stream(side):
        taken = lens + 0  # CUDA loads a kernel at its first launch
        torch.mul(taken, 10, out=out)
    at.dev.synchronize()
    graph = at.dev.CUDAGraph()
    with at.dev.graph(graph, stream=side):
        taken = lens + 0
        if read_done is not None:
            read_done.record()
        torch.mul(taken, 10, out=out)
    at.dev.synchronize()
    return graph


def input_overwritten(at: Setting, fenced: bool) -> Values:
    """A replay reads its static input when it runs: a refill from another stream must come after that."""
    lens, out = at.full(1, 1, 1, 1), at.full(0, 0, 0, 0)
    graph = captured(at, lens, out)
    with at.dev.stream(at.first):
        at.stall()
        graph.replay()
    if fenced:
        at.second.wait_stream(at.first)
    with at.dev.stream(at.second):
        lens.fill_(2)
    return values(out)


def output_cloned_late(at: Setting, fenced: bool) -> Values:
    """The next replay writes the same static output: the clone of the last result must come before it."""
    lens, out = at.full(1, 1, 1, 1), at.full(0, 0, 0, 0)
    graph = captured(at, lens, out)
    with at.dev.stream(at.first):
        graph.replay()
    at.second.wait_stream(at.first)
    with at.dev.stream(at.second):
        at.stall()
        kept = out.clone()
    if fenced:
        at.first.wait_stream(at.second)
    with at.dev.stream(at.first):
        lens.fill_(2)
        graph.replay()
    return values(kept)


def read_done_too_early(at: Setting, fenced: bool) -> Values:
    """Where the graph itself reads its input, a mark before the replay says too little: the mark belongs inside."""
    read_done = at.dev.Event(external=True)
    lens, out = at.full(1, 1, 1, 1), at.full(0, 0, 0, 0)
    graph = captured(at, lens, out, read_done if fenced else None)
    with at.dev.stream(at.first):
        if not fenced:
            read_done.record()
        at.stall()
        graph.replay()
    at.second.wait_event(read_done)
    with at.dev.stream(at.second):
        lens.fill_(2)
    return values(out)


GRAPHS = (
    Footgun(
        "graph-input", Hazard.WAR, "A graph's input is overwritten before the replay.", input_overwritten, [10] * 4
    ),
    Footgun(
        "graph-output", Hazard.WAR, "A graph's output is cloned after the next replay.", output_cloned_late, [10] * 4
    ),
    Footgun(
        "read-done", Hazard.WAR, "The mark for 'input read' stands before the replay.", read_done_too_early, [10] * 4
    ),
)
