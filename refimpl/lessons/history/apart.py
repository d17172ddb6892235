"""``Apart``: processes that do tasks, one after the other; one may die of its task, and another takes its place.

A wrong index ends a process that drives a GPU, and `sim` and CUDA share none: there is one for each. So runs that may
go wrong are never made in the process that counts them. Tasks go in as lines of JSON, rows come out so.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from tempfile import TemporaryFile
from threading import Lock, Timer
from typing import IO

import torch

from refimpl.lessons.history.tasks import END, READY, Row, Task
from refimpl.lessons.sources import ROOT

COMMAND = (sys.executable, "-m", "refimpl.lessons.history.served")
PATIENCE_S = 240
"""The longest that a row is waited for: on a GPU the first one compiles kernels."""
_ERROR = re.compile(r"error\b|assertion .* failed", re.IGNORECASE)
MOST_DEATHS = 8
"""Behind so many processes that died, the runs left of a task are given up: each costs a start."""


class Apart:
    """One such process for each device, started when it is first needed.

    Args:
        hand: its number among those that work side by side: they take turns with the GPUs there are.
    """

    def __init__(self, hand: int = 0) -> None:
        self._hand = hand
        # A thread may be amid a task while another closes.
        self._lock, self._closed = Lock(), False
        self._processes: dict[str, subprocess.Popen[str]] = {}
        # Open as long as a process may write to it.
        self._said = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115

    def rows(self, task: Task) -> Iterator[Row]:
        """What a task brings. A run in which the process dies, or does not answer in time, counts as a fault.

        Raises:
            RuntimeError: the process died of something else than a run.
        """
        left = list(task.seeds)
        for _ in range(MOST_DEATHS):
            ready = False
            for row in self._answered(replace(task, seeds=tuple(left))):
                if row == END:
                    return
                if row == READY:
                    ready = True
                    continue
                if ready:
                    left.remove(row["seed"])
                yield row
            death = self._last_words(task.device)
            if not ready or not left:
                raise RuntimeError(f"{task.do} of {task.preset} on {task.device}: {death}")
            yield {"seed": left.pop(0), "fault": death}
            if not left:
                return

    def close(self) -> None:
        """Ends the processes; a task that is amid its rows begins no other."""
        self._closed = True
        for device in list(self._processes):
            process = self._taken(device)
            if process is not None:
                process.kill()
                process.communicate()

    def _taken(self, device: str) -> subprocess.Popen[str] | None:
        """The process, which from now on is the caller's to end."""
        with self._lock:
            return self._processes.pop(device, None)

    def _there(self, device: str) -> subprocess.Popen[str]:
        """A process for this device, started unless there is one."""
        with self._lock:
            if self._closed:
                raise RuntimeError("it was closed amid its tasks")
            if device not in self._processes:
                self._processes[device] = _started(self._said, _gpu(device, self._hand))
            return self._processes[device]

    def _answered(self, task: Task) -> Iterator[Row]:
        """The rows of a task as they come, with `END` behind them unless the process died."""
        process = self._there(task.device)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            print(json.dumps(task.to_json()), file=process.stdin, flush=True)
        row: Row = READY
        while row != END:
            watchdog = Timer(PATIENCE_S, process.kill)
            watchdog.start()
            line = ""
            # Whoever closes has closed this end, too.
            with suppress(ValueError):
                line = process.stdout.readline()
            watchdog.cancel()
            # A process that is killed may leave half a line.
            if not line.endswith("\n"):
                return
            row = json.loads(line)
            yield row

    def _last_words(self, device: str) -> str:
        """How the process ended, and what it said last."""
        process = self._taken(device)
        if process is None:
            return "it was closed"
        with suppress(BrokenPipeError):
            process.communicate()
        code = process.returncode
        self._said.seek(0)
        words = telling(self._said.read())
        self._said.truncate(0)
        return f"the process ended with {code}: {words}"


def telling(said: str) -> str:
    """The line that says why a process ended: the last that speaks of an error, since frames of the stack may follow.

    Example:
        >>> telling("what():  CUDA error: device-side assert triggered\\nframe #0: _start + 0x25")
        'what():  CUDA error: device-side assert triggered'
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line) and not line.startswith("frame #")]
    return (errors or lines or ["it said nothing"])[-1]


def _gpu(device: str, hand: int) -> dict[str, str]:
    """What shows a process one of the GPUs; nothing for `sim`, and where there is one alone."""
    seen = torch.cuda.device_count() if device == "cuda" else 0
    if seen < 2:
        return {}
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = named.split(",") if named else [str(number) for number in range(seen)]
    return {"CUDA_VISIBLE_DEVICES": names[hand % len(names)]}


def _started(said: IO[str], gpu: dict[str, str]) -> subprocess.Popen[str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", **gpu}
    pipe = subprocess.PIPE
    return subprocess.Popen((*COMMAND, str(os.getpid())), stdin=pipe, stdout=pipe, stderr=said, text=True, env=env)
