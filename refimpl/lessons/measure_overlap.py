"""The chapter's measurement: step time and host blocked under each fence, beside the control and the bound.

Variants are interleaved in one run. The bound comes first: a step takes at least the longer of the host's part and the
graph's, and at most their sum.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from refimpl import device as devices
from refimpl.fences import VerifyDone
from refimpl.lessons.keep import keep
from refimpl.lessons.overlap import OverlapLoop, Run

CONTROL = "one at a time"
HOST_MS = (0.2, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
BARE_REPLAYS = 20


@dataclass(frozen=True)
class Row:
    """One variant at one amount of host work; times in milliseconds are medians over ``n`` iterations.

    Args:
        variant: the fence, or the control.
        host_ms: host work asked for, per step.
        host_busy_ms: all that the host does per step but standing still: that work and the calls.
        graph_ms: the captured step, replayed back to back in the same run.
        step_ms, step_p10_ms, step_p90_ms: one iteration.
        blocked_before_ms, blocked_after_ms: host time in blocking calls before and after the launch.
        lower_ms, upper_ms: the bound, max and sum of host_busy_ms and graph_ms.
        over_lower, over_upper: step_ms over each of them.
        stale, of: steps that started from other lengths than the step before wrote, and how many could have.
        n: iterations measured.
    """

    variant: str
    host_ms: float
    host_busy_ms: float
    graph_ms: float
    step_ms: float
    step_p10_ms: float
    step_p90_ms: float
    blocked_before_ms: float
    blocked_after_ms: float
    lower_ms: float
    upper_ms: float
    over_lower: float
    over_upper: float
    stale: int
    of: int
    n: int


def measure(loop: OverlapLoop, host_ms: Sequence[float] = HOST_MS, rounds: int = 5, steps: int = 16) -> list[Row]:
    """Every fence and the control at every amount of host work, ``rounds`` times, interleaved.

    Args:
        loop: the loop to drive; its device and step decide what is measured.
        host_ms: amounts of host work per step, in milliseconds.
        rounds: how often the whole set is run.
        steps: iterations per run, warm-up included.

    Returns:
        Rows by amount of host work, then by variant, the control first.
    """
    variants: dict[str, Callable[[float], Run]] = {CONTROL: lambda us: loop.event_loop_normal(steps, us)}
    for fence in VerifyDone:
        variants[str(fence)] = lambda us, fence=fence: loop.event_loop_overlap(fence, steps, us)  # type: ignore[misc]
    runs: dict[tuple[float, str], list[Run]] = {(host, v): [] for host in host_ms for v in variants}
    bare: list[float] = []
    for _ in range(rounds):
        for host in host_ms:
            bare.append(bare_graph_ms(loop))
            for name, go in variants.items():
                runs[host, name].append(go(host * 1000))
    graph = statistics.median(bare)
    rows = []
    for host in host_ms:
        rows += [_row(name, host, graph, runs[host, name]) for name in variants]
    return rows


def measured(loop: OverlapLoop) -> list[Row]:
    """``measure`` with its defaults; where the runner replaces committed outputs, the rows are kept for the prose."""
    rows = measure(loop)
    keep("verify_done", {"rows": rows_json(rows)})
    return rows


def bare_graph_ms(loop: OverlapLoop) -> float:
    """The captured step's duration in milliseconds: replays back to back on the forward stream, timed with events."""
    begin, end = loop.dev.Event(enable_timing=True), loop.dev.Event(enable_timing=True)
    with loop.dev.stream(loop.forward_stream):
        loop.step.replay()
        begin.record()
        for _ in range(BARE_REPLAYS):
            loop.step.replay()
        end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / BARE_REPLAYS


def rows_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as JSON values, rounded to what they mean."""
    return [{k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(row).items()} for row in rows]


def table(rows: Sequence[Row]) -> str:
    """Step time and host held by amount of host work, one column a variant, for a terminal or a notebook."""
    names = {"synchronize": "synchronize", "wait": "wait", "none": "none", CONTROL: "control"}
    hosts = sorted({row.host_ms for row in rows})
    at = {(row.host_ms, row.variant): row for row in rows}
    head = "".join(f"{name:>14}" for name in names.values())
    lines = ["step, ms", f"{'host':>5}{'max(H,G)':>9}{'H+G':>7}{head}"]
    for host in hosts:
        first = at[host, CONTROL]
        steps = "".join(f"{at[host, name].step_ms:14.3f}" for name in names)
        lines.append(f"{host:5.1f}{first.lower_ms:9.2f}{first.upper_ms:7.2f}{steps}")
    lines += ["", "host held, ms: before the launch + after it", f"{'host':>5}{head}"]
    for host in hosts:
        mine = [at[host, name] for name in names]
        held = "".join(f"{f'{row.blocked_before_ms:.2f} + {row.blocked_after_ms:.2f}':>14}" for row in mine)
        lines.append(f"{host:5.1f}{held}")
    spread = max(max(row.step_p90_ms / row.step_ms, row.step_ms / row.step_p10_ms) - 1 for row in rows)
    some = rows[0]
    lines += ["", f"G = {some.graph_ms:.3f} ms. Medians of {some.n} steps; p10 and p90 are within {spread:.1%}."]
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """What the rows say, in sentences for a reader; every number in them is from this run."""
    wait, synchronize = _variant(rows, "wait"), _variant(rows, "synchronize")
    none, control = _variant(rows, "none"), _variant(rows, CONTROL)
    worst = max(wait, key=lambda row: row.over_lower)
    furthest = max(synchronize, key=lambda row: abs(row.over_upper - 1))
    saved = max(zip(synchronize, wait, strict=True), key=lambda pair: pair[0].step_ms - pair[1].step_ms)
    first = wait[0]
    return (
        f"Under `wait` a step took at most {worst.over_lower:.3f} times the lower bound max(H, G). "
        f"Under `synchronize` it stayed within {100 * abs(furthest.over_upper - 1):.1f} % of the upper bound H + G. "
        f"The difference was largest at {saved[0].host_ms:g} ms of host work: {saved[0].step_ms:.2f} ms against "
        f"{saved[1].step_ms:.2f} ms, {saved[0].step_ms / saved[1].step_ms:.2f} times as long. At {first.host_ms:g} ms "
        f"the host stood still for {first.blocked_after_ms:.2f} ms a step under `wait` as well, but after the launch. "
        f"Without a fence "
        f"{sum(r.stale for r in none)} of {sum(r.of for r in none)} steps started from stale lengths; under `wait`, "
        f"`synchronize` and the control, {sum(r.stale for r in (*wait, *synchronize, *control))} of "
        f"{sum(r.of for r in (*wait, *synchronize, *control))}."
    )


def demo(device: str) -> list[dict[str, Any]]:
    """Five seconds of the loop for a terminal: every fence and the control at one millisecond of host work."""
    from refimpl.lessons.captured_step import CapturedStep, shape_for

    loop = OverlapLoop(device, CapturedStep(device, shape_for(device)))
    return [
        {
            "fence": row.variant,
            "step ms": row.step_ms,
            "blocked before launch ms": row.blocked_before_ms,
            "blocked after ms": row.blocked_after_ms,
            "stale steps": f"{row.stale} of {row.of}",
        }
        for row in measure(loop, host_ms=(1.0,), rounds=2)
    ]


def machine_words(device: str) -> str:
    """The device in words, for a caption."""
    return "the simulated device, in virtual time" if device == "sim" else str(devices.get(device).get_device_name())


def _variant(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row.variant == name]


def _busy_ms(runs: Sequence[Run]) -> list[float]:
    return [(b.us - b.blocked_before_us - b.blocked_after_us) / 1000 for run in runs for b in run.beats]


def _row(name: str, host_ms: float, graph_ms: float, runs: Sequence[Run]) -> Row:
    beats = [beat for run in runs for beat in run.beats]
    times = sorted(beat.us / 1000 for beat in beats)
    step = statistics.median(times)
    # The host's own speed wanders by some percent within a run, so each variant is held to what its host did.
    busy = statistics.median(_busy_ms(runs))
    lower, upper = max(busy, graph_ms), busy + graph_ms
    return Row(
        variant=name,
        host_ms=host_ms,
        host_busy_ms=busy,
        graph_ms=graph_ms,
        step_ms=step,
        step_p10_ms=times[len(times) // 10],
        step_p90_ms=times[-1 - len(times) // 10],
        blocked_before_ms=statistics.median(beat.blocked_before_us for beat in beats) / 1000,
        blocked_after_ms=statistics.median(beat.blocked_after_us for beat in beats) / 1000,
        lower_ms=lower,
        upper_ms=upper,
        over_lower=step / lower,
        over_upper=step / upper,
        stale=sum(len(run.stale_steps) for run in runs),
        of=sum(run.steps - 1 for run in runs),
        n=len(beats),
    )
