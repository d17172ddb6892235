"""How many tokens a verify brings in the engine itself, on held-out prompts; and how much the text repeats itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from refimpl.engine.request import Req, SamplingParams
from refimpl.lessons.bench_engine.drive import run_to_end
from refimpl.lessons.bench_engine.subject import Subject

NGRAM = 8


@dataclass(frozen=True)
class AcceptanceRow:
    """One draft on one kind of text at one temperature.

    Args:
        model, draft: which weights.
        domain: what the prompts are.
        temperature: of the text.
        accept_len: tokens a verify, the target's own one included, over all verifies.
        histogram: how often a verify brought 1, 2, … tokens.
        unique_8grams: different runs of eight tokens, over all runs of eight tokens of each text: loops lower it.
        verifies: verifies counted.
        prompts: prompts continued.
        new_tokens: tokens written behind each.
    """

    model: str
    draft: str
    domain: str
    temperature: float
    accept_len: float
    histogram: list[int]
    unique_8grams: float
    verifies: int
    prompts: int
    new_tokens: int


def acceptance(
    subject: Subject,
    draft: str,
    domain: str,
    prompts: Sequence[Sequence[int]],
    temperature: float,
    new_tokens: int,
    max_running_requests: int,
) -> AcceptanceRow:
    """Continues all prompts, as many at a time as the scheduler takes.

    Args:
        subject, draft: which scheduler.
        domain: of the prompts, for the row.
        prompts: token ids.
        temperature: 0 is greedy.
        new_tokens: tokens to write behind each, at most: the end of a text ends it.
        max_running_requests: what the scheduler is made for.
    """
    scheduler = subject.scheduler(draft, max_running_requests)
    reqs = [
        Req(rid, list(ids), SamplingParams(temperature=temperature, max_new_tokens=new_tokens, seed=rid))
        for rid, ids in enumerate(prompts)
    ]
    run_to_end(scheduler, reqs)
    counts: Counter[int] = Counter()
    for req in reqs:
        counts += req.accept_lens
    return AcceptanceRow(
        model=subject.name,
        draft=draft,
        domain=domain,
        temperature=temperature,
        accept_len=sum(length * times for length, times in counts.items()) / counts.total(),
        histogram=[counts[length] for length in range(1, max(counts) + 1)],
        unique_8grams=unique_ngrams([req.output_ids for req in reqs]),
        verifies=counts.total(),
        prompts=len(reqs),
        new_tokens=new_tokens,
    )


def unique_ngrams(texts: Sequence[Sequence[int]], length: int = NGRAM) -> float:
    """Different runs of so many tokens within each text, over all runs; 1 where no text is long enough.

    >>> unique_ngrams([[1, 2, 1, 2, 1]], length=2)
    0.5
    """
    runs = [[tuple(text[at : at + length]) for at in range(len(text) - length + 1)] for text in texts]
    total = sum(map(len, runs))
    return sum(len(set(of)) for of in runs) / total if total else 1.0
