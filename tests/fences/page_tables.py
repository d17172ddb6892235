"""Which slots the last graph of a step ran on, beside those that its requests held when it was launched."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.request import SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.play import play


def arrival(turn: int, prompt: Sequence[int], tokens: int, abort_after: int | None = None) -> Arrival:
    return Arrival(turn, tuple(prompt), SamplingParams(max_new_tokens=tokens, ignore_eos=True), abort_after)


# Two rows for four requests: each of the later ones takes over the row of one that ended, with its redundant forward
# in flight.
HANDOVER = [
    arrival(0, (3, 1, 4, 1, 5), 4),
    arrival(0, (9, 2, 6), 9),
    arrival(0, (5, 3), 6),
    arrival(2, (8, 9, 7, 9), 5),
]


@dataclass
class Step:
    """The page table that a replay ran on, and what the scheduler's rows held at its launch."""

    page_table: torch.Tensor
    held: torch.Tensor
    rows: list[int]
    lens: list[int]

    def foreign(self) -> int:
        """Slots of the page table that were not the requests' own at the launch."""
        pairs = zip(self.page_table.cpu(), self.held.cpu()[self.rows], self.lens, strict=True)
        return sum(int((found[:n] != held[:n]).sum()) for found, held, n in pairs)


@dataclass
class Watch:
    """Notes each step of a scheduler; the copies are made in stream order, and change nothing about it.

    Args:
        scheduler: to watch.
    """

    scheduler: Scheduler
    steps: list[Step] = field(default_factory=list)
    _held: tuple[torch.Tensor, list[int], list[int]] | None = None

    def __post_init__(self) -> None:
        # The last graph of a step runs on the page table that the last reader made.
        scheduler, runner = self.scheduler, self.scheduler.worker.runners()[-1]
        run_batch, replay = scheduler.run_batch, runner.replay

        def noting_launch(batch: Any) -> Any:
            table = scheduler.memory.req_to_token_pool.req_to_token.clone()
            self._held = (table, [req.row for req in batch.reqs], [req.kv_allocated_len for req in batch.reqs])
            return run_batch(batch)

        def noting_replay(batch: Any, *publish: Any, **options: Any) -> Any:
            outputs = replay(batch, *publish, **options)
            assert self._held is not None
            self.steps.append(Step(runner.inputs.page_table[: batch.batch_size].clone(), *self._held))
            return outputs

        scheduler.run_batch, runner.replay = noting_launch, noting_replay  # type: ignore[method-assign]

    def foreign_blocking(self, load: Sequence[Arrival] = HANDOVER) -> int:
        """Plays a load, and counts foreign slots over its steps."""
        self.steps.clear()
        play(self.scheduler, load)
        devices.get(self.scheduler.device).synchronize()
        return sum(step.foreign() for step in self.steps)
