"""A whole run: every job of the schedule in a process of its own, on one GPU each, until the time is over."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from refimpl.train import harvest
from refimpl.train.plan import RESUMED_SCHEDULE, SCHEDULE, Span

KEPT_EVERY_SECONDS = 20.0
"""How often what is finished is copied out: a run that is cut short still leaves it."""
GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Run:
    """What a run is given.

    Args:
        corpus: folder of the token files.
        work: a folder for weights, shards, reports and logs, best in memory; emptied first.
        out: where the results are packed (`harvest.keep`).
        device: `cuda` or `cpu`.
        seconds: for everything.
        gpus: how many there are; jobs share them if they are few.
        sizes: which sizes are trained.
        resumed: the weights that it goes on from; None starts anew.
        rehearse: whether batches are tiny.
        machine: what it runs on, in words: device, driver, torch, date.
    """

    corpus: Path
    work: Path
    out: Path
    device: str
    seconds: float
    gpus: int
    sizes: tuple[str, ...]
    resumed: Path | None
    rehearse: bool
    machine: Mapping[str, str]

    def command(self, span: Span, deadline: float) -> list[str]:
        """The job's command line."""
        words = [sys.executable, "-m", "refimpl", "train", "job", "--job", span.job, "--size", span.size]
        words += ["--corpus", str(self.corpus), "--work", str(self.work), "--device", self.device]
        words += ["--until", f"{deadline:.1f}"]
        if self.resumed is not None:
            words += ["--resume", str(self.resumed)]
        return [*words, "--rehearse"] if self.rehearse else words


def execute(run: Run) -> int:
    """Run the schedule; returns how many jobs failed. Results are in `run.out`, also of a run with failures."""
    start = time.time()
    about = {"machine": {**run.machine, "gpus": run.gpus}, "seconds": run.seconds}
    shutil.rmtree(run.work, ignore_errors=True)
    (run.work / "logs").mkdir(parents=True)
    schedule = SCHEDULE if run.resumed is None else RESUMED_SCHEDULE
    waiting = sorted((span for span in schedule if span.size in run.sizes), key=lambda span: span.start)
    running: dict[Span, subprocess.Popen[bytes]] = {}
    failed, kept_at = 0, start
    end = start + run.seconds
    while (waiting or running) and time.time() < end + GRACE_SECONDS:
        while waiting and time.time() >= start + waiting[0].start * run.seconds:
            span = waiting.pop(0)
            running[span] = _launch(run, span, start + span.end * run.seconds)
        for span in [span for span, process in running.items() if process.poll() is not None]:
            code = running.pop(span).returncode
            failed += code != 0
            print(f"[{time.time() - start:5.1f} s] {span.size} {span.job}: exit code {code}", flush=True)
        if time.time() > kept_at + KEPT_EVERY_SECONDS:
            harvest.keep(run.corpus, run.work, run.out, about)
            kept_at = time.time()
        time.sleep(0.1)
    for process in running.values():
        process.kill()
    failed += len(running) + len(waiting)
    harvest.keep(run.corpus, run.work, run.out, about)
    return failed


def _visible(gpus: int) -> list[str]:
    """The GPUs that this process may use, by the names that its children must give them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return named.split(",") if named else [str(gpu) for gpu in range(gpus)]


def _launch(run: Run, span: Span, deadline: float) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if run.device == "cuda":
        environment["CUDA_VISIBLE_DEVICES"] = _visible(run.gpus)[span.gpu % run.gpus]
    log = (run.work / "logs" / f"{span.size}-{span.job}.log").open("wb")
    return subprocess.Popen(run.command(span, deadline), env=environment, stdout=log, stderr=subprocess.STDOUT)
