"""What a recording calls things, and what it leaves out."""

from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.order import check
from refimpl.program import Memcpy, Verdict
from refimpl.record import record


def test_an_empty_recording_is_an_empty_program(dev: Any) -> None:
    with record("sim") as recording:
        pass
    assert (recording.program().ops, recording.trace().spans) == ((), ())


def test_the_launch_of_an_empty_graph_is_recorded(dev: Any) -> None:
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        pass
    with record("sim") as recording:
        graph.replay()
    assert (len(recording.program().ops), recording.trace().spans) == (1, ())


@pytest.mark.parametrize("name", ["legacy", "host", "agent x"])
def test_a_stream_cannot_take_the_name_of_another_lane(dev: Any, name: str) -> None:
    with record("sim") as recording, pytest.raises(ValueError, match="belongs to another lane"):
        recording.name(dev.Stream(), name)


def test_a_given_name_is_not_found_for_another_thing(dev: Any) -> None:
    stream, x, y = dev.Stream(), torch.zeros(2, device="sim"), torch.zeros(2, device="sim")
    dev.synchronize()
    with record("sim") as recording:
        recording.name(stream, "default")
        recording.name(y, "device1")
        with dev.stream(stream):
            x.add_(1)
        y.add_(1)
        x.add_(1)
    program = recording.program()
    assert (list(program.streams), list(program.buffers)) == (["default", "default_2"], ["device1_2", "device1"])
    assert check(program).verdict is Verdict.RACE


def test_the_priority_of_a_stream_is_recorded(dev: Any) -> None:
    high, low = dev.Stream(priority=-1), dev.Stream()
    with record("sim") as recording:
        for stream, name in ((high, "high"), (low, "low")):
            recording.name(stream, name)
            stream.record_event()
    assert {name: stream.priority for name, stream in recording.program().streams.items()} == {"high": -1, "low": 0}
    with dev.stream(high):
        assert dev.current_stream().priority == -1


def test_a_copy_to_the_device_is_no_read_by_the_host(dev: Any) -> None:
    source = device.pinned(2, torch.float32, "sim")
    with record("sim") as recording:
        source.is_pinned()
        source.to("sim", non_blocking=True)
    assert [type(op) for op in recording.program().ops] == [Memcpy]
