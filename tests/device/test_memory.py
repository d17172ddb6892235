"""The caching allocator: what it hands out, when it takes it back, and what that does to a program without fences."""

import gc
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refimpl import device
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.memory.blocks import Segment
from refimpl.device.simulator.memory.buffers import Buffer
from refimpl.device.simulator.memory.free_blocks import FreeBlocks, Pool
from refimpl.device.simulator.memory.usage import Usage

KIB, MIB = 1 << 10, 1 << 20


def block_of(tensor: Any) -> Any:
    return tensor.buffer.block


class Watcher:
    """Notes what the allocator tells observers."""

    def __init__(self, dev: Any) -> None:
        self.told: list[tuple[str, Buffer]] = []

        class Observer(dev.Observer):  # type: ignore[misc]
            def on_allocate(_, buffer: Buffer) -> None:
                self.told.append(("allocate", buffer))

            def on_free(_, buffer: Buffer) -> None:
                self.told.append(("free", buffer))

            def on_record_stream(_, buffer: Buffer, stream_id: int) -> None:
                self.told.append((f"record {stream_id}", buffer))

        self.observer = Observer()


def test_a_freed_block_is_handed_to_the_next_allocation_of_its_stream_at_once(dev: Any) -> None:
    device.sleep_stream("sim", 1000)
    x = torch.ones(100, device="sim")
    address = x.data_ptr()
    del x
    assert not dev.current_stream().query()
    assert torch.empty(100, device="sim").data_ptr() == address


def test_an_op_queued_before_works_on_the_bytes_of_the_new_owner(dev: Any) -> None:
    side = dev.Stream()
    x = torch.ones(100, device="sim")
    dev.synchronize()
    with dev.stream(side):
        device.sleep_stream("sim", 1000)
        seen = x + 0
    del x
    torch.full((100,), 7.0, device="sim")
    dev.synchronize()
    assert seen.tolist() == [7.0] * 100


def test_blocks_never_cross_streams(dev: Any) -> None:
    addresses = []
    for _ in range(3):
        with dev.stream(dev.Stream()):
            addresses.append(torch.empty(100, device="sim").data_ptr())
    assert len(set(addresses)) == 3


def test_empty_memory_shows_what_it_held(dev: Any) -> None:
    assert torch.empty(4, device="sim").tolist() == [0] * 4
    x = torch.full((4,), 5.0, device="sim")
    del x
    assert torch.empty(4, device="sim").tolist() == [5] * 4


def test_a_view_keeps_the_block(dev: Any) -> None:
    x = torch.arange(8.0).to("sim")
    view, address = x[2:].view(2, 3), x.data_ptr()
    del x
    assert torch.empty(8, device="sim").data_ptr() != address
    assert view.tolist() == [[2, 3, 4], [5, 6, 7]]


def test_what_autograd_saves_keeps_the_block(dev: Any) -> None:
    x = torch.tensor([2.0, 3.0], device="sim", requires_grad=True)
    y = (x * 1).exp()
    loss = y.sum()
    address = y.data_ptr()
    del y
    assert torch.zeros(2, device="sim").data_ptr() != address
    loss.backward()
    assert x.grad is not None
    assert torch.allclose(x.grad.cpu(), torch.tensor([2.0, 3.0]).exp())


def test_new_data_lets_go_of_the_old_block(dev: Any) -> None:
    x = torch.ones(100, device="sim")
    address = x.data_ptr()
    x.data = torch.zeros(50, device="sim")
    assert torch.empty(100, device="sim").data_ptr() == address


def test_a_queued_op_of_any_kind_keeps_no_block(dev: Any) -> None:
    x, rows = torch.rand(8, 8).to("sim"), torch.tensor([1, 3]).to("sim")
    pinned = device.pinned((8, 8), torch.float32, "sim")
    works = (
        lambda: torch.nn.functional.layer_norm(x @ x.T, (8,)).softmax(-1),
        lambda: x[rows],
        lambda: x.index_put_((rows,), x[rows] + 1),
        lambda: x.topk(3),
        lambda: torch.rand(8, device="sim"),
        lambda: torch._foreach_add([x, x + 1], [x, x]),
        lambda: pinned.to("sim", non_blocking=True),
        lambda: (x + 1).to("cpu", non_blocking=True),
        lambda: (x + 1).t_(),
    )
    for work in works:
        work()
    gc.collect()
    before = dev.memory_allocated()
    device.sleep_stream("sim", 1e6)
    gc.disable()
    try:
        for work in works:
            work()
        assert not dev.current_stream().query()
        assert dev.memory_allocated() == before
    finally:
        gc.enable()


def test_observers_do_not_change_what_is_handed_out(dev: Any) -> None:
    def addresses() -> list[tuple[int, int]]:
        found = []
        with dev.schedule(dev.Timed()):
            first = torch.ones(300, device="sim")
            serial = block_of(first).segment.serial
            for n in (10, 200, 10):
                x = first[:n] + 1
                found.append((block_of(x).segment.serial - serial, block_of(x).offset))
        return found

    alone = addresses()
    watcher = Watcher(dev)
    with dev.observe(watcher.observer):
        watched = addresses()
    assert watched == alone
    assert len(watcher.told) > 6


def test_an_observer_is_told_who_owned_a_block_one_after_another(dev: Any) -> None:
    watcher = Watcher(dev)
    side = dev.Stream()
    with dev.observe(watcher.observer):
        x = torch.empty(4, device="sim")
        first = x.buffer  # type: ignore[attr-defined]
        x.record_stream(dev.current_stream())
        del x
        y = torch.empty(2, device="sim")
        y.record_stream(side)
        second = y.buffer  # type: ignore[attr-defined]
        del y
    assert first.block is second.block
    assert watcher.told == [
        ("allocate", first),
        ("record 0", first),
        ("free", first),
        ("allocate", second),
        (f"record {side.stream_id}", second),
        ("free", second),
    ]


def test_a_recorded_stream_holds_the_block_until_it_is_done(dev: Any) -> None:
    side, x = dev.Stream(), torch.ones(100, device="sim")
    address = x.data_ptr()
    with dev.stream(side):
        device.sleep_stream("sim", 1000)
    x.record_stream(side)
    del x
    with dev.stream(side):
        device.sleep_stream("sim", 1e6)  # queued after the tensor died, so not waited for
    assert torch.empty(100, device="sim").data_ptr() != address
    device.host_work("sim", 2000)
    assert torch.empty(100, device="sim").data_ptr() == address


def test_every_recorded_stream_is_waited_for(dev: Any) -> None:
    short, long = dev.Stream(), dev.Stream()
    x = torch.ones(100, device="sim")
    address = x.data_ptr()
    for stream, us in ((short, 1000), (long, 3000)):
        with dev.stream(stream):
            device.sleep_stream("sim", us)
        x.record_stream(stream)
    del x
    device.host_work("sim", 2000)
    assert torch.empty(100, device="sim").data_ptr() != address
    device.host_work("sim", 2000)
    assert torch.empty(100, device="sim").data_ptr() == address


def test_a_stream_with_much_to_do_holds_up_no_block_of_another(dev: Any) -> None:
    addresses = []
    for us in (3000, 1000):
        side, x = dev.Stream(), torch.ones(100 * us, device="sim")
        with dev.stream(side):
            device.sleep_stream("sim", us)
        x.record_stream(side)
        addresses.append(x.data_ptr())
        del x
    device.host_work("sim", 2000)
    assert torch.empty(100 * 1000, device="sim").data_ptr() == addresses[1]
    assert torch.empty(100 * 3000, device="sim").data_ptr() != addresses[0]


def test_the_stream_of_the_allocation_counts_for_nothing_when_it_is_recorded(dev: Any) -> None:
    device.sleep_stream("sim", 1000)
    x = torch.ones(100, device="sim")
    x.record_stream(dev.current_stream())
    address = x.data_ptr()
    del x
    assert torch.empty(100, device="sim").data_ptr() == address


def side_stream_use(dev: Any, told: bool) -> list[float]:
    """A buffer is read on a side stream that is behind, and dies; the next one takes its place."""
    side = dev.Stream()
    x = torch.full((4,), 1.0, device="sim")
    side.wait_stream(dev.current_stream())
    with dev.stream(side):
        device.sleep_stream("sim", 1000)
        seen = x + 0
        if told:
            x.record_stream(side)
    del x
    torch.full((4,), 9.0, device="sim")
    dev.synchronize()
    return list(seen.tolist())


def test_a_missing_record_stream_corrupts_in_time(dev: Any) -> None:
    assert side_stream_use(dev, told=False) == [9] * 4
    assert side_stream_use(dev, told=True) == [1] * 4


def test_a_missing_record_stream_corrupts_under_some_order_and_the_fixed_form_under_none(dev: Any) -> None:
    seen: dict[bool, list[list[float]]] = {True: [], False: []}
    for seed in range(20):
        for told in seen:
            with dev.schedule(dev.Adversary(seed)):
                seen[told].append(side_stream_use(dev, told))
    assert any(values != [1] * 4 for values in seen[False])
    assert all(values == [1] * 4 for values in seen[True])


def test_each_run_of_a_schedule_begins_with_empty_memory(dev: Any) -> None:
    found = []
    for value in (3.0, 4.0):
        with dev.schedule(dev.Adversary(1)):
            found.append(torch.empty(4, device="sim").tolist())
            torch.full((4,), value, device="sim")
    assert found == [[0] * 4, [0] * 4]


def test_a_run_that_failed_leaves_no_block_behind(dev: Any) -> None:
    before = dev.memory_reserved()

    def fail() -> None:
        side, x = dev.Stream(), torch.ones(4, device="sim")
        with dev.stream(side):
            device.sleep_stream("sim", 1000)
        x.record_stream(side)
        del x
        raise KeyError

    with pytest.raises(KeyError), dev.schedule(dev.Timed()):
        fail()
    assert dev.memory_reserved() == before


def test_a_tensor_outlives_the_run_it_was_made_in(dev: Any) -> None:
    before = dev.memory_reserved()
    with dev.schedule(dev.Timed()):
        x = torch.full((4,), 3.0, device="sim")
    assert (x + 1).tolist() == [4] * 4
    assert dev.memory_reserved() > before
    del x
    dev.empty_cache()
    assert dev.memory_reserved() <= before


@pytest.mark.parametrize(
    ("bytes_", "block", "segment"),
    [
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 1, 10 * MIB, 10 * MIB),
        (10 * MIB + 1, 10 * MIB + 512, 12 * MIB),
        (19 * MIB + MIB // 2, 19 * MIB + MIB // 2, 20 * MIB),
    ],
)
def test_sizes_are_rounded_as_on_cuda(dev: Any, bytes_: int, block: int, segment: int) -> None:
    dev.empty_cache()
    allocated, reserved = dev.memory_allocated(), dev.memory_reserved()
    x = torch.empty(bytes_, dtype=torch.uint8, device="sim")
    left = dev.memory_reserved() - reserved - block
    whole = bytes_ > MIB and left <= MIB  # a large block's rest is cut off only above a MiB
    assert dev.memory_allocated() - allocated == (segment if whole else block)
    assert dev.memory_reserved() - reserved == segment
    assert x.numel() == bytes_


def test_a_request_takes_the_smallest_block_that_fits(dev: Any) -> None:
    kept = [torch.empty(n * KIB, dtype=torch.uint8, device="sim") for n in (8, 1, 4, 1, 2, 1)]
    addresses = {n: kept[i].data_ptr() for n, i in ((8, 0), (4, 2), (2, 4))}
    for i in (4, 2, 0):
        del kept[i]
    assert torch.empty(3 * KIB, dtype=torch.uint8, device="sim").data_ptr() == addresses[4]
    assert torch.empty(KIB, dtype=torch.uint8, device="sim").data_ptr() == addresses[2]


def test_statistics_have_the_names_of_cuda(dev: Any) -> None:
    names = dev.memory_stats()
    for name in ("allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes", "segment"):
        for kind in ("all", "small_pool", "large_pool"):
            assert {f"{name}.{kind}.{part}" for part in ("current", "peak", "allocated", "freed")} <= set(names)
    assert "reserved_bytes.all.peak" in names
    assert "inactive_split_bytes.all.current" in names


def test_statistics_count_requests_blocks_and_what_waits(dev: Any) -> None:
    dev.empty_cache()

    def now(*names: str) -> list[int]:
        stats = dev.memory_stats()
        return [stats[f"{name}.all.current"] for name in names]

    names = ("allocation", "requested_bytes", "allocated_bytes", "active_bytes")
    before = now(*names)
    side, x = dev.Stream(), torch.empty(100, dtype=torch.uint8, device="sim")
    assert [a - b for a, b in zip(now(*names), before, strict=True)] == [1, 100, 512, 512]
    with dev.stream(side):
        device.sleep_stream("sim", 1000)
    x.record_stream(side)
    del x
    assert [a - b for a, b in zip(now(*names), before, strict=True)] == [0, 0, 0, 512]
    dev.empty_cache()
    assert now(*names) == before


def test_peaks_are_kept_until_they_are_reset(dev: Any) -> None:
    before = dev.memory_allocated()
    dev.reset_peak_memory_stats()
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="sim")
    del x
    assert dev.max_memory_allocated() - before == 3 * MIB
    assert dev.max_memory_reserved() >= dev.memory_reserved() >= 20 * MIB
    dev.reset_peak_memory_stats()
    assert dev.max_memory_allocated() == before


def test_emptying_the_cache_returns_whole_segments_alone(dev: Any) -> None:
    dev.empty_cache()
    before = dev.memory_reserved()
    x, y = (torch.empty(KIB, dtype=torch.uint8, device="sim") for _ in range(2))
    del x
    dev.empty_cache()
    assert dev.memory_reserved() - before == 2 * MIB
    assert dev.memory_stats()["inactive_split_bytes.small_pool.current"] >= 2 * MIB - KIB
    del y
    dev.empty_cache()
    assert dev.memory_reserved() == before


def test_emptying_the_cache_waits_for_recorded_streams(dev: Any) -> None:
    dev.empty_cache()
    before, begin = dev.memory_reserved(), dev.host_clock_us()
    side, x = dev.Stream(), torch.ones(4, device="sim")
    with dev.stream(side):
        device.sleep_stream("sim", 1000)
    x.record_stream(side)
    del x
    dev.empty_cache()
    assert dev.memory_reserved() == before
    assert dev.host_clock_us() - begin >= 1000


def test_free_and_total_memory_add_up(dev: Any) -> None:
    free, total = dev.mem_get_info()
    assert total - free == dev.memory_reserved()


def test_too_much_memory_is_one_sentence(dev: Any) -> None:
    with pytest.raises(torch.OutOfMemoryError, match="use smaller tensors"):
        torch.empty(1 << 50, dtype=torch.uint8, device="sim")


def test_a_tensor_without_bytes_has_no_block(dev: Any) -> None:
    before = dev.memory_allocated()
    x = torch.empty(0, 3, device="sim")
    assert (block_of(x), x.tolist(), dev.memory_allocated()) == (None, [], before)


def test_result_of_unknown_shape_lies_in_device_memory(dev: Any) -> None:
    x = torch.tensor([0.0, 1.0, 2.0]).to("sim")
    before = dev.memory_allocated()
    found = x.nonzero()
    assert dev.memory_allocated() - before == 512
    assert found.tolist() == [[1], [2]]


@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16, torch.complex64, torch.float8_e4m3fn, torch.int64])
def test_memory_takes_every_type(dev: Any, dtype: torch.dtype) -> None:
    assert torch.zeros(3, 2, dtype=dtype, device="sim").cpu().dtype is dtype


def test_a_tensor_begins_at_the_beginning_of_its_storage(dev: Any) -> None:
    kept = torch.empty(700, device="sim")
    x = torch.arange(6.0).to("sim")
    assert (kept.storage_offset(), x.storage_offset(), x[2:].storage_offset()) == (0, 0, 2)
    assert x.as_strided((2,), (3,), 1).tolist() == [1, 4]


def test_garbage_that_is_collected_while_a_block_is_sought_comes_back_later(dev: Any) -> None:
    x = torch.empty(100, device="sim")
    address = x.data_ptr()
    DEVICE.memory._busy = True
    del x
    DEVICE.memory._busy = False
    torch.empty(100, device="sim")
    assert torch.empty(100, device="sim").data_ptr() == address


@settings(max_examples=200, deadline=None)
@given(
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(["take", "give", "again"]), st.integers(1, 5), st.integers(0, 20)), max_size=60),
)
@example(False, [("take", 2, 0), ("take", 1, 0), ("take", 5, 0), ("give", 0, 1), ("again", 0, 0)])
def test_block_given_back_is_handed_on_as_if_it_had_grown_together_at_once(
    small: bool, steps: list[tuple[str, int, int]]
) -> None:
    unit = 512 if small else MIB // 2  # a rest of one or two is not cut off

    def places(look: bool) -> list[tuple[int, int, int]]:
        free = FreeBlocks(Pool(of_graphs=False), small)
        segments, live, found = list[Segment](), list[Any](), list[tuple[int, int, int]]()

        def take(size: int) -> None:
            block = free.take(size)
            if block is None:
                segments.append(Segment(12 * unit))
                free.add(segments[-1])
                block = free.take(size)
            assert block is not None
            live.append(block)
            found.append((segments.index(block.segment), block.offset, block.bytes))

        for what, n, which in steps:
            if what == "take":
                take(n * unit)
            elif live:
                block = live.pop(which % len(live))
                size = block.bytes
                free.give(block)
                if look:
                    free.blocks()
                if what == "again":
                    take(size)
        return found

    assert places(look=False) == places(look=True)


@settings(max_examples=60, deadline=None)
@given(
    st.booleans(),
    st.lists(st.tuples(st.booleans(), st.integers(1, 12), st.integers(0, 20)), max_size=60),
)
def test_free_lists_never_overlap_and_grow_together_again(small: bool, steps: list[tuple[bool, int, int]]) -> None:
    unit = 512 if small else MIB
    free = FreeBlocks(Pool(of_graphs=False), small)
    segments, live = list[Segment](), list[Any]()
    for allocates, n, which in steps:
        if allocates:
            block = free.take(n * unit)
            if block is None:
                segments.append(Segment(24 * unit))
                free.add(segments[-1])
                block = free.take(n * unit)
            assert block is not None
            assert block.bytes >= n * unit
            live.append(block)
        elif live:
            free.give(live.pop(which % len(live)))
        spans = sorted((b.segment.serial, b.offset, b.offset + b.bytes) for b in [*live, *free.blocks()])
        assert all(a[0] != b[0] or a[2] == b[1] for a, b in pairwise(spans))
        assert sum(end - begin for _, begin, end in spans) == sum(s.bytes for s in segments)
    for block in live:
        free.give(block)
    assert sorted(b.segment.serial for b in free.blocks()) == [s.serial for s in segments]
    assert not any(b.split for b in free.blocks())


@given(st.lists(st.tuples(st.sampled_from(["allocate", "free", "wait", "settle", "reset"]), st.integers(0, 20))))
def test_peak_is_the_most_there_was_since_the_reset(steps: list[tuple[str, int]]) -> None:
    usage, live, waiting = Usage(), list[int](), list[int]()
    peaks = dict.fromkeys(("allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes"), 0)
    for what, n in steps:
        if what == "allocate":
            live.append(n)
            usage.allocate(512 * n, n)
        elif what in ("free", "wait") and live:
            size = live.pop(n % len(live))
            usage.free(512 * size, size)
            if what == "wait":
                waiting.append(size)
                usage.wait(512 * size)
        elif what == "settle" and waiting:
            usage.settle(512 * waiting.pop(n % len(waiting)))
        elif what == "reset":
            usage.reset_peaks()
            peaks = dict.fromkeys(peaks, 0)
        active = [*live, *waiting]
        now = (len(live), 512 * sum(live), sum(live), len(active), 512 * sum(active))
        peaks = {name: max(peak, value) for (name, peak), value in zip(peaks.items(), now, strict=True)}
        values = usage.values()
        assert {name: values[f"{name}.peak"] for name in peaks} == peaks
        assert tuple(values[f"{name}.current"] for name in peaks) == now
