"""``Trace``: when a program ran. A schedule, a simulation and a measurement all give one."""

from dataclasses import dataclass
from enum import StrEnum


class SpanKind(StrEnum):
    """What a span shows: device work, a stream held by an event, a mark, the host held by a call, the host at work."""

    RUN = "run"
    WAIT = "wait"
    RECORD = "record"
    BLOCKED = "blocked"
    HOST = "host"


class TraceSource(StrEnum):
    """How we know the times: computed from a cost model, run on the simulated device, or measured on a GPU."""

    SCHEDULED = "scheduled"
    SIMULATED = "simulated"
    MEASURED = "measured"


@dataclass(frozen=True)
class Span:
    """A stretch of time on one lane.

    Args:
        lane: the stream, or ``"host"``.
        name: what ran.
        kind: what the span shows.
        start_us, end_us: execution in microseconds from the trace's beginning.
        op: index of the op in the program, when there is a program.
        submit_us, ready_us: when the host began and ended the call that queued it.
        call: the runtime's own name of that call, or of the one that held the host, such as ``"cudaLaunchKernel"``.
    """

    lane: str
    name: str
    kind: SpanKind
    start_us: float
    end_us: float
    op: int | None = None
    submit_us: float | None = None
    ready_us: float | None = None
    call: str | None = None

    @property
    def us(self) -> float:
        """Duration in microseconds."""
        return self.end_us - self.start_us


@dataclass(frozen=True)
class Trace:
    """Spans on lanes.

    Args:
        lanes: names, top to bottom.
        spans: in issue order where a program is behind them, else by start.
        source: how the times are known.
        device: what they were measured on, in words.
    """

    lanes: tuple[str, ...]
    spans: tuple[Span, ...]
    source: TraceSource
    device: str = ""

    @property
    def end_us(self) -> float:
        """When the last span ends, in microseconds; 0 for an empty trace."""
        return max((span.end_us for span in self.spans), default=0.0)
