"""Running an answer that is stream code: on the simulated device in many orders, or on a GPU with stalled streams."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from refimpl import device as devices
from refimpl.lessons.exercise_order import Rejected

WIDTH = 4
FIRST = 100
POISON = -7
STALL_US = 1000.0


@dataclass(frozen=True)
class Outcome:
    """What one run of an answer gave.

    Args:
        seen: the lengths that each step read.
        blocked: the step in which the host blocked, and how; None if it never did.
    """

    seen: list[list[int]]
    blocked: str | None


class Handover:
    """A loop whose schedule stream reads what the step before wrote on the forward stream.

    Every step writes other values, in two halves, so that a stale and a torn read both show; rows for what is read are
    poisoned.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        steps: iterations.
        stall: called before each read and each half of a write; it may hold up the current stream.
    """

    def __init__(self, device: str, steps: int, stall: Callable[[], None]) -> None:
        self.dev, self.steps, self._stall = devices.get(device), steps, stall
        self.schedule, self.forward, self.verify_done = self.dev.Stream(), self.dev.Stream(), self.dev.Event()
        self.new_seq_lens = torch.full((WIDTH,), FIRST, dtype=torch.int64, device=device)
        self.seen = torch.full((steps, WIDTH), POISON, dtype=torch.int64, device=device)
        self.at = 0
        self._calls: list[str] = []
        self.dev.synchronize()

    def run(self, answer: Callable[..., Any]) -> None:
        """Issues all steps; the device may still be at work when this returns.

        Raises:
            Rejected: a step does not call read and write once each, on the streams they belong to.
        """
        for step in range(self.steps):
            self.at = step
            self._calls.clear()
            answer(self.dev, self.schedule, self.forward, self.verify_done, self.read, self.write)
            if sorted(self._calls) != ["read", "write"]:
                made = " and ".join(f"{call}() {self._calls.count(call)} times" for call in ("read", "write"))
                raise Rejected(f"step {self.at} calls {made}: call each once.")

    def read(self) -> None:
        """Queue this step's read of ``new_seq_lens`` on the current stream."""
        self._require("read", self.schedule, "schedule")
        self._stall()
        self.seen[self.at].copy_(self.new_seq_lens)

    def write(self) -> None:
        """Queue this step's write of ``new_seq_lens`` on the current stream."""
        self._require("write", self.forward, "forward")
        for part in self.new_seq_lens.split(WIDTH // 2):
            self._stall()
            part.fill_(FIRST + self.at + 1)

    def lengths_blocking(self) -> list[list[int]]:
        """The lengths that each step read; blocks the host until all have run."""
        self.dev.synchronize()
        seen: list[list[int]] = self.seen.tolist()
        return seen

    def _require(self, call: str, stream: Any, name: str) -> None:
        self._calls.append(call)
        if self.dev.current_stream() != stream:
            raise Rejected(f"step {self.at} calls {call}() off its stream: call it under 'with dev.stream({name}):'.")


def judge(answer: Any, seeds: int = 30, steps: int = 6) -> str:
    """Runs an answer in as many orders as there are seeds, on the device that this process has; returns which it was.

    Raises:
        Rejected: not a function, a blocked host, or a step that read other lengths than the step before wrote.
    """
    if not callable(answer):
        raise Rejected(f"the answer is of type {type(answer).__name__}: give the function itself.")
    # sim and CUDA do not share a process, so a chapter that runs on a GPU is judged there.
    device = "cuda" if torch.cuda.is_initialized() else "sim"
    run = with_stalls if device == "cuda" else _on_sim
    blocked = None
    for seed in range(seeds):
        outcome = run(answer, seed, steps)
        for step, values in enumerate(outcome.seen):
            if values != [FIRST + step] * WIDTH:
                raise Rejected(_misread(step, values, seed))
        blocked = blocked or outcome.blocked
    if blocked:
        raise Rejected(f"every value is right, and the host stands still for it: {blocked}.")
    return device


def _on_sim(answer: Callable[..., Any], seed: int, steps: int) -> Outcome:
    from refimpl.device.simulator.ops import HostKind, HostStep, Observer

    class Watch(Observer):
        def __init__(self) -> None:
            self.blocked: list[str] = []

        def on_host(self, step: HostStep) -> None:
            if step.kind is not HostKind.WORK:
                self.blocked.append(f"step {loop.at} {_HOLDS[step.kind.value]}")

    sim = devices.get("sim")
    with sim.schedule(sim.Adversary(seed)), sim.stream(sim.default_stream()):
        loop, watch = Handover("sim", steps, lambda: None), Watch()
        with sim.observe(watch):
            loop.run(answer)
        return Outcome(loop.lengths_blocking(), watch.blocked[0] if watch.blocked else None)


_HOLDS = {
    "event_sync": "synchronizes with an event",
    "stream_sync": "synchronizes with a stream, or reads a device value",
    "device_sync": "synchronizes with the whole device",
    "event_query": "polls an event",
    "stream_query": "polls a stream",
    "staging": "copies from pageable memory",
}


def with_stalls(answer: Callable[..., Any], seed: int, steps: int, device: str = "cuda") -> Outcome:
    """One run in real time, in which a stall drawn by the seed stands before each read and each half of a write."""
    random = Random(seed)
    stalled_us = 0.0

    def stall() -> None:
        nonlocal stalled_us
        us = random.choice((0.0, STALL_US))
        stalled_us += us
        devices.sleep_stream(device, us)

    # Kernels are loaded at their first launch, which takes the host longer than any stall.
    Handover(device, 2, lambda: devices.sleep_stream(device, 1.0)).run(answer)
    loop = Handover(device, steps, stall)
    begin = devices.host_clock_us(device)
    loop.run(answer)
    host_us = devices.host_clock_us(device) - begin
    blocked = f"its calls took {host_us / 1000:.1f} ms while streams were stalled" if host_us > stalled_us / 2 else None
    return Outcome(loop.lengths_blocking(), blocked)


def _misread(step: int, values: list[int], seed: int) -> str:
    reader, hazard = f"read {step} on schedule", f"on new_seq_lens (seed {seed})"
    first, last = min(values) - FIRST - 1, max(values) - FIRST - 1
    if last >= step:
        return f"WAR {hazard}: write {last} on forward overwrote the lengths before {reader} had read them."
    torn = "lengths half written" if first != last else ""
    took = torn or (f"the lengths of write {last}" if last >= 0 else "the lengths from before the loop")
    return f"RAW {hazard}: {reader} took {took} before write {step - 1} on forward had written them all."
