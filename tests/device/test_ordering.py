"""Events and streams: what a fence does, and what its absence does."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl import device

SLOW_US = 4000.0


def slow_write(dev: Any, target: torch.Tensor, value: float) -> None:
    with dev.cost("slow write", us=SLOW_US):
        target.fill_(value)


def read_after_slow_write(dev: Any, fence: Callable[[Any, Any], None] | None) -> list[float]:
    writer, reader = dev.Stream(), dev.Stream()
    buffer = torch.zeros(2, device="sim")
    dev.synchronize()
    with dev.stream(writer):
        slow_write(dev, buffer, 7)
        written = writer.record_event()
    if fence:
        fence(reader, written)
    with dev.stream(reader):
        seen = buffer + 0
    reader.synchronize()
    return seen.tolist()


def test_read_without_fence_sees_the_old_value(dev: Any) -> None:
    assert read_after_slow_write(dev, None) == [0, 0]


@pytest.mark.parametrize(
    "fence",
    [
        lambda reader, written: reader.wait_event(written),
        lambda reader, written: written.wait(reader),
        lambda reader, written: written.synchronize(),
    ],
)
def test_read_behind_a_fence_sees_the_new_value(dev: Any, fence: Callable[[Any, Any], None]) -> None:
    assert read_after_slow_write(dev, fence) == [7, 7]


def test_write_without_fence_corrupts_a_slow_read(dev: Any) -> None:
    reader, writer = dev.Stream(), dev.Stream()
    buffer = torch.ones(2, device="sim")
    dev.synchronize()
    with dev.stream(reader), dev.cost("slow read", us=SLOW_US):
        seen = buffer + 0
    with dev.stream(writer):
        buffer.fill_(9)
    dev.synchronize()
    assert seen.tolist() == [9, 9]


def test_wait_stream_covers_what_was_queued_then(dev: Any) -> None:
    writer, reader = dev.Stream(), dev.Stream()
    buffer = torch.zeros(1, device="sim")
    dev.synchronize()
    with dev.stream(writer):
        slow_write(dev, buffer, 1)
        reader.wait_stream(writer)
        slow_write(dev, buffer, 2)
    with dev.stream(reader):
        seen = buffer + 0
    dev.synchronize()
    assert seen.item() == 1


def test_wait_is_bound_to_the_capture_current_at_the_call(dev: Any) -> None:
    writer, reader = dev.Stream(), dev.Stream()
    buffer = torch.zeros(1, device="sim")
    dev.synchronize()
    event = dev.Event()
    with dev.stream(writer):
        slow_write(dev, buffer, 1)
        event.record()
        reader.wait_event(event)
        slow_write(dev, buffer, 2)
        event.record()
    with dev.stream(reader):
        seen = buffer + 0
    dev.synchronize()
    assert seen.item() == 1


def test_second_record_replaces_the_first(dev: Any) -> None:
    first, second, reader = dev.Stream(), dev.Stream(), dev.Stream()
    buffer = torch.zeros(1, device="sim")
    dev.synchronize()
    event = dev.Event()
    with dev.stream(first):
        slow_write(dev, buffer, 1)
        event.record()
    event.record(second)
    reader.wait_event(event)
    with dev.stream(reader):
        seen = buffer + 0
    dev.synchronize()
    assert seen.item() == 0


def test_wait_for_an_unrecorded_event_does_nothing(dev: Any) -> None:
    assert read_after_slow_write(dev, lambda reader, _: reader.wait_event(dev.Event())) == [0, 0]


def test_unrecorded_event_is_done(dev: Any) -> None:
    event = dev.Event()
    event.synchronize()
    assert event.query()


def test_wait_leaves_the_host_free_and_synchronize_blocks_it(dev: Any) -> None:
    stream = dev.Stream()
    with dev.stream(stream):
        device.sleep_stream("sim", SLOW_US)
    event = stream.record_event()
    before = dev.host_clock_us()
    dev.current_stream().wait_event(event)
    assert dev.host_clock_us() - before == pytest.approx(dev.CostModel().wait_us)
    event.synchronize()
    assert dev.host_clock_us() - before >= SLOW_US - 100


def test_query_turns_true_in_virtual_time(dev: Any) -> None:
    device.sleep_stream("sim", 100)
    event = dev.current_stream().record_event()
    polls = 0
    while not event.query():
        polls += 1
    assert polls > 10
    assert dev.current_stream().query()


def test_elapsed_time_is_device_time(dev: Any) -> None:
    begin, end = dev.Event(enable_timing=True), dev.Event(enable_timing=True)
    begin.record()
    device.sleep_stream("sim", 2500)
    end.record()
    with pytest.raises(RuntimeError, match="has not run yet"):
        begin.elapsed_time(end)
    end.synchronize()
    assert begin.elapsed_time(end) == pytest.approx(2.5, abs=0.05)


def test_device_synchronize_empties_every_stream(dev: Any) -> None:
    streams = [dev.Stream() for _ in range(3)]
    for stream in streams:
        with dev.stream(stream):
            device.sleep_stream("sim", SLOW_US)
    dev.synchronize()
    assert all(stream.query() for stream in streams)


def test_host_work_overlaps_device_work(dev: Any) -> None:
    device.sleep_stream("sim", 1000)
    device.host_work("sim", 900)
    dev.synchronize()
    assert device.host_clock_us("sim") == pytest.approx(1000, abs=20)


def test_the_thirty_third_stream_is_the_first(dev: Any) -> None:
    streams = [dev.Stream() for _ in range(33)]
    assert streams[32] == streams[0]
    assert len(set(streams)) == 32


def test_a_region_shares_its_time_out_over_its_ops(dev: Any) -> None:
    x = torch.zeros(4, device="sim")
    with dev.cost("step", us=900):
        for _ in range(3):
            x.add_(1)
    dev.synchronize()
    assert dev.host_clock_us() == pytest.approx(900, abs=30)


def test_an_empty_region_still_takes_its_time(dev: Any) -> None:
    with dev.cost("step", us=500):
        pass
    dev.synchronize()
    assert dev.host_clock_us() == pytest.approx(500, abs=5)


def test_a_region_that_blocks_inside_takes_its_time_in_all(dev: Any) -> None:
    x = torch.zeros(4, device="sim")
    with dev.cost("step", us=500):
        x.add_(1)
        assert x[0].item() == 1
        x.add_(1)
    dev.synchronize()
    assert dev.host_clock_us() == pytest.approx(500, abs=30)
