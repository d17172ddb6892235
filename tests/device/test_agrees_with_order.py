"""Two judges of one program: where `refimpl.order` proves it free of races, every order gives the same values."""

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl import device
from refimpl.order import check
from refimpl.program import Verdict
from refimpl.record import record

STREAMS, BUFFERS, EVENTS = 3, 2, 2
streams, buffers, events = (st.integers(0, n - 1) for n in (STREAMS, BUFFERS, EVENTS))
CALLS = st.one_of(
    st.tuples(st.just("write"), streams, buffers),
    st.tuples(st.just("read"), streams, buffers),
    st.tuples(st.just("record"), streams, events),
    st.tuples(st.just("wait"), streams, events),
    st.tuples(st.just("join"), streams, streams),
    st.tuples(st.just("synchronize"), events, events),
    st.tuples(st.just("land"), streams, buffers),
    st.tuples(st.just("host read"), buffers, buffers),
)


def run(dev: Any, calls: list[tuple[str, int, int]]) -> list[float]:
    """Runs the calls and returns every value that they saw."""
    lanes = [dev.Stream(stream_id=1 + i) for i in range(STREAMS)]
    marks = [dev.Event() for _ in range(EVENTS)]
    device_side = [torch.zeros(1, device="sim") for _ in range(BUFFERS)]
    host_side = [device.pinned(1, torch.float32, "sim") for _ in range(BUFFERS)]
    seen: list[torch.Tensor] = []
    read_by_host: list[float] = []
    dev.synchronize()

    for value, (call, first, second) in enumerate(calls, 1):
        if call in ("write", "read", "land"):
            with dev.stream(lanes[first]):
                if call == "write":
                    device_side[second].fill_(value)
                elif call == "read":
                    seen.append(device_side[second] + 0)
                else:
                    host_side[second].copy_(device_side[second], non_blocking=True)
        elif call == "record":
            marks[second].record(lanes[first])
        elif call == "wait":
            lanes[first].wait_event(marks[second])
        elif call == "join" and first != second:
            lanes[first].wait_stream(lanes[second])
        elif call == "synchronize":
            marks[first].synchronize()
        elif call == "host read":
            read_by_host.append(host_side[first].item())
    dev.synchronize()
    return [t.item() for t in (*seen, *device_side, *host_side)] + read_by_host


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(CALLS, max_size=14))
def test_a_program_without_races_has_one_outcome(calls: list[tuple[str, int, int]]) -> None:
    dev = device.sim()
    with dev.schedule(dev.Timed()), record("sim") as recording:
        expected = run(dev, calls)
    if check(recording.program()).verdict is not Verdict.OK:
        return
    for seed in range(6):
        with dev.schedule(dev.Adversary(seed)):
            assert run(dev, calls) == expected
