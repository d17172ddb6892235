"""What a turn of the scheduler does on ``schedule_stream`` beside the engine's own work."""

import torch

from refimpl import device as devices
from refimpl.lessons.bench_engine.observed import Note


class ScheduleWork:
    """Device work in front of schedule's own, and a read by the host behind it.

    Args:
        device: `cuda` or `sim`.
        us: device time.
        item: whether the host reads one cell.

    Order:
        On ``schedule_stream``, behind a barrier at the top of the loop or behind the last launch. With `item` the host
        blocks until that stream has run dry, the barrier's wait included.
    """

    def __init__(self, device: str, us: float, item: bool) -> None:
        self._device, self._us, self._item = device, us, item
        self._cell = torch.zeros(1, dtype=torch.int64, device=device)

    def __call__(self, blocked: Note) -> None:
        """Queues the work, reads the cell, and tells how long that took."""
        if self._us > 0:
            devices.sleep_stream(self._device, self._us)
        if self._item:
            begin = devices.host_clock_us(self._device)
            self._cell.item()
            blocked(devices.host_clock_us(self._device) - begin)
