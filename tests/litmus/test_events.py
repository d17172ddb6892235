"""Events: a record captures, a wait binds, and neither changes its mind.

Source: NVIDIA's reference of cudaEventRecord, cudaStreamWaitEvent, cudaEventSynchronize, cudaEventQuery; PyTorch's of
Stream.wait_stream.
"""

from refimpl import program as p
from tests.litmus.words import (
    OK,
    RACE,
    copy,
    host_read,
    host_write,
    lints,
    program,
    read,
    record,
    stream_synchronize,
    synchronize,
    verdict,
    wait,
    wait_stream,
    work,
    write,
)


def test_streams_are_fifo_and_have_no_order_between_them() -> None:
    assert verdict(write("s"), read("s")) == OK
    assert verdict(write("s"), read("t")) == RACE
    assert verdict(read("s"), read("t")) == OK


def test_a_wait_orders_what_was_recorded_before_it() -> None:
    assert verdict(write("s"), record("e", "s"), wait("e", "t"), read("t")) == OK


def test_a_record_captures_at_the_call_and_not_what_comes_later() -> None:
    assert verdict(record("e", "s"), write("s"), wait("e", "t"), read("t")) == RACE
    assert verdict(record("e", "s"), write("s"), synchronize("e"), read("t")) == RACE


def test_a_wait_orders_only_work_submitted_after_it() -> None:
    assert verdict(write("s"), record("e", "s"), read("t"), wait("e", "t")) == RACE


def test_a_wait_before_the_record_orders_nothing() -> None:
    ops = (wait("e", "t"), write("s"), record("e", "s"), read("t"))
    assert verdict(*ops) == RACE
    assert lints(*ops) == [("wait-unrecorded", 0)]


def test_a_synchronize_or_query_before_the_record_orders_nothing() -> None:
    assert verdict(write("s"), synchronize("e"), read("t")) == RACE
    assert verdict(write("s"), p.EventQuery(event="e"), read("t")) == RACE
    assert lints(write("s"), synchronize("e")) == [("wait-unrecorded", 1)]


def test_a_wait_keeps_the_capture_that_was_current_when_the_event_is_recorded_again() -> None:
    assert verdict(write("s"), record("e", "s"), wait("e", "t"), record("e", "u"), read("t")) == OK
    assert verdict(record("e", "s"), wait("e", "t"), write("s"), record("e", "s"), read("t")) == RACE


def test_a_record_on_another_stream_forgets_the_first_capture() -> None:
    ops = (write("s"), record("ready", "s"), record("ready", "t"), wait("ready", "u"), read("u"))
    assert verdict(*ops) == RACE
    assert lints(*ops) == [("record-drops-capture", 2)]


def test_a_record_chained_behind_the_first_keeps_it() -> None:
    ops = (write("s"), record("ready", "s"), wait("ready", "t"), record("ready", "t"), wait("ready", "u"), read("u"))
    assert verdict(*ops) == OK
    assert lints(*ops) == []


def test_a_record_that_covers_the_capture_it_replaces_is_no_lint() -> None:
    assert lints(write("s"), record("e", "s"), record("e", "s")) == []
    assert lints(record("e", "s"), wait_stream("t", "s"), record("e", "t")) == []


def test_a_record_that_replaces_a_capture_somebody_joined_is_no_lint() -> None:
    assert lints(record("e", "s"), wait("e", "u"), record("e", "t")) == []
    assert lints(record("e", "s"), synchronize("e"), record("e", "t")) == []


def test_wait_stream_takes_what_is_queued_now() -> None:
    assert verdict(write("s"), wait_stream("t", "s"), read("t")) == OK
    assert verdict(wait_stream("t", "s"), write("s"), read("t")) == RACE
    assert verdict(write("s"), wait_stream("s", "t"), read("t")) == RACE


def test_wait_stream_is_a_record_at_the_tail_and_a_wait() -> None:
    between = (write("s"), record("e", "s"), read("s"))
    assert verdict(*between, wait("e", "t"), write("t")) == RACE
    assert verdict(*between, wait_stream("t", "s"), write("t")) == OK


def test_waits_chain_from_stream_to_stream() -> None:
    assert verdict(write("s"), record("e", "s"), wait("e", "t"), record("f", "t"), wait("f", "u"), read("u")) == OK
    assert verdict(write("s"), record("e", "s"), record("f", "t"), wait("e", "t"), wait("f", "u"), read("u")) == RACE


def test_a_wait_does_not_order_another_stream_s_reader() -> None:
    assert verdict(write("s"), record("e", "s"), wait("e", "t"), read("u")) == RACE


def test_a_synchronize_orders_every_later_submission() -> None:
    assert verdict(write("s"), record("e", "s"), synchronize("e"), read("u")) == OK
    assert verdict(write("s"), stream_synchronize("s"), read("u")) == OK
    assert verdict(write("s"), stream_synchronize("t"), read("u")) == RACE


def test_a_host_read_of_a_pinned_buffer_needs_a_synchronize_and_a_wait_is_not_enough() -> None:
    down = (write("s"), copy("x", "pinned", "s"), record("e", "s"))
    assert verdict(*down, host_read("pinned")) == RACE
    assert verdict(*down, wait("e", "t"), host_read("pinned")) == RACE
    assert verdict(*down, wait("e", "t"), stream_synchronize("t"), host_read("pinned")) == OK
    assert verdict(*down, synchronize("e"), host_read("pinned")) == OK


def test_a_host_write_of_a_pinned_source_must_wait_for_the_copy() -> None:
    up = (host_write("pinned"), copy("pinned", "x", "s"), record("e", "s"))
    assert verdict(*up, host_write("pinned")) == RACE
    assert verdict(*up, wait("e", "t"), host_write("pinned")) == RACE
    assert verdict(*up, synchronize("e"), host_write("pinned")) == OK


def test_a_launch_sees_what_the_host_did_before_it() -> None:
    assert verdict(host_write("managed"), read("s", "managed")) == OK
    assert verdict(host_write("managed"), read("s", "managed"), host_write("managed")) == RACE


def test_a_successful_query_orders_as_a_synchronize() -> None:
    assert verdict(write("s"), record("e", "s"), p.EventQuery(event="e"), read("t")) == OK
    assert verdict(write("s"), p.StreamQuery(stream="s"), read("t")) == OK
    assert verdict(record("e", "s"), write("s"), p.EventQuery(event="e"), read("t")) == RACE


def test_host_work_orders_nothing_however_long_it_takes() -> None:
    assert verdict(write("s"), p.HostWork(us=1e9), read("t")) == RACE


def test_two_writes_and_a_write_after_a_read_race_as_a_read_after_a_write_does() -> None:
    assert verdict(write("s"), write("t")) == RACE
    assert verdict(read("s"), write("t")) == RACE


def test_durations_sites_and_steps_change_no_verdict() -> None:
    plain = program(write("s"), read("t"))
    assert verdict(*[type(op)(**{**vars(op), "us": 1e6, "site": "a.py:1", "step": 4}) for op in plain.ops]) == RACE


def test_work_without_accesses_races_with_nothing() -> None:
    assert verdict(work("s"), work("t"), write("u"), work("s")) == OK
