"""The pools on a GPU: the same slots as the lists hand out, and the host never waits for one."""

import pytest

from refimpl import device as devices
from tests.unit.pools.office import CONTEXT, ROWS, SLOTS, SWA_SLOTS, Office, close, play, random_moves

MOVES = 2_000


@pytest.mark.gpu
@pytest.mark.parametrize("swa_slots", [None, SWA_SLOTS])
def test_on_a_stream_of_the_gpu_every_slot_is_the_right_one_and_the_host_is_free(swa_slots: int | None) -> None:
    dev = devices.get("cuda")
    with dev.stream(dev.Stream()):
        office = Office("cuda", ROWS, CONTEXT, SLOTS, swa_slots)
        before = office.sizes
        dev.set_sync_debug_mode("error")
        try:
            play(office, random_moves(seed=2, n=MOVES))
        finally:
            dev.set_sync_debug_mode("default")
        office.check_blocking()
        close(office, before)
