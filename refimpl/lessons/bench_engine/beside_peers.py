"""Our engine and transformers' loops on the same weights and prompts, taking turns."""

from collections.abc import Callable

from refimpl.lessons.bench_engine import peers
from refimpl.lessons.bench_engine.drive import Loop
from refimpl.lessons.bench_engine.engine_loops import engine, engine_name
from refimpl.lessons.bench_engine.loops import LoopRow, Steps, compared
from refimpl.lessons.bench_engine.subject import PLAIN, Subject
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.lessons.peers.transformers_models import dflash_to_transformers, target_to_transformers
from refimpl.model.dflash import DFlash

DFLASH = "dflash"


def batched(subject: Subject, work: Workload, most: int, rounds: int = 2) -> list[LoopRow]:
    """Plain decoding of a batch: our two loops, `generate`, and `generate_batch` in two settings.

    Args:
        subject: whose weights; the peers run on the same memory.
        work: the requests.
        most: requests that our scheduler is made for.
        rounds: turns, after one that is thrown away.
    """
    prompts = subject.prompts(work)
    overlapped = peers.Batched(lambda: target_to_transformers(subject.target), prompts, work.new_tokens)
    model = target_to_transformers(subject.target)
    loops: dict[str, Callable[[], Steps]] = {
        engine_name(PLAIN, loop): engine(subject, PLAIN, work, most, loop) for loop in Loop
    }
    loops[peers.GENERATE] = peers.generate(model, prompts, work.new_tokens)
    try:
        return compared(subject.name, work.requests, loops | overlapped.loops(), rounds)
    finally:
        overlapped.close()


def alone(subject: Subject, work: Workload, most: tuple[int, int], with_peers: bool, rounds: int = 2) -> list[LoopRow]:
    """One request: plain and with DFLASH, ours and `generate`'s.

    Args:
        subject: whose weights.
        work: one request.
        most: requests that our schedulers are made for, without and with the draft.
        with_peers: False leaves transformers out.
        rounds: turns, after one that is thrown away.
    """
    (prompt,) = subject.prompts(work)
    loops = {
        engine_name(PLAIN): engine(subject, PLAIN, work, most[0]),
        engine_name(DFLASH): engine(subject, DFLASH, work, most[1]),
    }
    if with_peers:
        draft = subject.drafts[DFLASH]
        assert isinstance(draft, DFlash), "the draft of this kind"
        model = target_to_transformers(subject.target)
        theirs = dflash_to_transformers(draft)
        loops[peers.GENERATE] = peers.generate(model, [prompt], work.new_tokens)
        loops[peers.GENERATE_DFLASH] = peers.generate_with_dflash(model, theirs, prompt, work.new_tokens)
    return compared(subject.name, 1, loops, rounds)
