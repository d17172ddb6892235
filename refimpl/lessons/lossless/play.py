"""Plays a load on a scheduler: requests enter between two turns of its loop, and leave it when they like."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refimpl import device as devices
from refimpl.engine.kv_transfer import Prebuilt
from refimpl.engine.output_processor import Output
from refimpl.engine.prefill_rank import PrefillRank
from refimpl.engine.request import Req
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.lossless.load import Arrival
from refimpl.program.errors import UserError


class LeakError(UserError):
    """Rows or slots did not come back, or outputs do not add up to what a request holds."""


class StuckError(UserError):
    """A load does not come to its end."""


@dataclass(frozen=True)
class Played:
    """What came of a load.

    Args:
        reqs: the requests, in the order of their arrival.
        turns: of the loop.
        retracted: how often a request was sent back to wait.
    """

    reqs: tuple[Req, ...]
    turns: int
    retracted: int


def prefilled_blocking(scheduler: Scheduler, load: Sequence[Arrival]) -> dict[Arrival, Prebuilt]:
    """What a rank beside the scheduler's prefilled for the requests of a load that ask for it, in their order.

    A run that is recorded, or that an adversary orders, has this done before.

    Order:
        The host blocks until the device is idle.
    """
    asked = [arrival for arrival in load if arrival.prebuilt]
    if not asked:
        return {}
    rank = PrefillRank.beside(scheduler)
    return {arrival: rank.prefill_blocking(list(arrival.prompt_ids), arrival.params) for arrival in asked}


def play(
    scheduler: Scheduler,
    load: Sequence[Arrival],
    between: Callable[[int], None] | None = None,
    prebuilt: Mapping[Arrival, Prebuilt] | None = None,
) -> Played:
    """Runs a load to its end, and checks that everything it held came back.

    Args:
        scheduler: idle; idle again afterwards.
        load: in the order of its arrivals.
        between: called with each turn's number before it, to disturb the device.
        prebuilt: as :func:`prefilled_blocking` gives it; None to have it made now.

    Raises:
        LeakError: a row or a slot is missing afterwards, or the outputs told differ from those kept.
        StuckError: the loop turns more often than any order of this load needs.

    Order:
        The host blocks for results as the loop does, and for the check of the free slots at the end.
    """
    played = play_unchecked(scheduler, load, between, prebuilt)
    check_idle_blocking(scheduler)
    return played


def play_unchecked(
    scheduler: Scheduler,
    load: Sequence[Arrival],
    between: Callable[[int], None] | None = None,
    prebuilt: Mapping[Arrival, Prebuilt] | None = None,
) -> Played:
    """The same without the check: the host blocks where the loop does, and nowhere else."""
    given = prefilled_blocking(scheduler, load) if prebuilt is None else prebuilt
    playing, retracted = _Playing(scheduler, load, given), scheduler.num_retracted
    most_turns = _most_turns(load)
    while playing.coming or scheduler.has_work():
        playing.enter()
        loop = scheduler.event_loop_overlap() if scheduler.config.overlap else scheduler.event_loop_normal()
        for outputs in loop:
            playing.hear(outputs)
            playing.turn += 1
            if playing.turn > most_turns:
                raise StuckError(
                    f"{len(load)} requests are not done after {most_turns} turns: some step brings nothing"
                )
            if between is not None:
                between(playing.turn)
            playing.enter()
            playing.leave()
        playing.turn += 1
    return Played(tuple(playing.reqs), playing.turn, scheduler.num_retracted - retracted)


def _most_turns(load: Sequence[Arrival]) -> int:
    """Turns in which each request ran alone, with a retraction before each of its tokens."""
    turns_a_token = 4
    return max(arrival.turn for arrival in load) + sum(
        turns_a_token * (1 + arrival.params.max_new_tokens) for arrival in load
    )


def check_idle_blocking(scheduler: Scheduler) -> None:
    """Checks that every row and every slot is free, once.

    Raises:
        LeakError: one is missing, or is there twice.
    """
    devices.get(scheduler.device).synchronize()
    memory = scheduler.memory
    rows, slots = memory.req_to_token_pool, memory.allocator
    if rows.available() != rows.rows:
        raise LeakError(f"{rows.rows - rows.available()} of {rows.rows} rows are not back: some request kept its own")
    if slots.available() != memory.num_slots:
        missing = memory.num_slots - slots.available()
        raise LeakError(f"{missing} of {memory.num_slots} slots are not back: some request kept its own")
    try:
        slots.check_blocking()
    except RuntimeError as error:
        raise LeakError(str(error)) from error


class _Playing:
    """Who is in the loop, and since when."""

    def __init__(self, scheduler: Scheduler, load: Sequence[Arrival], prebuilt: Mapping[Arrival, Prebuilt]) -> None:
        self.scheduler, self.coming, self._prebuilt = scheduler, deque(load), prebuilt
        self.turn = 0
        self.reqs: list[Req] = []
        self._told: dict[int, list[int]] = {}
        self._aborts: list[tuple[int, Req]] = []

    def enter(self) -> None:
        """Requests whose turn has come go to the inbox."""
        while self.coming and self.coming[0].turn <= self.turn:
            arrival = self.coming.popleft()
            req = Req(len(self.reqs), list(arrival.prompt_ids), arrival.params)
            self.reqs.append(req)
            self._told[req.rid] = []
            if arrival.abort_after is not None:
                self._aborts.append((self.turn + arrival.abort_after, req))
            if arrival.prebuilt:
                self.scheduler.prebuilt.add(req, self._prebuilt[arrival])
            else:
                self.scheduler.inbox.append(req)

    def leave(self) -> None:
        """Callers whose patience is over abort their requests."""
        for turn, req in self._aborts:
            if turn <= self.turn:
                self.scheduler.abort(req)
        self._aborts = [(turn, req) for turn, req in self._aborts if turn > self.turn]

    def hear(self, outputs: Sequence[Output]) -> None:
        """What was told of a request is what it holds, when it ends."""
        for output in outputs:
            told, req = self._told[output.rid], self.reqs[output.rid]
            told.extend(output.token_ids)
            if output.finish_reason is not None and told != req.output_ids:
                raise LeakError(f"request {req.rid} was told {told} and holds {req.output_ids}")
