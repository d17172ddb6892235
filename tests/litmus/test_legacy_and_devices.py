"""The legacy default stream, blocking streams and several devices.

Source: NVIDIA, "Stream synchronization behavior", and the notes on default stream behaviour of each call.
"""

import pytest

from refimpl import program as p
from tests.litmus.words import (
    OK,
    RACE,
    device_synchronize,
    read,
    record,
    set_device,
    stream_synchronize,
    synchronize,
    verdict,
    wait,
    wait_stream,
    work,
    write,
)

BLOCKING = ("b", "thread")


@pytest.mark.parametrize("stream", BLOCKING)
def test_legacy_work_comes_after_what_blocking_streams_hold(stream: str) -> None:
    assert verdict(write(stream), read("legacy")) == OK


@pytest.mark.parametrize("stream", BLOCKING)
def test_blocking_streams_come_after_legacy_work(stream: str) -> None:
    assert verdict(write("legacy"), read(stream)) == OK


@pytest.mark.parametrize("other", ["c", "thread"])
def test_legacy_work_bridges_two_blocking_streams(other: str) -> None:
    assert verdict(write("b"), work("legacy"), read(other)) == OK
    assert verdict(write("b"), read(other)) == RACE


def test_the_bridge_reaches_only_what_was_queued_before_it() -> None:
    assert verdict(work("legacy"), write("b"), read("c")) == RACE
    assert verdict(write("b"), read("c"), work("legacy")) == RACE


def test_non_blocking_streams_are_exempt() -> None:
    assert verdict(write("s"), read("legacy")) == RACE
    assert verdict(write("legacy"), read("s")) == RACE
    assert verdict(write("s"), work("legacy"), read("b")) == RACE


def test_a_non_blocking_stream_can_wait_for_the_legacy_one_by_an_event() -> None:
    assert verdict(write("legacy"), record("e", "legacy"), wait("e", "s"), read("s")) == OK


def test_a_wait_on_the_legacy_stream_is_an_action_that_holds_the_blocking_ones() -> None:
    assert verdict(write("s"), record("e", "s"), wait("e", "legacy"), read("b")) == OK
    assert verdict(write("b"), wait("never", "legacy"), read("c")) == OK


def test_a_record_on_the_legacy_stream_covers_the_blocking_ones() -> None:
    assert verdict(write("b"), record("e", "legacy"), wait("e", "s"), read("s")) == OK
    assert verdict(write("b"), record("e", "legacy"), read("c")) == OK
    assert verdict(write("t"), record("e", "legacy"), wait("e", "s"), read("s")) == RACE


def test_wait_stream_with_the_legacy_stream_is_an_action_on_either_side() -> None:
    assert verdict(write("b"), wait_stream("s", "legacy"), read("s")) == OK
    assert verdict(write("s"), wait_stream("legacy", "s"), read("b")) == OK


def test_synchronizing_the_legacy_stream_covers_blocking_streams_and_no_others() -> None:
    assert verdict(write("b"), stream_synchronize("legacy"), read("s")) == OK
    assert verdict(write("b"), p.StreamQuery(stream="legacy"), read("s")) == OK
    assert verdict(write("t"), stream_synchronize("legacy"), read("s")) == RACE


def test_synchronizing_a_blocking_stream_covers_earlier_legacy_work() -> None:
    assert verdict(write("legacy"), stream_synchronize("b"), read("s")) == OK
    assert verdict(write("c"), work("legacy"), stream_synchronize("b"), read("s")) == OK
    assert verdict(write("c"), stream_synchronize("b"), read("s")) == RACE


def test_a_device_synchronize_covers_all_streams_of_the_current_device_alone() -> None:
    for stream in ("s", "b", "thread", "legacy"):
        assert verdict(write(stream), device_synchronize(), read("t")) == OK
    assert verdict(write("s1", "on1"), device_synchronize(), read("t", "on1")) == RACE
    assert verdict(write("s1", "on1"), set_device(1), device_synchronize(), read("t", "on1")) == OK
    assert verdict(write("s"), set_device(1), device_synchronize(), read("t")) == RACE
    assert verdict(write("s"), set_device(1), set_device(0), device_synchronize(), read("t")) == OK


def test_each_device_has_a_legacy_stream_of_its_own() -> None:
    assert verdict(write("legacy"), set_device(1), read("legacy")) == RACE
    assert verdict(write("legacy"), set_device(1), set_device(0), read("legacy")) == OK
    assert verdict(write("b1"), read("legacy")) == RACE
    assert verdict(write("b1"), set_device(1), read("legacy")) == OK
    assert verdict(write("b"), set_device(1), work("legacy"), read("c")) == RACE


def test_an_event_orders_streams_of_different_devices() -> None:
    assert verdict(write("s"), record("e", "s"), wait("e", "s1"), read("s1")) == OK
    assert verdict(write("s1"), record("e", "s1"), synchronize("e"), read("s")) == OK
    assert verdict(write("s"), set_device(1), stream_synchronize("s"), read("s1")) == OK
