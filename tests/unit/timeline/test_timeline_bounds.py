"""What must hold of every schedule: the bounds of the overlapped loop, and that a wait never makes anything earlier."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.program import EventRecord, EventSync, HostWork, Launch, Op, Program, Span, StreamSync, StreamWaitEvent
from refimpl.timeline import accounts, schedule
from tests.unit.timeline.loops import overlapped, program

CALLS_US = 12 * 6
HOST_US = [0, 300, 1500, 2000, 4000]


def step_us(fence: str, host_us: float, graph_us: float) -> float:
    step = accounts(schedule(overlapped(fence, host_us=host_us, graph_us=graph_us)), step_op="verify").step_time_us
    assert step is not None
    return step


@pytest.mark.parametrize("host_us", HOST_US)
@pytest.mark.parametrize("fence", ["synchronize", "wait"])
def test_step_time_lies_between_the_longer_of_host_and_graph_and_their_sum(fence: str, host_us: float) -> None:
    graph_us = 2000
    assert max(host_us, graph_us) <= step_us(fence, host_us, graph_us) <= host_us + graph_us + CALLS_US


@pytest.mark.parametrize("host_us", HOST_US)
def test_wait_reaches_the_longer_of_host_and_graph_and_synchronize_their_sum(host_us: float) -> None:
    assert step_us("wait", host_us, 2000) <= max(host_us, 2000) + CALLS_US
    assert step_us("synchronize", host_us, 2000) >= host_us + 2000


LANES = ("s", "t", "b")
OPS = st.one_of(
    st.builds(Launch, stream=st.sampled_from(LANES), us=st.sampled_from((5.0, 40.0, 200.0))),
    st.builds(HostWork, us=st.sampled_from((0.0, 30.0, 150.0))),
    st.builds(EventRecord, event=st.sampled_from("ef"), stream=st.sampled_from(LANES)),
    st.builds(StreamWaitEvent, event=st.sampled_from("ef"), stream=st.sampled_from(LANES)),
    st.builds(EventSync, event=st.sampled_from("ef")),
    st.builds(StreamSync, stream=st.sampled_from(LANES)),
)


def with_fence(bare: Program, at: int, fence: Op) -> Program:
    return replace(bare, ops=(*bare.ops[:at], fence, *bare.ops[at:]))


def starts(spans: tuple[Span, ...], inserted: int) -> list[float]:
    return [s.start_us for s in spans if s.op != inserted]


@settings(max_examples=200, deadline=None)
@given(ops=st.lists(OPS, max_size=14), at=st.integers(0, 14), event=st.sampled_from("ef"), lane=st.sampled_from(LANES))
def test_adding_a_wait_never_makes_anything_start_earlier(ops: list[Op], at: int, event: str, lane: str) -> None:
    bare, at = program(*ops), min(at, len(ops))
    fenced = with_fence(bare, at, StreamWaitEvent(event=event, stream=lane))
    before, after = starts(schedule(bare).spans, -1), starts(schedule(fenced).spans, at)
    assert all(late >= early - 1e-9 for early, late in zip(before, after, strict=True))


@settings(max_examples=100, deadline=None)
@given(ops=st.lists(OPS, max_size=14), at=st.integers(0, 13), us=st.sampled_from((1.0, 75.0)))
def test_making_an_op_longer_never_makes_anything_start_earlier(ops: list[Op], at: int, us: float) -> None:
    if at < len(ops) and isinstance(ops[at], Launch | HostWork):
        longer = [replace(op, us=(op.us or 0) + us) if k == at else op for k, op in enumerate(ops)]
        pairs = zip(schedule(program(*ops)).spans, schedule(program(*longer)).spans, strict=True)
        assert all(late.start_us >= early.start_us - 1e-9 for early, late in pairs)
