"""How fast and how frugal the streaming checker is, beside the core of torch's own CUDA stream sanitizer, in one run.

Timed are the calls into each checker as a tap would make them: ours with byte ranges and the call site of each launch,
the peer's with data pointers and the stack trace that it takes itself. Every measurement has a fresh process, so that
neither inherits the other's memory.

W1, a pipeline: ten streams; each launch waits for the stream before it, reads what the last three wrote, writes a
buffer
of its own, and records.
W2, read-mostly: ten streams, each launch reads three shared buffers and writes a private one; one late write of a
shared buffer ends it.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from refimpl.order import Checker
from refimpl.program import Range

STREAMS = 10
SIZES = (10_000, 100_000, 1_000_000)
EVENTS_PER_LAUNCH = {"W1": 3, "W2": 1}
EXPECTED_REPORTS = {"W1": 0, "W2": 1}
"""W2's late write races with the reads of the nine other streams, all made at one line: one pair of sites."""


@dataclass(frozen=True)
class Sample:
    """One run of one checker: seconds spent in its calls, growth of the process, reports."""

    seconds: float
    rss_growth_mb: float
    reports: int


@dataclass(frozen=True)
class Row:
    """One workload at one size, ours and the peer's; rates are medians of ``n`` runs, growth is the largest."""

    name: str
    launches: int
    events: int
    events_per_s: float
    peer_events_per_s: float
    ratio: float
    rss_growth_mb: float
    peer_rss_growth_mb: float
    reports: int
    peer_reports: int
    expected_reports: int
    events_per_s_p10: float
    events_per_s_p90: float
    n: int


def measure(
    sizes: Sequence[int] = SIZES, repeats: int = 3, progress: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Both workloads at every size, ours and the peer alternating."""
    rows = []
    for name in EVENTS_PER_LAUNCH:
        for launches in sizes:
            ours, peers = [], []
            for repeat in range(repeats):
                progress(f"{name}, {launches:,} launches, run {repeat + 1} of {repeats}")
                ours.append(_in_fresh_process("ours", name, launches))
                peers.append(_in_fresh_process("peer", name, launches))
            rows.append(_row(name, launches, ours, peers))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows for a terminal."""
    names = ("", "launches", "events/s", "peer", "ratio", "MB", "peer MB", "reports", "peer", "expected")
    widths = (-3, 9, 10, 9, 6, 6, 8, 8, 8, 8)
    head = " ".join(name.ljust(-w) if w < 0 else name.rjust(w) for name, w in zip(names, widths, strict=True))
    lines = [
        f"{r.name:3} {r.launches:>9,} {r.events_per_s:>10,.0f} {r.peer_events_per_s:>9,.0f} {r.ratio:>6.1f} "
        f"{r.rss_growth_mb:>6.1f} {r.peer_rss_growth_mb:>8.1f} {r.reports:>8,} {r.peer_reports:>8,} "
        f"{r.expected_reports:>8,}"
        for r in rows
    ]
    return "\n".join([head, *lines])


def ours(name: str, launches: int) -> Sample:
    """Drive our streaming checker; its call sites are the lines of this function."""
    checker = Checker()
    streams, events = [f"s{i}" for i in range(STREAMS)], [f"e{i}" for i in range(STREAMS)]
    if name == "W1":
        out = [[Range(f"out{i}", 0, 4096)] for i in range(STREAMS)]
        reads = [[out[i - 1][0], out[i - 2][0], out[i - 3][0]] for i in range(STREAMS)]
    else:
        out = [[Range(f"private{i}", 0, 4096)] for i in range(STREAMS)]
        reads = [[Range(f"shared{k}", 0, 1 << 20) for k in range(3)]] * STREAMS
    before, start = rss_mb(), time.perf_counter()
    if name == "W1":
        for k in range(launches):
            i = k % STREAMS
            checker.wait(events[i - 1], streams[i])
            checker.launch(streams[i], reads[i], out[i], "step")
            checker.record(events[i], streams[i])
    else:
        for k in range(launches):
            i = k % STREAMS
            checker.launch(streams[i], reads[i], out[i], "step")
        checker.launch(streams[0], (), reads[0][:1], "late write")
    seconds = time.perf_counter() - start
    return Sample(seconds, rss_mb() - before, len(checker.races()))


def peer(name: str, launches: int) -> Sample:
    """Drive the core of torch's sanitizer in the same way; it runs on the CPU and takes its stack traces itself."""
    from torch.cuda._sanitizer import EventHandler

    handler = EventHandler()
    for stream in range(STREAMS):
        handler._handle_stream_creation(stream)
        handler._handle_event_creation(stream)
    pointers = range(1, 64)
    for pointer in pointers:
        handler._handle_memory_allocation(pointer)
    aliases: dict[int, list[str]] = {pointer: ["x"] for pointer in pointers}
    if name == "W1":
        reads = [{1 + (i - back) % STREAMS for back in (1, 2, 3)} for i in range(STREAMS)]
        writes = [{1 + i} for i in range(STREAMS)]
    else:
        reads, writes = [{1, 2, 3}] * STREAMS, [{20 + i} for i in range(STREAMS)]
    nothing: set[int] = set()
    reports = 0
    before, start = rss_mb(), time.perf_counter()
    if name == "W1":
        for k in range(launches):
            i = k % STREAMS
            handler._handle_event_wait((i - 1) % STREAMS, i)
            reports += len(handler._handle_kernel_launch(i, reads[i], writes[i], nothing, "step", aliases))
            handler._handle_event_record(i, i)
    else:
        for k in range(launches):
            i = k % STREAMS
            reports += len(handler._handle_kernel_launch(i, reads[i], writes[i], nothing, "step", aliases))
        reports += len(handler._handle_kernel_launch(0, nothing, {1}, nothing, "late write", aliases))
    seconds = time.perf_counter() - start
    return Sample(seconds, rss_mb() - before, reports)


def rss_mb() -> float:
    """Resident memory of this process in MB."""
    status = Path("/proc/self/status")
    if not status.exists():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _in_fresh_process(who: str, name: str, launches: int) -> Sample:
    code = f"from refimpl.lessons import bench_order as b; b.main({who!r}, {name!r}, {launches})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return Sample(**json.loads(done.stdout.splitlines()[-1]))


def main(who: str, name: str, launches: int) -> None:
    """One measurement, printed as JSON: what the fresh process does. A short run first warms the interpreter."""
    run = {"ours": ours, "peer": peer}[who]
    run(name, 2_000)
    print(json.dumps(asdict(run(name, launches))))


def _row(name: str, launches: int, mine: Sequence[Sample], peers: Sequence[Sample]) -> Row:
    events = launches * EVENTS_PER_LAUNCH[name]
    rates, peer_rates = sorted(events / s.seconds for s in mine), [events / s.seconds for s in peers]
    median, peer_median = statistics.median(rates), statistics.median(peer_rates)
    return Row(
        name=name,
        launches=launches,
        events=events,
        events_per_s=round(median),
        peer_events_per_s=round(peer_median),
        ratio=round(median / peer_median, 2),
        rss_growth_mb=round(max(s.rss_growth_mb for s in mine), 1),
        peer_rss_growth_mb=round(max(s.rss_growth_mb for s in peers), 1),
        reports=mine[0].reports,
        peer_reports=peers[0].reports,
        expected_reports=EXPECTED_REPORTS[name],
        events_per_s_p10=round(rates[len(rates) // 10]),
        events_per_s_p90=round(rates[-1 - len(rates) // 10]),
        n=len(mine),
    )


def rows_json(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The rows as JSON values."""
    return (asdict(row) for row in rows)
