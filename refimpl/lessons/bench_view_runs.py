"""What the views are measured on: a made-up run of an overlapped loop, and a made-up file of a profiler."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from refimpl.program import Span, SpanKind, Trace, TraceSource

LAYERS = 6
KERNELS = ("rms_norm", "qkv_proj", "rope", "attention", "o_proj", "gate_up", "silu_mul", "down_proj")
LANES = ("host", "forward", "copy", "thread 7")


def loop(spans: int, seed: int = 1) -> Trace:
    """A host that launches a step's kernels one by one, is held until the step's copy is there, and builds the next.

    Args:
        spans: how many there are, to within one step.
        seed: of the durations.
    """
    random, made = Random(seed), list[Span]()
    host = gpu = 0.0
    step = 0
    while len(made) < spans:
        host = _work(made, "host", f"build {step}", host, random.uniform(80, 200))
        for _ in range(LAYERS):
            for name in KERNELS:
                submit, host = host, host + random.uniform(2, 5)
                gpu = max(gpu + 0.9, host + 2)
                end = gpu + random.uniform(4, 40)
                made.append(Span("forward", name, SpanKind.RUN, gpu, end, None, submit, host, "cudaLaunchKernel"))
                gpu = end
        submit, host = host, host + 4
        made.append(Span("copy", f"copy {step}", SpanKind.RUN, gpu + 2, gpu + 5, None, submit, host, "cudaMemcpyAsync"))
        held = max(host, gpu + 6)
        name = f"synchronize(copied {step})"
        made.append(Span("host", name, SpanKind.BLOCKED, host, held, call="cudaEventSynchronize"))
        host = held
        _work(made, "thread 7", f"detokenize {step}", host, random.uniform(60, 120))
        step += 1
    ordered = sorted(made, key=lambda span: (span.start_us, span.end_us))
    return Trace(LANES, tuple(ordered), TraceSource.SIMULATED, "a made-up loop")


def _work(made: list[Span], lane: str, name: str, start: float, us: float) -> float:
    made.append(Span(lane, name, SpanKind.HOST, start, start + us))
    return start + us


def write_profile(path: Path, megabytes: float) -> None:
    """A file as ``torch.profiler`` writes it, of about this size: operators, their launches, their kernels."""
    limit, written = megabytes * 1e6, 0
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a made-up GPU"}],\n"traceEvents": [\n')
        for number, event in enumerate(_events()):
            text = (",\n" if number else "") + json.dumps(event, indent=2)
            file.write(text)
            written += len(text)
            if written > limit:
                break
        file.write("\n]}\n")


def _events() -> Iterator[dict[str, Any]]:
    """Without end: a step is an annotation, and for each kernel an operator, a call, a kernel and its arrow."""
    us, number = 0.0, 1
    while True:
        begin = us
        for name in KERNELS * LAYERS:
            yield _slice("cpu_op", f"aten::{name}", us, 9.0, 1, 1, {"External id": number, "Input Dims": [[8, 4096]]})
            call = {"correlation": number, "cbid": 211}
            yield _slice("cuda_runtime", "cudaLaunchKernel", us + 2, 4.0, 1, 1, call)
            kernel = {"device": 0, "stream": 7, "correlation": number, "grid": [8, 1, 1], "block": [128, 1, 1]}
            full = f"void at::native::vectorized_{name}_kernel<4, at::native::Sum<float> >(int, float*)"
            yield _slice("kernel", full, us + 8, 8.0, 0, 7, kernel)
            yield {"ph": "s", "id": number, "pid": 1, "tid": 1, "ts": us + 2, "cat": "ac2g", "name": "ac2g"}
            us, number = us + 10.0, number + 1
        yield _slice("cuda_runtime", "cudaEventSynchronize", us, 30.0, 1, 1, {"correlation": number})
        us, number = us + 30.0, number + 1
        yield _slice("user_annotation", "step", begin, us - begin, 1, 1, {})


def _slice(cat: str, name: str, ts: float, dur: float, pid: int, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
