"""An overlapped loop of two streams over a captured decode step, and its un-overlapped twin.

It is the scheduler's loop with all but its order taken away: the host prepares step N+1 while the GPU runs step N, and
reads the results of a step one step late. The names are those of SGLang's scheduler.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from refimpl import device as devices
from refimpl.fences import VerifyDone, maybe_wait_verify_done
from refimpl.lessons.captured_step import CapturedStep
from refimpl.lessons.stopwatch import Stopwatch, held, named


@dataclass(frozen=True)
class Beat:
    """One iteration of a loop, on the host's clock.

    Args:
        us: the whole iteration.
        blocked_before_us: time in calls that block the host before the launch of the forward.
        blocked_after_us: time in calls that block it after.
    """

    us: float
    blocked_before_us: float
    blocked_after_us: float


@dataclass(frozen=True)
class Run:
    """What one run of a loop gave.

    Args:
        beats: per iteration, warm-up left out.
        stale_steps: steps whose preparation read other lengths than the forward before them wrote.
        steps: iterations, warm-up included.
        results: lengths as the host read them, one row ``[batch]`` a step.
    """

    beats: tuple[Beat, ...]
    stale_steps: tuple[int, ...]
    steps: int
    results: torch.Tensor


class OverlapLoop:
    """Two streams, one captured step, and a copy stream for results.

    Every step has rows of its own in ``batch_lens``, ``results`` and ``results_cpu``, so that ``new_seq_lens`` is the
    one buffer that two streams share without a further fence: forward writes it, schedule reads it a step later.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        step: the captured step.
        max_steps: rows to allocate.
    """

    WARM_UP = 4

    def __init__(self, device: str, step: CapturedStep, max_steps: int = 64) -> None:
        dev = devices.get(device)
        batch = step.shape.batch
        self.device, self.dev, self.step, self.max_steps = device, dev, step, max_steps
        self.schedule_stream, self.forward_stream, self.copy_stream = dev.Stream(), dev.Stream(), dev.Stream()
        self.verify_done: Any = None
        self.copy_done = [dev.Event() for _ in range(max_steps)]
        self.batch_lens = torch.zeros(max_steps, batch, dtype=torch.int64, device=device)
        self.results = torch.zeros(max_steps, batch, dtype=torch.int64, device=device)
        self.results_cpu = devices.pinned((max_steps, batch), torch.int64, device)
        self.stopwatch = Stopwatch(device)

    def event_loop_overlap(self, fence: VerifyDone, steps: int, host_us: float = 0.0) -> Run:
        """Prepare step N+1 while step N runs; read results one step late.

        Args:
            fence: what orders the schedule stream's read of ``new_seq_lens``.
            steps: iterations, warm-up included.
            host_us: host work per iteration, in microseconds.

        Order:
            Before the launch the host blocks under ``SYNCHRONIZE`` alone; after it, for the results of the step before.
        """
        return self._drive(lambda n: self.iteration_overlap(fence, n, host_us), steps)

    def event_loop_normal(self, steps: int, host_us: float = 0.0) -> Run:
        """The control: one step at a time, each read before the next is prepared. The host blocks after each launch."""
        return self._drive(lambda n: self.iteration_normal(n, host_us), steps)

    def iteration_overlap(self, fence: VerifyDone, n: int, host_us: float) -> None:
        """One turn of the overlapped loop: fence, prepare, build, launch; then the results of the step before."""
        with self.dev.stream(self.schedule_stream):
            self.order_after_forward(fence)
            self.prepare_for_decode(n)
        self.build(n, host_us)
        self.run_batch(n)
        if n > 0:
            self.process_batch_result_blocking(n - 1)

    def iteration_normal(self, n: int, host_us: float) -> None:
        """One turn of the control: prepare, build, launch, and at once the results of this very step."""
        with self.dev.stream(self.schedule_stream):
            self.prepare_for_decode(n)
        self.build(n, host_us)
        self.run_batch(n)
        self.process_batch_result_blocking(n)

    @held("{}(verify_done)")
    def order_after_forward(self, fence: VerifyDone) -> None:
        """The fence under study: what schedule is given next comes after the forward, if the variant orders at all."""
        maybe_wait_verify_done(fence, self.device, self.verify_done, self.schedule_stream)

    @named("prepare {}")
    def prepare_for_decode(self, n: int) -> None:
        """Take the lengths that step N starts from. Runs on the current stream, which must be ``schedule_stream``."""
        self.batch_lens[n].copy_(self.step.new_seq_lens)

    @named("build {}")
    def build(self, n: int, host_us: float) -> None:
        """The host's own work for step N, such as choosing its requests: ``host_us`` microseconds."""
        devices.host_work(self.device, host_us)

    def run_batch(self, n: int) -> None:
        """Queue step N behind its preparation, and the copy of its results behind it; the host does not block."""
        # Safe because: forward reads batch_lens[n] after schedule wrote it, and
        # overwrites new_seq_lens after schedule read it.
        self.forward_stream.wait_stream(self.schedule_stream)
        with self.dev.stream(self.forward_stream):
            self.load(n)
            self.forward(n)
            self.record_verify_done()
            self.publish(n)
        # Safe because: copy reads results[n] after forward wrote it.
        self.copy_stream.wait_stream(self.forward_stream)
        with self.dev.stream(self.copy_stream):
            self.copy_results(n)
            self.copy_done[n].record()
        self.stopwatch.launched()

    @named("load {}")
    def load(self, n: int) -> None:
        """Fill the graph's static input with the lengths of step N."""
        self.step.seq_lens.copy_(self.batch_lens[n])

    @named("forward {}")
    def forward(self, n: int) -> None:
        """The captured step; its last kernel writes ``new_seq_lens``."""
        self.step.replay()

    def record_verify_done(self) -> None:
        """Mark the point behind the forward; the capture of the step before is gone."""
        self.verify_done = self.verify_done or self.dev.Event()
        self.verify_done.record()

    @named("publish {}")
    def publish(self, n: int) -> None:
        """Keep the new lengths in a row that only step N writes."""
        self.results[n].copy_(self.step.new_seq_lens)

    @named("copy results {}")
    def copy_results(self, n: int) -> None:
        """Queue the copy of step N's row to pinned memory."""
        self.results_cpu[n].copy_(self.results[n], non_blocking=True)

    @held("synchronize(copy_done {})")
    def process_batch_result_blocking(self, n: int) -> list[int]:
        """The lengths after step N, on the host; blocks it until their copy has executed."""
        # Safe because: the host reads results_cpu[n] after copy_done[n].
        self.copy_done[n].synchronize()
        lengths: list[int] = self.results_cpu[n].tolist()
        return lengths

    def reset(self, steps: int) -> None:
        """Poison every row and start from known lengths; the host blocks until the device is idle."""
        if not self.WARM_UP < steps <= self.max_steps:
            raise ValueError(f"steps={steps}: use {self.WARM_UP + 1} to {self.max_steps}; {self.WARM_UP} are warm-up")
        self.dev.synchronize()
        # Poisoned, so that a row that was not written shows: lengths are never negative.
        for rows in (self.batch_lens, self.results):
            rows.fill_(-1)
        self.results_cpu.fill_(-1)
        self.step.reset(torch.arange(100, 100 + self.step.shape.batch))
        self.verify_done = None
        self.dev.synchronize()

    def _drive(self, iteration: Callable[[int], None], steps: int) -> Run:
        self.reset(steps)
        beats = []
        for n in range(steps):
            self.stopwatch.restart()
            iteration(n)
            beats.append(Beat(*self.stopwatch.read()))
        self.dev.synchronize()
        read, written = self.batch_lens[:steps].cpu(), self.results[:steps].cpu()
        stale = [n for n in range(1, steps) if not torch.equal(read[n], written[n - 1])]
        return Run(tuple(beats[self.WARM_UP :]), tuple(stale), steps, self.results_cpu[:steps].clone())
