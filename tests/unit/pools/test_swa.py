"""The two pools of a model with sliding layers: twins are paired, given back early, and never twice."""

from typing import Any

import pytest
import torch

import refimpl
from refimpl import device as devices
from refimpl.engine.pools import SWAKVPool, SWATokenToKVPoolAllocator
from refimpl.order import check


def _held(allocator: SWATokenToKVPoolAllocator, n: int) -> torch.Tensor:
    slots = allocator.alloc(n)
    assert slots is not None
    return slots


def test_a_page_table_is_translated_cell_by_cell_and_padding_stays_padding() -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=6, num_swa_slots=4, device="cpu")
    first = _held(allocator, 3)
    allocator.free_swa(first[:1], 1)
    second = _held(allocator, 2)
    table = torch.stack([first, torch.cat([second, torch.zeros(1, dtype=torch.int32)])])
    assert table.tolist() == [[1, 2, 3], [4, 5, 0]]
    assert allocator.translate(table).tolist() == [[0, 2, 3], [1, 4, 0]]
    assert allocator.translate(table).dtype == torch.int32


def test_a_twin_that_left_the_window_goes_to_the_next_token() -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=8, num_swa_slots=3, device="cpu")
    old = _held(allocator, 3)
    assert (allocator.available(), allocator.alloc(1)) == (0, None)
    allocator.free_swa(old[:2], 2)
    assert (allocator.available(), allocator.full.available()) == (2, 5)
    assert allocator.translate(_held(allocator, 1)).tolist() == [2]


@pytest.mark.parametrize("evicted", [0, 1, 3])
def test_slots_that_are_a_part_of_the_stack_come_back_as_copies_do(evicted: int) -> None:
    after = []
    for name in ("alloc", "alloc_view"):
        allocator = SWATokenToKVPoolAllocator(num_slots=6, num_swa_slots=6, device="cpu")
        slots = getattr(allocator, name)(4)
        if evicted:
            allocator.free_swa(slots[:evicted].clone(), evicted)
        allocator.free(slots, 4, evicted)
        allocator.check_blocking()
        after.append((allocator.full.free_slots_blocking(), allocator.swa.free_slots_blocking()))
    assert after[0] == after[1]


def test_a_wrong_count_of_evicted_tokens_frees_nothing() -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=4, num_swa_slots=4, device="cpu")
    slots = _held(allocator, 2)
    allocator.free_swa(slots, 2)
    with pytest.raises(RuntimeError, match="2 slots are freed, but only 0 of 4 are out"):
        allocator.free(slots, 2, 0)
    assert allocator.full.available() == 2


def test_a_shortage_in_one_pool_takes_nothing_from_the_other() -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=8, num_swa_slots=3, device="cpu")
    assert allocator.alloc(4) is None
    assert (allocator.full.available(), allocator.swa.available()) == (8, 3)


@pytest.mark.parametrize("evicted", [0, 2, 5])
def test_a_request_that_ends_gives_back_the_twins_it_still_has(evicted: int) -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=8, num_swa_slots=6, device="cpu")
    slots = _held(allocator, 5)
    allocator.free_swa(slots[:evicted], evicted)
    allocator.free(slots, 5, evicted)
    allocator.check_blocking()
    assert (allocator.full.available(), allocator.swa.available()) == (8, 6)
    assert not allocator.full_to_swa.any()


def test_an_evicted_token_that_is_not_counted_is_found() -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=8, num_swa_slots=6, device="cpu")
    slots, other = _held(allocator, 3), _held(allocator, 3)
    allocator.free_swa(slots[:1], 1)
    allocator.free(slots, 3, evicted=0)
    with pytest.raises(RuntimeError, match=r"sliding KV slots: \[0\] are in the free list twice"):
        allocator.check_blocking()
    with pytest.raises(RuntimeError, match="sliding KV slots: 3 slots are freed, but only 2 of 6 are out"):
        allocator.free(other, 3, evicted=0)


def test_a_twin_that_is_kept_by_mistake_is_found() -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=8, num_swa_slots=6, device="cpu")
    slots = _held(allocator, 3)
    allocator.free(slots, 3, evicted=1)
    with pytest.raises(RuntimeError, match=r"free full slots \[1\] have a twin"):
        allocator.check_blocking()


@pytest.mark.parametrize("evicted", [-1, 4])
def test_a_count_that_cannot_be_is_refused(evicted: int) -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=8, num_swa_slots=6, device="cpu")
    slots = _held(allocator, 3)
    with pytest.raises(ValueError, match=f"evicted={evicted} of n=3"):
        allocator.free(slots, 3, evicted)
    assert allocator.full.available() == 5


def test_the_sliding_pool_is_never_the_larger() -> None:
    with pytest.raises(ValueError, match="num_swa_slots=9 is more than num_slots=8"):
        SWATokenToKVPoolAllocator(num_slots=8, num_swa_slots=9, device="cpu")


@pytest.mark.parametrize("fenced", [True, False])
def test_taking_twins_back_races_with_a_forward_that_translates_unless_it_waits(fenced: bool) -> None:
    dev = devices.get("sim")
    schedule, forward = dev.Stream(), dev.Stream()
    with dev.stream(schedule):
        allocator = SWATokenToKVPoolAllocator(8, 6, "sim", streams=(schedule,))
        slots = _held(allocator, 5)
    dev.synchronize()
    with refimpl.record("sim") as recording:
        recording.name(allocator.full_to_swa, "full_to_swa")
        with dev.stream(forward):
            snapshot = allocator.translate(slots)
            read_done = forward.record_event()
        with dev.stream(schedule):
            if fenced:
                schedule.wait_event(read_done)
            allocator.free_swa(slots[:2], 2)
    dev.synchronize()
    assert snapshot.shape == slots.shape
    races = check(recording).races
    assert [(race.kind, race.bytes.buf) for race in races] == ([] if fenced else [("WAR", "full_to_swa")])


def test_pairing_new_slots_does_not_race_with_a_forward_of_others() -> None:
    dev = devices.get("sim")
    schedule, forward = dev.Stream(), dev.Stream()
    with dev.stream(schedule):
        allocator = SWATokenToKVPoolAllocator(8, 6, "sim", streams=(schedule,))
        slots = _held(allocator, 3)
    dev.synchronize()
    with refimpl.record("sim") as recording:
        with dev.stream(forward):
            snapshot = allocator.translate(slots)
        with dev.stream(schedule):
            more = _held(allocator, 2)
    dev.synchronize()
    assert (snapshot.tolist(), more.tolist()) == ([1, 2, 3], [4, 5])
    assert check(recording).races == ()


def test_with_a_stream_given_twins_come_back_on_it_alone() -> None:
    dev = devices.get("sim")
    schedule, other = dev.Stream(), dev.Stream()
    with dev.stream(schedule):
        allocator = SWATokenToKVPoolAllocator(8, 6, "sim", streams=(schedule,))
        slots = _held(allocator, 3)
    with dev.stream(other), pytest.raises(AssertionError, match="sliding KV slots: called on"):
        allocator.free_swa(slots, 3)
    dev.synchronize()
    allocator.check_blocking()


def _pool(sliding_layers: tuple[int, ...], layers: int = 4) -> SWAKVPool:
    return SWAKVPool(
        num_slots=7,
        num_swa_slots=3,
        layers=layers,
        sliding_layers=sliding_layers,
        kv_heads=1,
        head_dim=2,
        dtype=torch.float32,
        device="cpu",
    )


def test_each_layer_lies_in_the_pool_of_its_kind() -> None:
    pool = _pool((1, 3))
    assert [len(k) for k in pool.k] == [len(v) for v in pool.v] == [8, 4, 8, 4]
    for layer in range(4):
        pool.k[layer].fill_(layer)
    assert [pool.full.k[i].mean().item() for i in range(2)] == [0, 2]
    assert [pool.swa.k[i].mean().item() for i in range(2)] == [1, 3]
    assert [pool.is_sliding(layer) for layer in range(4)] == [False, True, False, True]


def test_tokens_move_in_both_pools_each_under_its_own_number() -> None:
    pool = _pool((1,), layers=2)
    pool.k[0][:, 0, 0] = torch.arange(8.0)
    pool.k[1][:, 0, 0] = torch.arange(4.0)
    pool.move(*(torch.tensor(slots) for slots in ([6, 7], [5, 6], [2, 3], [1, 2])))
    assert pool.k[0][:, 0, 0].tolist() == [0, 1, 2, 3, 4, 6, 7, 7]
    assert pool.k[1][:, 0, 0].tolist() == [0, 2, 3, 3]


@pytest.mark.parametrize("sliding_layers", [(), (0, 1, 2, 3), (4,), (-1,)])
def test_a_model_without_both_kinds_of_layers_is_refused(sliding_layers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="name some of the layers from 0 to 3, not all"):
        _pool(sliding_layers)


def test_a_sliding_allocator_speaks_of_the_pool_that_is_wrong() -> None:
    makes: Any = SWATokenToKVPoolAllocator
    with pytest.raises(ValueError, match="sliding KV slots: num_slots=0 leaves it without room"):
        makes(4, 0, "cpu")


def test_clear_frees_every_slot_of_both_pools_and_no_pair_is_left() -> None:
    allocator = SWATokenToKVPoolAllocator(num_slots=6, num_swa_slots=4, device="cpu")
    first = _held(allocator, 3)
    allocator.free_swa(first[:1], 1)
    allocator.clear()
    assert (allocator.full.available(), allocator.swa.available()) == (6, 4)
    allocator.check_blocking()
    assert allocator.translate(_held(allocator, 4)).tolist() == [1, 2, 3, 4]
