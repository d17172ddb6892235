"""What ops cost the device.

| figure | what it is |
|---|---|
| kernel_us | one of many small kernels back to back in a stream |
| cross_us | by how much a kernel is later that waits for one of another stream |
| graph_N_device_us | a graph of N small kernels in a row, back to back with itself |
| wake_us | from an event's execution, as a host that asks all the time sees it, to the return of its synchronize |
| start_us | from a launch's return to the kernel's start on an idle device |
| h2d_us, d2h_us | one of many copies of 8 bytes, pinned |
| h2d_bytes_per_us, d2h_bytes_per_us | bandwidth of large pinned copies |
| staging_bytes_per_us | rate at which the host gets rid of a large pageable copy |
| device_bytes_per_us | bytes read and written by a large copy within the device's memory |
| bfloat16_flops_per_us, … | rate of a large matrix product, by type |
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from refimpl.device.calibration.amount import Amount
from refimpl.device.calibration.clocks import Call, device_times_us, host_us
from refimpl.device.calibration.host_costs import graph_of
from refimpl.device.calibration.values import Sample
from refimpl.device.select import get

CHAIN_HOLD_US, HOLD_US, STALL_US = 20_000.0, 2000.0, 500.0
REPLAYS = 10


def device_costs(device: str, amount: Amount) -> dict[str, Sample]:
    """The figures of the table."""
    dev = get(device)
    kernels = _kernels(device, dev, amount)
    latencies = _latencies(device, dev, amount, kernels["kernel_us"].median)
    return {**kernels, **latencies, **_copies(device, dev, amount), **_rates(device, dev, amount)}


def _kernels(device: str, dev: Any, amount: Amount) -> dict[str, Sample]:
    x = torch.randint(9, (16,), device=device)
    here, there = dev.current_stream(), dev.Stream()
    marks = [dev.Event() for _ in range(amount.chain)]

    def chain() -> None:
        for _ in marks:
            x.add_(1)

    def crossing() -> None:
        for at, mark in enumerate(marks):
            stream = here if at % 2 == 0 else there
            with dev.stream(stream):
                if at:
                    stream.wait_event(marks[at - 1])
                x.add_(1)
                mark.record()
        here.wait_event(marks[-1])

    alone, crossed = [device_times_us(dev, issue, CHAIN_HOLD_US, amount.repeats) for issue in (chain, crossing)]
    pairs = zip(alone, crossed, strict=True)
    samples = {
        "kernel_us": Sample.of([us / amount.chain for us in alone], "us"),
        "cross_us": Sample.of([(late - early) / amount.chain for early, late in pairs], "us"),
    }
    for nodes in amount.graph_nodes:
        times = device_times_us(dev, partial(_replay, graph_of(device, nodes)), HOLD_US, amount.repeats)
        samples[f"graph_{nodes}_device_us"] = Sample.of([us / REPLAYS for us in times], "us")
    return samples


def _replay(graph: Any) -> None:
    for _ in range(REPLAYS):
        graph.replay()


def _latencies(device: str, dev: Any, amount: Amount, kernel_us: float) -> dict[str, Sample]:
    x, event = torch.randint(9, (16,), device=device), dev.Event()

    def asking() -> None:
        while not event.query():
            pass

    def after_a_stall(wait: Call) -> float:
        dev.sleep_stream(STALL_US)
        event.record()
        return host_us(dev, wait)

    def on_an_idle_device() -> float:
        dev.synchronize()
        x.add_(1)
        begin = dev.host_clock_us()
        event.record()
        asking()
        return float(dev.host_clock_us() - begin) - kernel_us

    waits = [(after_a_stall(asking), after_a_stall(event.synchronize)) for _ in range(4 * amount.repeats)]
    return {
        "wake_us": Sample.of([blocked - asked for asked, blocked in waits], "us"),
        "start_us": Sample.of([on_an_idle_device() for _ in range(4 * amount.repeats)], "us"),
    }


def _copies(device: str, dev: Any, amount: Amount) -> dict[str, Sample]:
    pageable = torch.randint(9, (amount.elements,))
    host, there = dev.pinned(amount.elements, torch.int64), torch.randint(9, (amount.elements,), device=device)
    host.copy_(pageable)
    samples = {}
    for name, target, source in (("h2d", there, host), ("d2h", host, there)):
        chain = partial(_copy, target[:1], source[:1], amount.chain)
        small = device_times_us(dev, chain, CHAIN_HOLD_US, amount.repeats)
        large = device_times_us(dev, partial(_copy, target, source), HOLD_US, amount.repeats)
        samples[f"{name}_us"] = Sample.of([us / amount.chain for us in small], "us")
        samples[f"{name}_bytes_per_us"] = Sample.of([host.nbytes / us for us in large], "bytes/us")
    staged = []
    for _ in range(amount.repeats + 1):
        dev.synchronize()
        staged.append(pageable.nbytes / host_us(dev, partial(_copy, there, pageable)))
    return samples | {"staging_bytes_per_us": Sample.of(staged[1:], "bytes/us")}


def _copy(target: torch.Tensor, source: torch.Tensor, times: int = 1) -> None:
    for _ in range(times):
        target.copy_(source, non_blocking=True)


def _rates(device: str, dev: Any, amount: Amount) -> dict[str, Sample]:
    source = torch.randint(9, (4 * amount.elements,), device=device)
    times = device_times_us(dev, partial(_copy, torch.empty_like(source), source), HOLD_US, amount.repeats)
    samples = {"device_bytes_per_us": Sample.of([2 * source.nbytes / us for us in times], "bytes/us")}
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        a = torch.randn(amount.side, amount.side, device=device).to(dtype)
        times = device_times_us(dev, partial(torch.matmul, a, a), HOLD_US, amount.repeats)
        name = f"{str(dtype).removeprefix('torch.')}_flops_per_us"
        samples[name] = Sample.of([2 * amount.side**3 / us for us in times], "flops/us")
    return samples
