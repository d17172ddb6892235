"""A long run of an overlapped loop, made up and yet causal: for tests and measurements of what draws whole runs."""

from dataclasses import dataclass, field
from random import Random

from refimpl.program import Span, SpanKind, Trace, TraceSource

LANES = ("host", "schedule", "plan", "forward", "copy", "thread 4711", "thread 4712")
LAYERS = ("rms_norm", "qkv_proj", "rope", "attention", "o_proj", "gate_up", "silu_mul", "down_proj")
TOKENISING, SENDING = LANES[5:]


def long_run(spans: int = 100_000, seed: int = 7, synchronizes: bool = False) -> Trace:
    """About so many spans: the host builds step n while the GPU runs step n - 1; two threads take the results.

    Args:
        spans: how many, to within one step.
        seed: of the durations.
        synchronizes: the host waits for each verify before it builds the next step, as before the overlap.
    """
    run = _Run(Random(seed), synchronizes)
    while len(run.spans) < spans:
        run.step()
    ordered = sorted(run.spans, key=lambda s: (s.start_us, s.end_us))[:spans]
    return Trace(LANES, tuple(ordered), TraceSource.MEASURED, "a made-up GPU")


@dataclass
class _Run:
    """The host's time, the tail of each other lane, and what has run."""

    random: Random
    synchronizes: bool
    host: float = 0.0
    number: int = 0
    tails: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LANES, 0.0))
    spans: list[Span] = field(default_factory=list)
    verified: float = 0.0
    copied: float = 0.0

    def step(self) -> None:
        n = self.number
        self.work(f"recv_requests {n}", 12)
        if self.synchronizes and n:
            self.block(f"synchronize(verify_done {n - 1})", self.verified)
        self.work(f"build {n}", 260 if n % 40 else 2100)  # now and then the host is late
        self.launch("schedule", f"prepare {n}", 14)
        self.launch("schedule", f"gather {n}", 6)
        self.launch("plan", f"plan {n}", 48, after=self.tails["schedule"])
        self.launch("plan", f"alloc {n}", 9)
        begun = max(self.tails["schedule"], self.tails["plan"])
        for layer in range(4):
            for name in LAYERS:
                self.launch("forward", name, 34 if name == "attention" else 17, after=begun if not layer else 0.0)
        self.launch("forward", f"sample {n}", 21)
        before, self.verified = self.verified, self.tails["forward"]
        self.launch("copy", f"copy tokens {n}", 5, after=self.verified)
        if n:
            self.block(f"synchronize(copied {n - 1})", self.copied)
            self.work(f"process {n - 1}", 90)
            self.other(TOKENISING, f"detokenize {n - 1}", max(self.host, before), 210)
            self.other(SENDING, f"send {n - 1}", self.tails[TOKENISING], 35)
        self.copied = self.tails["copy"]
        self.number += 1

    def us(self, mean: float) -> float:
        return round(mean * self.random.lognormvariate(0.0, 0.18), 3)

    def work(self, name: str, mean: float) -> None:
        begin, self.host = self.host, self.host + self.us(mean)
        self.spans.append(Span("host", name, SpanKind.HOST, begin, self.host))

    def block(self, name: str, until: float) -> None:
        begin, self.host = self.host, max(self.host, until) + self.us(3)
        self.spans.append(Span("host", name, SpanKind.BLOCKED, begin, self.host, call="cudaEventSynchronize"))

    def launch(self, lane: str, name: str, mean: float, after: float = 0.0) -> None:
        submit, self.host = self.host, self.host + self.us(4)
        begin = max(self.host + self.us(1.5), self.tails[lane] + 0.9, after)
        self.tails[lane] = begin + self.us(mean)
        call = "cudaMemcpyAsync" if lane == "copy" else "cudaLaunchKernel"
        self.spans.append(Span(lane, name, SpanKind.RUN, begin, self.tails[lane], None, submit, self.host, call))

    def other(self, lane: str, name: str, earliest: float, mean: float) -> None:
        begin = max(earliest, self.tails[lane])
        self.tails[lane] = begin + self.us(mean)
        self.spans.append(Span(lane, name, SpanKind.HOST, begin, self.tails[lane]))
