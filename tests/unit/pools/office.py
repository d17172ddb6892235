"""What a scheduler does to the pools, without a model, beside lists on the host that say what has to come out."""

import random
from dataclasses import dataclass, field

import torch

from refimpl.engine.pools import ReqToTokenPool, SWATokenToKVPoolAllocator, TokenToKVPoolAllocator

ROWS, CONTEXT, SLOTS, SWA_SLOTS = 4, 12, 24, 10
Moves = list[tuple[str, int, int]]
"""Per move: its kind, which of the requests that are there, and how many tokens."""

Allocator = TokenToKVPoolAllocator | SWATokenToKVPoolAllocator


@dataclass(eq=False)
class Held:
    """One request, with the slots that the lists gave it."""

    row: int
    slots: list[int] = field(default_factory=list)
    twins: list[int] = field(default_factory=list)
    evicted: int = 0


class Office:
    """Requests that come, grow, leave the window behind and go, on the device and in the lists alike.

    What the device hands out is kept and compared at the end: nothing here waits for the device.
    """

    def __init__(self, device: str, rows: int, context: int, slots: int, swa_slots: int | None = None) -> None:
        self.table = ReqToTokenPool(rows, context, device)
        self.swa = None if swa_slots is None else SWATokenToKVPoolAllocator(slots, swa_slots, device)
        self.allocator: Allocator = self.swa or TokenToKVPoolAllocator(slots, device)
        self.free = list(range(slots, 0, -1))
        self.free_twins = list(range(swa_slots or 0, 0, -1))
        self.held: list[Held] = []
        self.admitted = 0
        self.promised: list[tuple[torch.Tensor, list[int]]] = []

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.free), len(self.free_twins)

    def admit(self, n: int) -> Held | None:
        rows = self.table.alloc(1)
        if rows is None:
            return None
        held = Held(rows[0])
        if self.extend(held, n):
            self.held.append(held)
            self.admitted += 1
            return held
        self.table.free(held.row)
        return None

    def extend(self, held: Held, n: int) -> bool:
        begin, end = len(held.slots), len(held.slots) + n
        if end > self.table.max_context:
            return False
        slots = self.allocator.alloc(n)
        short = n > len(self.free) or (self.swa is not None and n > len(self.free_twins))
        assert (slots is None) == short
        if slots is None:
            return False
        self.table.req_to_token[held.row, begin:end] = slots
        held.slots += [self.free.pop() for _ in range(n)]
        self.promised.append((slots, held.slots[begin:]))
        if self.swa is not None:
            held.twins += [self.free_twins.pop() for _ in range(n)]
            self.promised.append((self.swa.translate(slots), held.twins[begin:]))
        return True

    def evict(self, held: Held, upto: int) -> None:
        """The tokens before `upto` leave the window."""
        begin, end = held.evicted, max(held.evicted, min(upto, len(held.slots)))
        assert self.swa is not None
        self.swa.free_swa(self.table.req_to_token[held.row, begin:end], end - begin)
        self.free_twins += held.twins[begin:end]
        held.twins[begin:end] = [0] * (end - begin)
        held.evicted = end
        self.promised.append((self._translated(held), list(held.twins)))

    def leave(self, held: Held) -> None:
        """A request ends, is aborted or retracted: to the pools it is the same."""
        n = len(held.slots)
        slots = self.table.req_to_token[held.row, :n]
        if self.swa is None:
            self.allocator.free(slots, n)
        else:
            self.swa.free(slots, n, held.evicted)
            self.free_twins += held.twins[held.evicted :]
        self.free += held.slots
        self.table.free(held.row)
        self.held.remove(held)

    def check_blocking(self) -> None:
        """Every promise was kept, the accounts agree, and nobody holds what another holds."""
        for given, expected in self.promised:
            assert given.tolist() == expected
        self.promised.clear()
        self.allocator.check_blocking()
        full = self.allocator if self.swa is None else self.swa.full
        assert isinstance(full, TokenToKVPoolAllocator)
        assert (full.available(), full.free_slots_blocking()) == (len(self.free), self.free)
        if self.swa is not None:
            assert (self.swa.swa.available(), self.swa.swa.free_slots_blocking()) == (
                len(self.free_twins),
                self.free_twins,
            )
        taken = [slot for held in self.held for slot in held.slots]
        assert len(taken) == len(set(taken))
        assert self.table.available() == self.table.rows - len(self.held)
        assert not self.table.req_to_token[0].any().item()

    def _translated(self, held: Held) -> torch.Tensor:
        assert self.swa is not None
        return self.swa.translate(self.table.req_to_token[held.row, : len(held.slots)])


def play(office: Office, moves: Moves) -> None:
    """Makes the moves that can be made; `which` is one of those who are there."""
    for move, which, n in moves:
        if move == "admit":
            office.admit(n)
        elif office.held:
            held = office.held[which % len(office.held)]
            if move == "extend":
                office.extend(held, n)
            elif move == "leave":
                office.leave(held)
            elif office.swa is not None:
                office.evict(held, n)


def close(office: Office, before: tuple[int, int]) -> None:
    """Everybody leaves, and all is there again."""
    for held in list(office.held):
        office.leave(held)
    office.check_blocking()
    assert office.sizes == before
    assert sorted(office.free) == list(range(1, len(office.free) + 1))
    assert sorted(office.free_twins) == list(range(1, len(office.free_twins) + 1))


def random_moves(seed: int, n: int) -> Moves:
    draw = random.Random(seed)
    kinds = ["admit", "extend", "extend", "evict", "leave"]
    return [(draw.choice(kinds), draw.randrange(CONTEXT), draw.randrange(1, CONTEXT + 1)) for _ in range(n)]
