"""The whole run: every part on every set of weights, and what could not be measured."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from refimpl.lessons.bench_engine import held_out
from refimpl.lessons.bench_engine.acceptance import AcceptanceRow, acceptance
from refimpl.lessons.bench_engine.bars import bars
from refimpl.lessons.bench_engine.beside_peers import DFLASH, alone, batched
from refimpl.lessons.bench_engine.bounds import COPY_BYTES, memory_bandwidth
from refimpl.lessons.bench_engine.overlapped_step import overlapped_steps
from refimpl.lessons.bench_engine.plain_step import plain_steps
from refimpl.lessons.bench_engine.plan import MODELS, Amounts
from refimpl.lessons.bench_engine.serving import served
from refimpl.lessons.bench_engine.subject import PLAIN, Subject
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.model.registry import RANDOM
from refimpl.model.tokenizer import Tokenizer

PARTS = ("bandwidth", "acceptance", "plain_steps", "overlapped_steps", "serving", "batched", "alone")
TEMPERATURES = (0.0, 0.7, 1.0)
SIM_COPY_BYTES = 1 << 20
Progress = Callable[[str], None]


@dataclass
class Run:
    """One run of the benchmark.

    Args:
        device: `cuda` or `sim`.
        only: the parts to measure.
        seconds: no part begins after so long; what is left out is said.
        progress: told what begins.
        keep: given the report after each part: a run that is cut short leaves what it measured.
        models: weights and amounts; by default those of the device.
        subjects: makes a subject of a name; by default it loads the weights.
        accept_lens: counts of accept lengths of an earlier run, which random weights borrow where this one records
            none.

    Attributes:
        rows: by part.
        left_out: parts for which time was short.
        failed: parts that raised, with what they said.
    """

    device: str
    only: Sequence[str] = PARTS
    seconds: float = 600.0
    progress: Progress = lambda _: None
    keep: Callable[[dict[str, Any]], None] = lambda _: None
    models: dict[str, Amounts] | None = None
    subjects: Callable[[str, Amounts, Sequence[int] | None], Subject] | None = None
    accept_lens: Sequence[int] | None = None
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def measure(self) -> dict[str, Any]:
        """Measures everything, one set of weights after another, and returns the report."""
        self._end = time.monotonic() + self.seconds
        self._texts = held_out.prompts("code", Tokenizer.load())
        self._part("bandwidth", "", lambda: [memory_bandwidth(self.device, self._copy_bytes())])
        for name, amounts in self._models().items():
            self._weights(name, amounts)
        return self.report()

    def report(self) -> dict[str, Any]:
        """What was to be measured, rows by part, the bars they are held to, and what is missing."""
        return {
            "plan": {name: asdict(amounts) for name, amounts in self._models().items()},
            **self.rows,
            "bars": [asdict(bar) for bar in bars(self.rows)],
            "left_out": self.left_out,
            "failed": self.failed,
        }

    def _models(self) -> dict[str, Amounts]:
        return MODELS[self.device] if self.models is None else self.models

    def _weights(self, name: str, amounts: Amounts) -> None:
        """All parts on one set of weights; random ones borrow the accept lengths of trained ones."""
        forced = (recorded(self.rows) or self.accept_lens) if name in RANDOM else None
        if name in RANDOM and forced is None:
            self._fail(f"{name}: no accept lengths were recorded on trained weights, so DFLASH is left out")
        kinds = amounts.drafts if name not in RANDOM or forced is not None else ()
        self.progress(f"{name}: loading")
        try:
            subject = self._subject(name, amounts, kinds, forced)
        except (OSError, ValueError) as error:
            self._fail(f"{name}: {error}")
            return
        try:
            for part, measure in self._parts(subject, amounts):
                if not self._part(part, name, measure):
                    # What an error left in a scheduler is in nobody's way then.
                    subject.close()
        finally:
            subject.close()

    def _subject(self, name: str, amounts: Amounts, kinds: Sequence[str], forced: Sequence[int] | None) -> Subject:
        if self.subjects is not None:
            return self.subjects(name, amounts, forced)
        texts = None if name in RANDOM else self._texts
        return Subject.load(name, self.device, kinds, forced, texts)

    def _parts(self, subject: Subject, of: Amounts) -> Iterator[tuple[str, Callable[[], Sequence[Any]]]]:
        most = max(of.plain_batches)
        steps = partial(overlapped_steps, subject)
        if of.accept_prompts:
            for draft in subject.drafts:
                yield "acceptance", partial(self._acceptance, subject, draft, of)
        yield "plain_steps", partial(plain_steps, subject, of.plain_batches, of.rounds, of.work)
        yield "overlapped_steps", partial(steps, PLAIN, of.overlapped_plain, most, of.rounds, of.work)
        for draft in subject.drafts:
            batches, requests = of.overlapped_draft, of.draft_requests
            yield "overlapped_steps", partial(steps, draft, batches, requests, of.rounds, of.draft_work)
        if of.peers:
            together = Workload(of.batched, of.work.prompt_tokens, of.work.new_tokens)
            yield "batched", partial(batched, subject, together, most)
        if DFLASH in subject.drafts:
            single = Workload(1, of.draft_work.prompt_tokens, of.draft_work.new_tokens)
            yield "alone", partial(alone, subject, single, (most, of.draft_requests), of.peers)
            yield "serving", partial(served, subject, DFLASH, of.concurrency, of.serving, rounds=of.rounds)

    def _acceptance(self, subject: Subject, draft: str, of: Amounts) -> list[AcceptanceRow]:
        tokenizer = Tokenizer.load()
        rows = []
        for domain in held_out.DOMAINS:
            texts = held_out.prompts(domain, tokenizer)[: of.accept_prompts]
            for temperature in TEMPERATURES:
                rows.append(acceptance(subject, draft, domain, texts, temperature, of.accept_tokens, of.draft_requests))
        return rows

    def _part(self, part: str, name: str, measure: Callable[[], Sequence[Any]]) -> bool:
        """Measures one part, if it is asked for and there is time; False if it failed, which does not end the run."""
        what = f"{name}: {part}" if name else part
        if part not in self.only:
            return True
        if time.monotonic() > self._end:
            self.left_out.append(what)
            return True
        self.progress(what)
        try:
            rows = measure()
        except Exception as error:
            # Minutes of a GPU are behind the other parts: they are kept, and the command fails in the end.
            self._fail(f"{what}: {type(error).__name__}: {error}")
            return False
        self.rows.setdefault(part, []).extend(asdict(row) for row in rows)
        self.keep(self.report())
        return True

    def _fail(self, words: str) -> None:
        self.failed.append(words)
        self.progress(words)

    def _copy_bytes(self) -> int:
        return SIM_COPY_BYTES if self.device == "sim" else COPY_BYTES


def recorded(rows: Mapping[str, Any]) -> list[int] | None:
    """How often a verify brought 1, 2, … tokens with the trained DFLASH on code, greedy; None if it was not measured.

    Args:
        rows: by part.
    """
    for row in rows.get("acceptance", ()):
        if (row["draft"], row["domain"], row["temperature"]) == (DFLASH, "code", 0.0):
            histogram: list[int] = row["histogram"]
            return histogram
    return None
