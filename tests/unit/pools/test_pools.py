"""The pools' rules, one by one."""

from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.pools import KVPool, ReqToTokenPool, TokenToKVPoolAllocator

SEEDS = 20


class ViewAllocator(TokenToKVPoolAllocator):
    """The wrong allocator: it hands out a part of its stack."""

    def alloc(self, n: int) -> torch.Tensor | None:
        return self.alloc_view(n)


def test_the_row_freed_last_is_handed_out_first() -> None:
    pool = ReqToTokenPool(rows=4, max_context=2, device="cpu")
    assert pool.alloc(4) == [1, 2, 3, 4]
    pool.free(3)
    pool.free(1)
    assert pool.alloc(2) == [1, 3]


def test_too_many_rows_give_none_and_take_none() -> None:
    pool = ReqToTokenPool(rows=2, max_context=2, device="cpu")
    assert pool.alloc(3) is None
    assert (pool.available(), pool.alloc(0), pool.alloc(2)) == (2, [], [1, 2])


@pytest.mark.parametrize("row", [0, 1, 3])
def test_a_row_that_nobody_holds_cannot_be_freed(row: int) -> None:
    pool = ReqToTokenPool(rows=2, max_context=2, device="cpu")
    pool.alloc(1)
    pool.free(1)
    with pytest.raises(RuntimeError, match=f"row {row} is freed, but no request holds it"):
        pool.free(row)


def test_the_slot_freed_last_is_handed_out_first() -> None:
    slots = TokenToKVPoolAllocator(num_slots=6, device="cpu")
    taken = slots.alloc(6)
    assert taken is not None
    assert taken.dtype == torch.int32
    slots.free(taken[[4, 1, 3]], 3)
    assert _taken(slots, 1) == [4]
    assert _taken(slots, 2) == [2, 5]


def test_out_of_slots_gives_none_and_takes_none() -> None:
    slots = TokenToKVPoolAllocator(num_slots=3, device="cpu")
    assert slots.alloc(4) is None
    assert slots.available() == 3
    assert _taken(slots, 3) == [1, 2, 3]
    assert slots.alloc(1) is None
    assert _taken(slots, 0) == []


def test_slots_handed_out_keep_their_values_when_others_are_freed() -> None:
    for allocator, kept in ((TokenToKVPoolAllocator, True), (ViewAllocator, False)):
        slots = allocator(num_slots=4, device="cpu")
        old, new = slots.alloc(2), slots.alloc(2)
        assert old is not None
        assert new is not None
        before = new.tolist()
        slots.free(old, 2)
        assert (new.tolist() == before) is kept


@pytest.mark.parametrize(("allocator", "right"), [(TokenToKVPoolAllocator, True), (ViewAllocator, False)])
def test_a_forward_reads_its_own_slots_while_others_are_freed(
    allocator: type[TokenToKVPoolAllocator], right: bool
) -> None:
    dev = devices.get("sim")
    seen = [_read_by_a_forward(dev, allocator, seed) for seed in range(SEEDS)]
    assert all(read == promised for read, promised in seen) is right


def _read_by_a_forward(
    dev: Any, allocator: type[TokenToKVPoolAllocator], seed: int
) -> tuple[list[list[int]], list[list[int]]]:
    with dev.schedule(dev.Adversary(seed=seed)):
        schedule, forward = dev.Stream(), dev.Stream()
        reads, promised, alive = [], [], []
        with dev.stream(schedule):
            slots = allocator(num_slots=12, device="sim", streams=(schedule,))
            held = slots.alloc(3)
            for _ in range(3):
                new = slots.alloc(3)
                assert new is not None
                promised.append(new.clone())
                forward.wait_stream(schedule)
                with dev.stream(forward):
                    reads.append(new + 0)
                slots.free(held, 3)
                alive.append(new)  # what the engine's keep-alive ring does
                held = new
        dev.synchronize()
        return [t.tolist() for t in reads], [t.tolist() for t in promised]


def test_an_account_that_differs_from_the_tensor_is_refused() -> None:
    slots = TokenToKVPoolAllocator(num_slots=4, device="cpu")
    taken = slots.alloc(3)
    assert taken is not None
    with pytest.raises(RuntimeError, match=r"free\(\) of 2 slots was given a tensor of shape \[3\]"):
        slots.free(taken, 2)
    slots.free(taken, 3)
    slots.check_blocking()


def test_more_slots_than_are_out_cannot_come_back() -> None:
    slots = TokenToKVPoolAllocator(num_slots=4, device="cpu")
    taken = slots.alloc(2)
    assert taken is not None
    slots.free(taken, 2)
    with pytest.raises(RuntimeError, match="2 slots are freed, but only 0 of 4 are out"):
        slots.free(taken, 2)


@pytest.mark.parametrize(("freed", "named"), [([1, 1], r"\[1\]"), ([0, 2], r"\[0\]"), ([2, 9], r"\[9\]")])
def test_the_check_names_slots_that_came_back_twice_or_are_none(freed: list[int], named: str) -> None:
    slots = TokenToKVPoolAllocator(num_slots=4, device="cpu")
    slots.alloc(2)
    slots.free(torch.tensor(freed), 2)
    with pytest.raises(RuntimeError, match=f"KV slots: {named} are in the free list twice"):
        slots.check_blocking()


def test_an_allocator_with_a_stream_refuses_calls_on_another() -> None:
    dev = devices.get("sim")
    schedule, other = dev.Stream(), dev.Stream()
    with dev.stream(schedule):
        slots = TokenToKVPoolAllocator(num_slots=4, device="sim", streams=(schedule,))
        taken = slots.alloc(2)
    assert taken is not None
    with dev.stream(other):
        with pytest.raises(AssertionError, match="which nothing orders with its tables"):
            slots.alloc(1)
        with pytest.raises(AssertionError, match="which nothing orders with its tables"):
            slots.free(taken, 2)
    assert slots.available() == 2


def test_keys_and_values_move_as_if_all_were_read_first() -> None:
    pool = KVPool(num_slots=5, layers=2, kv_heads=1, head_dim=2, dtype=torch.float32, device="cpu")
    for layer in range(2):
        pool.k[layer][:, 0, 0] = torch.arange(6) + 10 * layer
        pool.v[layer][:, 0, 1] = torch.arange(6) - 10 * layer
    pool.move(torch.tensor([2, 4, 3, 5], dtype=torch.int32), torch.tensor([1, 2, 3, 0], dtype=torch.int32))
    after = torch.tensor([5, 2, 4, 3, 4, 5])
    for layer in range(2):
        assert torch.equal(pool.k[layer][:, 0, 0], (after + 10 * layer).float())
        assert torch.equal(pool.v[layer][:, 0, 1], (after - 10 * layer).float())


@pytest.mark.parametrize(
    "make",
    [
        lambda: ReqToTokenPool(rows=0, max_context=1, device="cpu"),
        lambda: ReqToTokenPool(rows=1, max_context=0, device="cpu"),
        lambda: TokenToKVPoolAllocator(num_slots=0, device="cpu"),
        lambda: KVPool(1, 1, 1, 0, torch.float32, "cpu"),
    ],
)
def test_a_pool_without_room_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="=0 leaves it without room"):
        make()


@pytest.mark.parametrize("pool", [ReqToTokenPool(2, 2, "cpu"), TokenToKVPoolAllocator(2, "cpu")])
def test_less_than_nothing_cannot_be_taken(pool: Any) -> None:
    with pytest.raises(ValueError, match=r"alloc\(-1\) asks for fewer than no"):
        pool.alloc(-1)


def _taken(slots: TokenToKVPoolAllocator, n: int) -> list[int]:
    taken = slots.alloc(n)
    assert taken is not None
    return [int(slot) for slot in taken.tolist()]
