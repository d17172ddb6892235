"""A report in lines for a terminal, and several side by side."""

from collections.abc import Iterable, Mapping, Sequence

from refimpl.timeline.reports.report import BlockingCall, Report

TOP = 8
_LONGEST = 72
Row = tuple[str, ...]


def lines(report: Report, top: int = TOP) -> list[str]:
    """The accounts of one trace: what held the host, why the GPU was idle, how far the host was ahead, the critical
    path, what ran at the same time, and the lanes.

    Args:
        report: of a trace.
        top: rows of each list; what is beyond is summed in one line.
    """
    device = f", {report.device}" if report.device else ""
    spans = f"{_count(report.spans, 'span')} on {_count(len(report.lanes), 'lane')}"
    return [
        f"{report.source}: {_ms(report.us)} ms{device}, {spans}",
        *_blocking(report, top),
        *_idle(report, top),
        *_lead(report),
        *_path(report, top),
        *_together(report, top),
        *_lanes(report),
    ]


def comparison(reports: Mapping[str, Report]) -> list[str]:
    """The main figures of several traces side by side, in milliseconds, with the change from the first to the last.

    Args:
        reports: by the name of their column.

    Example:
        >>> from refimpl.program import Span, SpanKind, Trace, TraceSource
        >>> from refimpl.timeline.reports.report import report
        >>> def ran(us):
        ...     return report(Trace(("host", "s"), (Span("s", "x", SpanKind.RUN, 0, us),), TraceSource.MEASURED))
        >>> print(comparison({"before": ran(2000), "after": ran(1000)})[1])
        whole trace                         2.000    1.000      -50.0 %
    """
    all_of = list(reports.values())
    rows = [("ms", *reports, "change"), _figures("whole trace", [r.us for r in all_of])]
    rows.append(_figures("host blocked", [r.blocked_us for r in all_of]))
    for name in _holders(all_of):
        us, times = zip(*(_of_holder(r, name) for r in all_of), strict=True)
        rows.append(_figures(f"  {_cut(name)}", us))
        rows.append(("    times", *map(str, times), ""))
    rows.append(_figures("GPU idle", [r.gpu_idle.us for r in all_of]))
    shares = [r.gpu_idle.share for r in all_of]
    points = 100 * (shares[-1] - shares[0])
    rows.append(("GPU idle, share", *(_percent(share) for share in shares), f"{points:+.1f} points"))
    for cause in _causes(all_of):
        rows.append(_figures(f"  {_cut(cause)}", [_of_cause(r, cause) for r in all_of]))
    rows.append(("launch lead, median", *(_or_none(r.launch_lead.median_us) for r in all_of), ""))
    rows.append(("launches that found the GPU idle", *(str(r.launch_lead.late) for r in all_of), ""))
    return _aligned(rows)


def _blocking(report: Report, top: int) -> list[str]:
    times = sum(call.times for call in report.blocking)
    if not times:
        return ["", "Host blocked: by no call"]
    rows = [_held(call) for call in report.blocking[:top]]
    rest = report.blocking[top:]
    if rest:
        rows.append((f"and {len(rest)} more kinds", _ms(sum(call.us for call in rest)) + " ms", "", ""))
    return ["", f"Host blocked: {_ms(report.blocked_us)} ms in {_count(times, 'call')}", *_indented(rows)]


def _held(call: BlockingCall) -> Row:
    lane = "" if call.lane == "host" else f", on {call.lane}"
    what = f"{call.name}{lane}" if call.call is not None else lane.removeprefix(", ")
    return f"{call.call or call.name} × {call.times}", f"{_ms(call.us)} ms", f"longest {_ms(call.max_us)} ms", what


def _idle(report: Report, top: int) -> list[str]:
    idle = report.gpu_idle
    if idle.share == 1:
        return ["", "GPU idle: all the time, since the trace shows no GPU work"]
    gpus = "" if idle.gpus == 1 else f", over {idle.gpus} GPUs"
    rows = [(f"{_ms(one.us)} ms", f"× {one.times}", one.cause) for one in idle.by_cause[:top]]
    rest = idle.by_cause[top:]
    if rest:
        rows.append((f"{_ms(sum(one.us for one in rest))} ms", "", f"{_count(len(rest), 'more cause')}"))
    return ["", f"GPU idle: {_ms(idle.us)} ms, {_percent(idle.share)} of the time{gpus}", *_indented(rows, right=2)]


def _lead(report: Report) -> list[str]:
    lead = report.launch_lead
    if not lead.count:
        return ["", "Launch lead: unknown, since the trace shows no launch calls"]
    times = f"median {_or_none(lead.median_us)} ms, p10 {_or_none(lead.p10_us)} ms, p90 {_or_none(lead.p90_us)} ms"
    late = f"{lead.late} of {_count(lead.count, 'launch', 'launches')} found the GPU idle"
    return ["", f"Launch lead, from the call's return to the start of its work: {times}; {late}"]


def _path(report: Report, top: int) -> list[str]:
    whole = sum(part.us for part in report.critical_path)
    rows = [
        (
            f"{_ms(part.us)} ms",
            _percent(part.us / whole),
            f"× {part.times}",
            part.lane,
            f"{_cut(part.name)} ({part.kind})",
        )
        for part in report.critical_path[:top]
    ]
    rest = sum(part.us for part in report.critical_path[top:])
    if rest:
        rows.append((f"{_ms(rest)} ms", _percent(rest / whole), "", "", "the rest"))
    return ["", f"Critical path: {_ms(whole)} ms", *_indented(rows, right=3)]


def _together(report: Report, top: int) -> list[str]:
    rows = [
        (f"{_ms(one.us)} ms", _percent(one.share), f"of the less busy: {one.lanes[0]} with {one.lanes[1]}")
        for one in report.overlap[:top]
    ]
    counts = [f"{one.streams}: {_ms(one.us)} ms" for one in report.concurrency]
    head = "Streams that overlap" if rows else "Streams that overlap: none"
    return ["", head, *_indented(rows, right=2), f"Streams at once: {', '.join(counts)}"]


def _lanes(report: Report) -> list[str]:
    rows = [("lane", "busy ms", "blocked ms", "idle ms", "spans")]
    rows += [
        (one.lane, _ms(one.busy_us), _ms(one.blocked_us), _ms(one.idle_us), str(one.spans)) for one in report.lanes
    ]
    return ["", *_aligned(rows)]


def _holders(reports: Iterable[Report]) -> list[str]:
    """What held the host in any of the reports, the longest in any first."""
    longest: dict[str, float] = {}
    for report in reports:
        for name in map(_holder, report.blocking):
            longest[name] = max(longest.get(name, 0.0), _of_holder(report, name)[0])
    return sorted(longest, key=lambda name: (-longest[name], name))[:3]


def _holder(call: BlockingCall) -> str:
    return call.name if call.call is None else f"{call.call}, {call.name}"


def _of_holder(report: Report, name: str) -> tuple[float, int]:
    """Microseconds and times, over all threads."""
    found = [one for one in report.blocking if _holder(one) == name]
    return sum(one.us for one in found), sum(one.times for one in found)


def _causes(reports: Iterable[Report]) -> list[str]:
    longest: dict[str, float] = {}
    for report in reports:
        for one in report.gpu_idle.by_cause:
            longest[one.cause] = max(longest.get(one.cause, 0.0), one.us)
    return sorted(longest, key=lambda cause: (-longest[cause], cause))[:4]


def _of_cause(report: Report, cause: str) -> float:
    return sum(one.us for one in report.gpu_idle.by_cause if one.cause == cause)


def _figures(name: str, us: Sequence[float]) -> Row:
    change = "gone" if us[0] and not us[-1] else f"{100 * (us[-1] / us[0] - 1):+.1f} %" if us[0] else ""
    return (name, *map(_ms, us), change or ("new" if us[-1] else ""))


def _ms(us: float) -> str:
    return f"{round(us / 1000, 3) + 0.0:.3f}"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _or_none(us: float | None) -> str:
    return "unknown" if us is None else _ms(us)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _indented(rows: Sequence[Row], right: int = 0) -> list[str]:
    """Rows in columns; so many of the first stand to the right, else the second."""
    columns = range(right) if right else range(1, 2)
    return [f"  {line}" for line in _aligned(rows, set(columns))]


def _aligned(rows: Sequence[Row], right: set[int] | None = None) -> list[str]:
    """Rows in columns; those after the first stand to the right if none are named."""
    if not rows:
        return []
    to_right = set(range(1, len(rows[0]))) if right is None else right
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            word.rjust(width) if n in to_right else word.ljust(width)
            for n, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
