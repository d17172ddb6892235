"""The whole run: every part on every set of weights, and what could not be measured."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from refimpl.lessons.bench_engine.subject import Subject
from refimpl.lessons.history_timing.bars import PAIRS, bars
from refimpl.lessons.history_timing.cases import PARTS, groups
from refimpl.lessons.history_timing.engines import Engines, load
from refimpl.lessons.history_timing.measure import Bench, longest
from refimpl.lessons.history_timing.plan import ACCEPT_LEN, DRAFTS, MODELS, Amounts

Progress = Callable[[str], None]


@dataclass
class Run:
    """One run of the timings.

    Args:
        device: `cuda` or `sim`.
        only: the parts to measure.
        seconds: no group begins after so long; what is left out is said.
        progress: told what begins.
        keep: given the report after each part: a run that is cut short leaves what it measured.
        models: weights and amounts; by default those of the device.
        subjects: makes a subject of a name; by default it loads the weights.

    Attributes:
        rows: by part, and the pairs.
        left_out: groups for which time was short.
        failed: parts that raised, with what they said.
    """

    device: str
    only: Sequence[str] = tuple(PARTS)
    seconds: float = 240.0
    progress: Progress = lambda _: None
    keep: Callable[[dict[str, Any]], None] = lambda _: None
    models: Mapping[str, Amounts] | None = None
    subjects: Callable[[str], Subject] | None = None
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def measure(self) -> dict[str, Any]:
        """Measures everything, one set of weights after another, and returns the report."""
        self._end = time.monotonic() + self.seconds
        for name, amounts in self._models().items():
            self.progress(f"{name}: loading")
            try:
                subject = load(name, self.device, DRAFTS) if self.subjects is None else self.subjects(name)
            except (OSError, ValueError) as error:
                self._fail(f"{name}: {error}")
                continue
            self._weights(subject, amounts)
        return self.report()

    def report(self) -> dict[str, Any]:
        """What was to be measured, rows by part, the pairs, the bars they are held to, and what is missing."""
        return {
            "plan": {name: {**asdict(amounts), "accept_len": ACCEPT_LEN} for name, amounts in self._models().items()},
            **self.rows,
            "bars": [asdict(bar) for bar in bars(self.rows)],
            "left_out": self.left_out,
            "failed": self.failed,
        }

    def _models(self) -> Mapping[str, Amounts]:
        return MODELS[self.device] if self.models is None else self.models

    def _weights(self, subject: Subject, amounts: Amounts) -> None:
        bench = Bench(Engines(subject, amounts.batches, longest(amounts)), amounts)
        for part in PARTS:
            if part not in self.only:
                continue
            try:
                self._part(bench, part, amounts)
            except Exception as error:
                # Minutes of a GPU are behind the other parts: they are kept, and the command fails in the end.
                self._fail(f"{subject.name}: {part}: {type(error).__name__}: {error}")
            finally:
                bench.close()
            self.keep(self.report())

    def _part(self, bench: Bench, part: str, amounts: Amounts) -> None:
        for group in groups(part, amounts):
            what = f"{bench.subject.name}: {part}: batch {group.share.batch}"
            if time.monotonic() > self._end:
                if what not in self.left_out:
                    self.left_out.append(what)
                continue
            self.progress(what)
            rows, pairs = bench.measured(group)
            self.rows.setdefault(part, []).extend(asdict(row) for row in rows)
            if pairs:
                self.rows.setdefault(part + PAIRS, []).extend(asdict(pair) for pair in pairs)

    def _fail(self, words: str) -> None:
        self.failed.append(words)
        self.progress(words)
