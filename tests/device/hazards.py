"""Each classic hazard as PyTorch code for either device, and its fix."""

from collections.abc import Callable
from typing import Any

import torch

from refimpl import device
from refimpl.order import Hazard

Body = Callable[[str, Any, bool], None]
BODIES: dict[str, tuple[Body, Hazard]] = {}


def hazard(kind: Hazard) -> Callable[[Body], Body]:
    def note(body: Body) -> Body:
        BODIES[body.__name__] = (body, kind)
        return body

    return note


@hazard(Hazard.RAW)
def read_too_early(on: str, dev: Any, fixed: bool) -> None:
    writer, reader, x = dev.Stream(), dev.Stream(), torch.zeros(4, device=on)
    dev.synchronize()
    with dev.stream(writer):
        x.add_(1)
    if fixed:
        reader.wait_stream(writer)
    with dev.stream(reader):
        x.clone()


@hazard(Hazard.WAR)
def overwritten_too_early(on: str, dev: Any, fixed: bool) -> None:
    writer, reader, x = dev.Stream(), dev.Stream(), torch.zeros(4, device=on)
    dev.synchronize()
    with dev.stream(reader):
        x.clone()
        read = dev.current_stream().record_event()
    with dev.stream(writer):
        if fixed:
            writer.wait_event(read)
        x.fill_(1)


@hazard(Hazard.WAW)
def two_writers(on: str, dev: Any, fixed: bool) -> None:
    x, side = torch.zeros(4, device=on), dev.Stream()
    with dev.stream(side):
        if fixed:
            side.wait_stream(dev.default_stream())
        x.fill_(1)


@hazard(Hazard.RAW)
def event_recorded_again(on: str, dev: Any, fixed: bool) -> None:
    writer, other, reader, event = dev.Stream(), dev.Stream(), dev.Stream(), dev.Event()
    x = torch.zeros(4, device=on)
    dev.synchronize()
    with dev.stream(writer):
        x.add_(1)
    event.record(writer)
    if not fixed:
        event.record(other)
    reader.wait_event(event)
    with dev.stream(reader):
        x.clone()


@hazard(Hazard.RAW)
def wait_before_the_record(on: str, dev: Any, fixed: bool) -> None:
    writer, reader, event, x = dev.Stream(), dev.Stream(), dev.Event(), torch.zeros(4, device=on)
    dev.synchronize()
    if not fixed:
        reader.wait_event(event)
    with dev.stream(writer):
        x.add_(1)
    event.record(writer)
    if fixed:
        reader.wait_event(event)
    with dev.stream(reader):
        x.clone()


@hazard(Hazard.WAR)
def pinned_source_reused(on: str, dev: Any, fixed: bool) -> None:
    source, x = device.pinned(4, torch.float32, on), torch.zeros(4, device=on)
    dev.synchronize()
    x.copy_(source, non_blocking=True)
    if fixed:
        dev.current_stream().synchronize()
    source.fill_(3)


@hazard(Hazard.RAW)
def host_read_too_early(on: str, dev: Any, fixed: bool) -> None:
    x = torch.ones(4, device=on)
    dev.synchronize()
    target = x.to("cpu", non_blocking=True)
    if fixed:
        dev.synchronize()
    target.tolist()


@hazard(Hazard.LIFETIME)
def missing_record_stream(on: str, dev: Any, fixed: bool) -> None:
    side = dev.Stream()
    x = torch.zeros(3 << 20, device=on)
    side.wait_stream(dev.current_stream())
    with dev.stream(side):
        x.sum()
    if fixed:
        x.record_stream(side)
    del x
    torch.ones(3 << 20, device=on)


@hazard(Hazard.LIFETIME)
def missing_record_stream_seen_in_a_region(on: str, dev: Any, fixed: bool) -> None:
    side = dev.Stream()
    x = torch.zeros(3 << 20, device=on)
    side.wait_stream(dev.current_stream())
    with dev.stream(side):
        x.sum()
    if fixed:
        x.record_stream(side)
    del x
    with dev.cost("prepare", us=10):
        torch.ones(3 << 20, device=on).sum()


@hazard(Hazard.WAR)
def graph_input_overwritten(on: str, dev: Any, fixed: bool) -> None:
    static, graph, side = torch.zeros(4, device=on), dev.CUDAGraph(), dev.Stream()
    with dev.graph(graph):
        static * 2
    graph.replay()
    if fixed:
        side.wait_stream(dev.current_stream())
    with dev.stream(side):
        static.fill_(1)


@hazard(Hazard.WAR)
def static_output_cloned_late(on: str, dev: Any, fixed: bool) -> None:
    static, graph, side = torch.zeros(4, device=on), dev.CUDAGraph(), dev.Stream()
    with dev.graph(graph):
        out = static * 2
    graph.replay()
    side.wait_stream(dev.current_stream())
    with dev.stream(side):
        out.clone()
    if fixed:
        dev.current_stream().wait_stream(side)
    graph.replay()


@hazard(Hazard.RAW)
def read_before_the_event_in_a_graph(on: str, dev: Any, fixed: bool) -> None:
    x, reader, graph = torch.zeros(4, device=on), dev.Stream(), dev.CUDAGraph()
    early, late = dev.Event(external=True), dev.Event(external=True)
    with dev.graph(graph):
        early.record()
        x.add_(1)
        late.record()
    graph.replay()
    reader.wait_event(late if fixed else early)
    with dev.stream(reader):
        x.clone()
