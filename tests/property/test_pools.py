"""Whatever requests come and go, no slot has two owners, every account is exact, and in the end everything is back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl import device as devices
from tests.unit.pools.office import CONTEXT, ROWS, SLOTS, SWA_SLOTS, Moves, Office, close, play, random_moves

SEEDS = 6
REQUESTS = 10_000
numbers = st.integers(0, CONTEXT)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), numbers, numbers),
        st.tuples(st.just("extend"), numbers, numbers),
        st.tuples(st.just("evict"), numbers, numbers),
        st.tuples(st.just("leave"), numbers, numbers),
    ),
    max_size=40,
)
swa_sizes = st.sampled_from([None, SWA_SLOTS, SLOTS])


@given(MOVES, swa_sizes)
@settings(max_examples=120, deadline=None)
def test_on_the_cpu_every_slot_is_the_one_that_lists_would_hand_out(moves: Moves, swa_slots: int | None) -> None:
    office = Office("cpu", ROWS, CONTEXT, SLOTS, swa_slots)
    before = office.sizes
    play(office, moves)
    office.check_blocking()
    close(office, before)


@given(MOVES, swa_sizes, st.integers(0, SEEDS - 1))
@settings(max_examples=15, deadline=None)
def test_on_one_stream_of_sim_the_same_holds_in_any_order(moves: Moves, swa_slots: int | None, seed: int) -> None:
    dev = devices.get("sim")
    with dev.schedule(dev.Adversary(seed=seed)), dev.stream(dev.Stream()):
        office = Office("sim", ROWS, CONTEXT, SLOTS, swa_slots)
        before = office.sizes
        play(office, moves)
        office.check_blocking()
        close(office, before)


@pytest.mark.parametrize("swa_slots", [None, SWA_SLOTS])
def test_after_ten_thousand_requests_no_slot_has_leaked(swa_slots: int | None) -> None:
    office = Office("cpu", ROWS, CONTEXT, SLOTS, swa_slots)
    before, seed = office.sizes, 0
    while office.admitted < REQUESTS:
        play(office, random_moves(seed, 400))
        office.check_blocking()
        seed += 1
    close(office, before)


def test_all_but_the_checks_leave_the_host_free() -> None:
    dev = devices.get("sim")
    with dev.schedule(dev.Timed()):
        office = Office("sim", ROWS, CONTEXT, SLOTS, SWA_SLOTS)
        dev.set_sync_debug_mode("error")
        try:
            play(office, random_moves(seed=1, n=60))
            with pytest.raises(RuntimeError):
                office.check_blocking()
        finally:
            dev.set_sync_debug_mode("default")
        office.check_blocking()
