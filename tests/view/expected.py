"""What refimpl says of a program, in the words of ``judge.mjs``, and where the component says something else."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from refimpl.order import build, check
from refimpl.program import Program, ProgramError, SpanKind, Trace, Verdict, program_to_json
from refimpl.timeline import Idle, accounts, gaps, schedule, stem
from tests.view.expected_order import Order, Said, answers_differ, order_differs, races_differ, stuck_differ
from tests.view.expected_values import NEAR, wrong_reads_differ


def judge(programs: list[Program]) -> list[Said]:
    """What the component's model says of each program."""
    given = [{"program": program_to_json(program), "seed": k} for k, program in enumerate(programs)]
    command = ["node", str(Path(__file__).parent / "judge.mjs")]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    said: list[Said] = json.loads(done.stdout)
    return said


def compare(programs: list[Program]) -> list[str]:
    """Where the two differ, in words; empty when they agree."""
    said = judge(programs)
    return [f"{p.id}: {text}" for p, s in zip(programs, said, strict=True) for text in differences(p, s)]


def differences(program: Program, said: Said) -> Iterator[str]:
    """One line for each thing on which the component and refimpl disagree."""
    graph = build(program)
    order = Order(graph, program)
    verdict = check(program).verdict
    if said["verdict"] != verdict:
        yield f"verdict: {said['verdict']} is {verdict}"
    yield from stuck_differ(said, graph)
    yield from order_differs(said, order)
    yield from answers_differ(said, order)
    yield from races_differ(said, order)
    try:
        trace = schedule(program)
    except ProgramError as error:
        if verdict is not Verdict.DEADLOCK:
            yield f"no times: {error}"
        return
    yield from _times(said, trace)
    yield from _accounts(said, trace)
    yield from wrong_reads_differ(said, order, trace)


def _times(said: Said, trace: Trace) -> Iterator[str]:
    used = {span.lane for span in trace.spans} | {"host"}
    if [lane for lane in said["lanes"] if lane in used] != [lane for lane in trace.lanes if lane in used]:
        yield f"lanes: {said['lanes']} are {trace.lanes}"
    here = [(s["op"], s["lane"], s["name"], s["kind"]) for s in said["spans"]]
    there = [(s.op, s.lane, s.name, str(s.kind)) for s in trace.spans]
    if here != there:
        yield f"spans: {[pair for pair in zip(here, there, strict=False) if pair[0] != pair[1]][:3]}"
        return
    for s, span in zip(said["spans"], trace.spans, strict=True):
        for field, us in (
            ("start", span.start_us),
            ("end", span.end_us),
            ("submit", span.submit_us),
            ("ready", span.ready_us),
        ):
            if us is None or abs(s[field] - us) > NEAR:
                yield f"time: {field} of op {span.op} {span.name} is {us}, not {s[field]}"


def _accounts(said: Said, trace: Trace) -> Iterator[str]:
    here = said["account"]
    steps = len(here["beats"])
    step = {"step_op": "verify", "warmup": max(0, min(2, steps - 3))} if here["perStep"] else {}
    there = accounts(trace, **step)  # type: ignore[arg-type]
    if not trace.end_us:
        return
    runs = [s for s in trace.spans if s.kind is SpanKind.RUN and "verify" in (s.name, stem(s.name))]
    if len(runs) != steps:
        yield f"steps: {steps} are {len(runs)}"
    yield from _same("window", (here["from"], here["to"]), (there.from_us, there.to_us))
    yield from _same(
        "blocked calls", _rows(here["calls"], "call", "times", "us"), {b.call: (b.times, b.us) for b in there.blocked}
    )
    mine, theirs = _rows(here["lanes"], "lane", "busy", "idle"), {a.lane: (a.busy_us, a.idle_us) for a in there.lanes}
    both = mine.keys() & theirs.keys()
    yield from _same("lanes", {name: mine[name] for name in both}, {name: theirs[name] for name in both})
    per = max(1, len(there.step_us))
    yield from _same("blocked", here["blocked"], there.blocked_us / per)
    yield from _same("GPU idle", here["idle"], there.gpu_idle_us / there.us if there.us else 0.0)
    yield from _same_gaps("GPU", [(g["from"], g["to"], g["cause"]) for g in said["gpuIdle"]], there.gpu_idle)
    for lane in said["lanes"]:
        if lane != "host" and not lane.startswith("agent "):
            mine = [(start, end, cause) for name, start, end, cause in said["gaps"] if name == lane]
            yield from _same_gaps(lane, mine, gaps(trace, lane))


def _rows(rows: list[Said], key: str, *fields: str) -> dict[str, tuple[float, ...]]:
    return {row[key]: tuple(row[field] for field in fields) for row in rows}


def _same(what: str, here: Any, there: Any) -> Iterator[str]:
    def flat(x: Any) -> list[Any]:
        if isinstance(x, dict):
            return [v for key in sorted(x) for v in (key, *flat(x[key]))]
        return [v for part in x for v in flat(part)] if isinstance(x, tuple | list) else [x]

    a, b = flat(here), flat(there)
    if len(a) != len(b) or any(p != q if isinstance(p, str) else abs(p - q) > NEAR for p, q in zip(a, b, strict=True)):
        yield f"{what}: {here} is {there}"


def _same_gaps(what: str, here: list[tuple[float, float, str]], idle: tuple[Idle, ...]) -> Iterator[str]:
    there = [(i.from_us, i.to_us, i.cause) for i in idle if i.us > NEAR]
    yield from _same(f"gaps of {what}", [g for g in here if g[1] - g[0] > NEAR], there)
