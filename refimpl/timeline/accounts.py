"""``accounts``: who was busy, who stood idle and why, what held the host, how long a step took."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from refimpl.program import Program, SpanKind, Trace, UserError
from refimpl.timeline.idle import Idle, gaps
from refimpl.timeline.intervals import Interval, length, rest, union
from refimpl.timeline.names import stem


@dataclass(frozen=True)
class LaneAccount:
    """Busy and idle microseconds of one lane within the window; blocked host time is neither, see ``Blocked``."""

    lane: str
    busy_us: float
    idle_us: float


@dataclass(frozen=True)
class Blocked:
    """Host time that one call held.

    Args:
        call: name of the call without its step's number, such as ``"synchronize(verify_done)"``.
        times: how many calls held the host for more than nothing.
        us: their sum.
        before_us, after_us: the parts before and after the step's launch was issued; None without a program whose
            ops carry steps.
    """

    call: str
    times: int
    us: float
    before_us: float | None = None
    after_us: float | None = None


@dataclass(frozen=True)
class Accounts:
    """What a trace cost within a window of time.

    Args:
        from_us, to_us: the window.
        lanes: one account a lane, top to bottom.
        blocked: what held the host, longest first.
        gpu_idle: the stretches in which no stream ran anything.
        step_us: durations of the steps in the window; empty when no ``step_op`` was named.
    """

    from_us: float
    to_us: float
    lanes: tuple[LaneAccount, ...]
    blocked: tuple[Blocked, ...]
    gpu_idle: tuple[Idle, ...]
    step_us: tuple[float, ...] = ()

    @property
    def us(self) -> float:
        """Length of the window in microseconds."""
        return self.to_us - self.from_us

    @property
    def blocked_us(self) -> float:
        """Host time blocked, in microseconds."""
        return sum(blocked.us for blocked in self.blocked)

    @property
    def gpu_idle_us(self) -> float:
        """Time in microseconds in which no stream ran anything."""
        return sum(idle.us for idle in self.gpu_idle)

    @property
    def step_time_us(self) -> float | None:
        """Median duration of a step in microseconds, or None when no ``step_op`` was named."""
        return median(self.step_us) if self.step_us else None

    def lane(self, name: str) -> LaneAccount:
        """The account of one lane.

        Raises:
            UserError: there is no such lane.
        """
        for account in self.lanes:
            if account.lane == name:
                return account
        raise UserError(f"the trace has no lane {name!r}; it has {', '.join(account.lane for account in self.lanes)}")


def accounts(trace: Trace, program: Program | None = None, step_op: str | None = None, warmup: int = 2) -> Accounts:
    """Busy, idle and blocked time of a trace.

    Args:
        trace: scheduled, simulated or measured.
        program: splits blocked time by the step's launch, where its ops carry steps.
        step_op: name of the op whose starts mark the steps, without its number. The window is then from the start of
            step ``warmup`` to the start of the last; without it, the whole trace.
        warmup: steps left out at the beginning, where the pipeline fills.

    Raises:
        UserError: fewer than ``warmup + 2`` ops of that name ran.

    Example:
        >>> from refimpl.program import Launch, StreamSync, Stream
        >>> from refimpl.timeline import schedule
        >>> ops = (Launch(stream="forward", name="verify", us=88), StreamSync(stream="forward"))
        >>> account = accounts(schedule(Program(streams={"forward": Stream()}, ops=ops)))
        >>> account.us, account.blocked_us, account.lane("forward").busy_us
        (94.0, 82.0, 88.0)
    """
    starts = _step_starts(trace, step_op, warmup) if step_op is not None else []
    window = (starts[0], starts[-1]) if starts else (0.0, trace.end_us)
    lanes = tuple(_lane_account(trace, lane, window) for lane in trace.lanes)
    steps = tuple(later - earlier for earlier, later in pairwise(starts))
    return Accounts(*window, lanes, _blocked(trace, window, program, step_op), gaps(trace, window=window), steps)


def _step_starts(trace: Trace, step_op: str, warmup: int) -> list[float]:
    starts = sorted(s.start_us for s in trace.spans if s.kind is SpanKind.RUN and step_op in (s.name, stem(s.name)))
    if len(starts) < warmup + 2:
        raise UserError(
            f"{len(starts)} ops named {step_op!r} ran; steps after a warm-up of {warmup} need at least {warmup + 2}"
        )
    return starts[warmup:]


def _lane_account(trace: Trace, lane: str, window: Interval) -> LaneAccount:
    spans = [s for s in trace.spans if s.lane == lane]
    busy = union(((s.start_us, s.end_us) for s in spans if s.kind in (SpanKind.RUN, SpanKind.HOST)), window)
    held = union(((s.start_us, s.end_us) for s in spans if s.kind is SpanKind.BLOCKED), window)
    return LaneAccount(lane, length(busy), length(rest([*busy, *held], window)))


def _blocked(trace: Trace, window: Interval, program: Program | None, step_op: str | None) -> tuple[Blocked, ...]:
    launches = _launch_by_step(program, step_op) if program is not None and step_op is not None else {}
    calls: dict[str, list[tuple[float, bool | None]]] = {}
    for span in trace.spans:
        us = min(span.end_us, window[1]) - max(span.start_us, window[0])
        if span.kind is SpanKind.BLOCKED and us > 0:
            step = program.ops[span.op].step if program is not None and span.op is not None else None
            launch = launches.get(step) if step is not None else None
            before = span.op < launch if launch is not None and span.op is not None else None
            calls.setdefault(stem(span.name), []).append((us, before))
    return tuple(sorted((_total(call, held) for call, held in calls.items()), key=lambda blocked: -blocked.us))


def _total(call: str, held: list[tuple[float, bool | None]]) -> Blocked:
    us = sum(us for us, _ in held)
    if any(before is None for _, before in held):
        return Blocked(call, len(held), us)
    before_us = sum(us for us, before in held if before)
    return Blocked(call, len(held), us, before_us, us - before_us)


def _launch_by_step(program: Program, step_op: str) -> dict[int, int]:
    """The first op of that name in each step; a graph goes by its own name and by its nodes'."""
    found: dict[int, int] = {}
    for index, op in enumerate(program.ops):
        names = [getattr(op, "name", ""), *(node.name for node in getattr(op, "nodes", ()))]
        if op.step is not None and any(step_op in (name, stem(name)) for name in names):
            found.setdefault(op.step, index)
    return found


def table(rows: Mapping[str, Accounts], lane: str = "forward") -> str:
    """A table in text, one row an account: step time, host blocked and why, idle of one lane and of the GPU, in
    milliseconds.

    Args:
        rows: accounts by the name of their variant.
        lane: the stream whose idle share is shown.

    Example:
        >>> print(table({"wait": Accounts(0, 2000, (LaneAccount("forward", 1500, 500),), (), (), (1000, 1000))}))
              step  host blocked  forward idle  GPU idle
        wait  1.00          0.00          25 %       0 %
    """
    head = ("", "step", "host blocked", f"{lane} idle", "GPU idle")
    body = [head, *(_row(name, account, lane) for name, account in rows.items())]
    widths = [max(len(row[k]) for row in body) for k in range(len(head))]
    lines = (
        "  ".join(cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(r, widths, strict=True)))
        for r in body
    )
    return "\n".join(line.rstrip() for line in lines)


def _row(name: str, account: Accounts, lane: str) -> tuple[str, ...]:
    per = len(account.step_us) or 1
    share = [us / account.us if account.us else 0.0 for us in (account.lane(lane).idle_us, account.gpu_idle_us)]
    step = account.us / per / 1000
    return (name, f"{step:.2f}", f"{account.blocked_us / per / 1000:.2f}", *(f"{100 * part:.0f} %" for part in share))
