"""The caching allocator's reuse of a block, and the driver's allocations. Most of it stands in programs.json.

Source: PyTorch's reference of Tensor.record_stream.
"""

from refimpl.order import Hazard, check
from refimpl.program import Buffer, Free, Program, Stream
from tests.litmus.words import (
    OK,
    RACE,
    alloc,
    give,
    host_read,
    only_race,
    read,
    record_stream,
    set_device,
    take,
    verdict,
    wait_stream,
    write,
)

IN_USE = (take("old"), write("s", "old"), wait_stream("t", "s"), read("t", "old"))
REUSE = (take("new"), write("s", "new"))


def test_a_use_of_the_old_owner_races_with_the_next_owner_of_its_block() -> None:
    race = only_race(*IN_USE, give("old"), *REUSE)
    assert race.kind is Hazard.LIFETIME
    assert (race.first.op, race.second.op) == (3, 6)
    assert "record_stream(old, t)" in race.edge.words


def test_record_stream_before_the_free_orders_it() -> None:
    assert verdict(*IN_USE, record_stream("old", "t"), give("old"), *REUSE) == OK


def test_reuse_on_the_stream_of_the_last_use_is_fine() -> None:
    assert verdict(take("old"), write("s", "old"), give("old"), *REUSE) == OK


def test_the_same_buffer_without_a_block_is_the_same_memory() -> None:
    again = (take("old", None), write("s", "old"), give("old"), take("old", None))
    assert verdict(*again, read("t", "old")) == RACE
    assert verdict(*again, read("s", "old")) == OK


def test_a_driver_allocation_is_no_barrier_when_judged_strictly() -> None:
    for call in (alloc("y"), alloc("pinned"), alloc("managed"), Free(buf="y")):
        assert verdict(write("s"), call, read("t")) == RACE


def test_as_observed_a_driver_allocation_is_a_barrier_over_its_device_s_streams() -> None:
    assert verdict(write("s"), alloc("y"), read("t"), as_observed=True) == OK
    assert verdict(write("s"), alloc("pageable"), read("t"), as_observed=True) == RACE
    assert verdict(write("s"), Free(buf="y"), read("t"), as_observed=True) == RACE
    assert verdict(write("s"), set_device(1), alloc("on1"), read("t"), as_observed=True) == RACE
    assert verdict(write("s"), alloc("y"), read("s1"), as_observed=True) == RACE
    assert verdict(write("s", "managed"), alloc("y"), host_read("managed"), as_observed=True) == RACE


def test_as_observed_the_barrier_holds_a_legacy_stream_that_was_not_yet_used() -> None:
    ops = (write("s"), alloc("y"), read("legacy"))
    lone = Program(ops=ops, streams={"s": Stream()}, buffers={"x": Buffer(64), "y": Buffer(64)})
    assert check(lone, as_observed=True).verdict == OK


def test_as_observed_pinned_memory_is_allocated_on_the_current_device() -> None:
    assert verdict(write("s"), set_device(1), alloc("pinned"), read("t"), as_observed=True) == RACE
    assert verdict(write("s1"), set_device(1), alloc("pinned"), read("b1"), as_observed=True) == OK
