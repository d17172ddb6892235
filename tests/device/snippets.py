"""Stream code that runs on either device under a recording, and what a program orders without its names.

`python -m tests.device.snippets sim` prints the outline of each snippet as JSON, since both devices cannot share a
process.
"""

import json
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import torch

import refimpl
from refimpl import device
from refimpl.program import GraphLaunch, Node, Program, Range, program_to_json

SNIPPETS: dict[str, Callable[[str, Any], None]] = {}


def snippet(body: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    SNIPPETS[body.__name__] = body
    return body


def recorded(name: str, on: str) -> Any:
    """The recording of a snippet; what it makes before it is recorded is its own affair."""
    dev = device.get(on)
    device.sleep_stream(on, 10)
    dev.synchronize()
    with refimpl.record(on) as recording:
        SNIPPETS[name](on, dev)
    return recording


@snippet
def event_handover(on: str, dev: Any) -> None:
    writer, reader, done = dev.Stream(), dev.Stream(), dev.Event()
    x = torch.zeros(4, device=on)
    dev.synchronize()
    with dev.stream(writer):
        x.add_(1)
    done.record(writer)
    reader.wait_event(done)
    with dev.stream(reader):
        y = x * 2
    done.record(reader)
    done.synchronize()
    del y


@snippet
def joined_streams(on: str, dev: Any) -> None:
    side = dev.Stream()
    x = torch.ones(4, 4, device=on)
    side.wait_stream(dev.current_stream())
    with dev.stream(side):
        x[:, 1].fill_(2)
        x[2].mul_(3)
    dev.current_stream().wait_stream(side)
    y = x.sum()
    side.synchronize()
    del y


@snippet
def polled(on: str, dev: Any) -> None:
    x, event = torch.ones(4, device=on), dev.Event()
    x.add_(1)
    event.record()
    while not event.query():
        pass
    while not dev.current_stream().query():
        pass


@snippet
def copies(on: str, dev: Any) -> None:
    pinned = device.pinned(4, torch.float32, on)
    x = torch.ones(4, device=on)
    x.copy_(pinned, non_blocking=True)
    pinned.copy_(x, non_blocking=True)
    done = dev.Event()
    done.record()
    done.synchronize()
    pinned.tolist()
    pinned.fill_(3)
    pageable = torch.ones(4)
    x.copy_(pageable)
    y = x.to("cpu", non_blocking=True)
    dev.current_stream().synchronize()
    y.tolist()
    z = x.cpu()
    z.add_(1)
    w = z.to(on, non_blocking=True)
    w.copy_(x)
    x.copy_(w[:1])


@snippet
def values_on_the_host(on: str, dev: Any) -> None:
    x = torch.tensor([1, 2, 3], device=on)
    x.sum().item()
    x.tolist()
    bool((x > 1).any())
    x[x > 1]
    x.nonzero()


@snippet
def factories(on: str, dev: Any) -> None:
    torch.zeros(4, device=on)
    torch.full((4,), 7, device=on)
    x = torch.arange(4, device=on)
    torch.empty(4, device=on)
    torch.zeros_like(x)
    x.clone()
    x.to(torch.float32)
    torch.cat([x, x])
    torch.topk(x, 2)


@snippet
def regions_and_work(on: str, dev: Any) -> None:
    x = torch.zeros(8, device=on)
    with device.cost(on, "step", us=100):
        y = x + 1
        y.mul_(2)
        x.copy_(y)
    device.host_work(on, 50)
    device.sleep_stream(on, 10)
    x.add_(1)


@snippet
def branching_graph(on: str, dev: Any) -> None:
    x, graph = torch.ones(4, device=on), dev.CUDAGraph()
    with dev.graph(graph):
        side = dev.Stream()
        while side == dev.current_stream():
            # Streams are handed out round robin: this one was the capture's, which would leave nothing to branch.
            side = dev.Stream()
        x.add_(1)
        side.wait_stream(dev.current_stream())
        with dev.stream(side):
            y = x * 2
        z = x * 3
        dev.current_stream().wait_stream(side)
        out = y + z
    for _ in range(2):
        x.fill_(1)
        graph.replay()
        out.clone()


@snippet
def event_in_a_graph(on: str, dev: Any) -> None:
    x, reader = torch.zeros(4, device=on), dev.Stream()
    event, graph = dev.Event(external=True), dev.CUDAGraph()
    with dev.graph(graph):
        x.add_(1)
        event.record()
        x.mul_(2)
    graph.replay()
    reader.wait_event(event)
    with dev.stream(reader):
        x.clone()
    dev.synchronize()


@snippet
def metadata_in_a_graph(on: str, dev: Any) -> None:
    """Each replay takes rows of a table and says so; what is written behind the mark is in the way of no replay."""
    table, page = torch.zeros(16, 4, device=on), torch.zeros(2, 4, device=on)
    rows = torch.zeros(2, dtype=torch.int64, device=on)
    schedule, read_done, graph = dev.Stream(), dev.Event(external=True), dev.CUDAGraph()
    with dev.graph(graph):
        page.copy_(table[rows])
        read_done.record()
        page.mul_(2)
    for first in (1, 5):
        rows.fill_(first)
        graph.replay()
        schedule.wait_event(read_done)
        with dev.stream(schedule):
            table[first].fill_(first)
    dev.synchronize()


@snippet
def indexed_rows(on: str, dev: Any) -> None:
    table = torch.zeros(16, 8, device=on)
    rows = torch.tensor([3, 5, 4, 12], device=on)
    cols = torch.tensor([1, 1, 2, 7], device=on)
    table[rows, cols] = torch.ones(4, device=on)
    table[rows] = torch.ones(4, 8, device=on)
    table[rows]
    table[:, cols]
    table.index_select(0, rows)
    table.index_copy_(0, rows, torch.ones(4, 8, device=on))
    table.index_add_(1, cols[2:], torch.ones(16, 2, device=on))
    table.index_fill_(0, rows, 2.0)
    table.gather(1, cols.view(4, 1))
    table.scatter_(0, rows.view(1, 4), 5.0)
    torch.nn.functional.embedding(rows, table)
    table.index_put_((rows, cols), torch.ones(4, device=on), accumulate=True)
    mask = rows > 4
    table[:4][mask]


@snippet
def stated_rows(on: str, dev: Any) -> None:
    table, out = torch.zeros(16, 8, device=on), torch.zeros(4, 8, device=on)
    rows = torch.tensor([0, 2, 4, 9], device=on)
    with refimpl.touches(reads=[(table, rows), rows], writes=[out], launch="gather_rows"):
        pass
    with refimpl.touches(writes=[(table, rows, slice(0, 2))]):
        table.mul_(1.0)


@snippet
def indexed_graph(on: str, dev: Any) -> None:
    table, rows = torch.zeros(16, 4, device=on), torch.zeros(2, dtype=torch.int64, device=on)
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        table.index_fill_(0, rows, 1.0)
        out = table[rows]
    for first in (0, 7):
        rows.copy_(torch.tensor([first, first + 3], device=on))
        graph.replay()
    del out


@snippet
def block_handed_on(on: str, dev: Any) -> None:
    side = dev.Stream()
    for lent in (False, True):
        x = torch.zeros(3 << 20, device=on)
        side.wait_stream(dev.current_stream())
        with dev.stream(side):
            device.sleep_stream(on, 20_000)
            x.add_(1)
        if lent:
            x.record_stream(side)
        del x
        y = torch.ones(3 << 20, device=on)
        dev.synchronize()
        del y


def outline(program: Program) -> list[Any]:
    """What a program orders, with streams, events and buffers numbered by first use, and without times and names."""
    numbers: dict[tuple[str, str], int] = {}
    fresh = count(1)

    def number(kind: str, name: str) -> int:
        return numbers.setdefault((kind, name), next(fresh))

    def ranges(found: tuple[Range, ...]) -> list[Any]:
        lines = []
        for r in found:
            buffer = program.buffers[r.buf]
            lines.append([number("buffer", r.buf), buffer.mem.value, buffer.bytes, *r[1:]])
        return sorted(lines)

    def node(found: Node, at: dict[str, int]) -> list[Any]:
        event = found.record or found.wait
        what = "record" if found.record else "wait" if found.wait else "kernel"
        return [
            what,
            None if event is None else number("event", event),
            ranges(found.reads),
            ranges(found.writes),
            sorted(at[dep] for dep in found.deps),
        ]

    lines: list[Any] = []
    for op in program.ops:
        line: list[Any] = [op.op, op.site]
        for field in ("stream", "on", "event", "block"):
            name = getattr(op, field, None)
            line.append(None if name is None else number("stream" if field == "on" else field, name))
        if (buf := getattr(op, "buf", None)) is not None:
            line.append(number("buffer", buf))
        if isinstance(op, GraphLaunch):
            at = {found.name: i for i, found in enumerate(op.nodes)}
            line.append([node(found, at) for found in op.nodes])
        else:
            for field in ("reads", "writes"):
                line.append(ranges(getattr(op, field, ())))
            line += [ranges((getattr(op, field),)) for field in ("src", "dst", "range") if hasattr(op, field)]
            if op.op == "memcpy":
                line.append(op.kind.value)  # type: ignore[attr-defined]
        lines.append(line)
    return lines


if __name__ == "__main__":
    where = sys.argv[1]
    if "--json" in sys.argv:
        print(json.dumps({name: program_to_json(recorded(name, where).program()) for name in SNIPPETS}, indent=1))
    else:
        print(json.dumps({name: outline(recorded(name, where).program()) for name in SNIPPETS}))
