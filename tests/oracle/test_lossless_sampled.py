"""Sampled decoding is lossless: what comes out is distributed as the target alone would write, and hangs on the seed.

What holds of single texts. Plain decoding and EAGLE's tree draw each token by its place: the text of a seed is the same
whatever the batch, the order, the loop, and the retractions. A chain of drafts, DFLASH's block too, is accepted or
rejected from its anchor on: the text is the same as long as the anchors are. Batch, order and loop do not move them. A
retraction does, since the prefill that follows it draws one token by itself: another text, of the same distribution.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.request import SamplingParams
from refimpl.engine.workers import target as target_module
from refimpl.lessons.lossless.load import Arrival, LoadShape, draw_load
from refimpl.lessons.lossless.oracle import next_logits
from refimpl.lessons.lossless.play import play
from refimpl.lessons.lossless.setups import VARIANTS, WORKERS, Built, Setup, build, oracle_target
from refimpl.model.acceptance import verify_chain
from refimpl.model.sampling import SamplingMode, probabilities
from tests.oracle.chi_square import chi_square

MIXED = LoadShape(requests=7, vocabulary=40, max_new=12, aborted=0.0, sampled=0.8)
BY_PLACE = ("plain", "eagle-tree")
# The control runs in the normal loop, or in the overlapped one with a sliding window.
CONTROL, SLIDING_CONTROL = "normal", "sliding window"
COMPARED = [
    *(("plain", name) for name, variant in VARIANTS.items() if variant.slots_for is None and name != CONTROL),
    *((worker, "overlap") for worker in WORKERS if worker != "plain"),
]


@cache
def engine(worker: str, variant: str) -> Built:
    torch.set_num_threads(1)
    return build(Setup(worker, variant, max_running_requests=3), SamplingMode)


def texts(built: Built, load: Sequence[Arrival], seed: int | None = None) -> list[list[int]]:
    """The outputs of a load; under an adversary if there is a seed."""
    dev = devices.sim()
    with dev.schedule(dev.Timed() if seed is None else dev.Adversary(seed=seed)):
        return [req.output_ids for req in play(built.scheduler, load).reqs]


@cache
def alone(worker: str, load: tuple[Arrival, ...], control: str = CONTROL) -> list[list[int]]:
    """The outputs of requests that run one at a time."""
    return [texts(engine(worker, control), [Arrival(0, one.prompt_ids, one.params)])[0] for one in load]


@pytest.mark.parametrize(("worker", "variant"), COMPARED)
def test_the_text_of_a_seed_does_not_hang_on_batch_loop_or_order(worker: str, variant: str) -> None:
    load = tuple(draw_load(MIXED, seed=3))
    wanted = alone(worker, load, SLIDING_CONTROL if variant == SLIDING_CONTROL else CONTROL)
    assert len({tuple(text) for text in wanted}) > 5
    for seed in (0, 1, 2):
        assert texts(engine(worker, variant), load, seed) == wanted


@pytest.mark.parametrize("worker", BY_PLACE)
def test_where_draws_are_by_place_a_retraction_changes_no_text(worker: str) -> None:
    load, built = tuple(draw_load(MIXED, seed=3)), engine(worker, "few slots")
    before = built.scheduler.num_retracted
    assert texts(built, load) == alone(worker, load)
    assert built.scheduler.num_retracted > before


def test_the_tree_writes_what_plain_decoding_writes() -> None:
    load = tuple(draw_load(MIXED, seed=3))
    assert alone("eagle-tree", load) == alone("plain", load)


def test_another_seed_writes_another_text() -> None:
    params = [SamplingParams(temperature=1.5, max_new_tokens=12, ignore_eos=True, seed=seed) for seed in range(4)]
    assert len({tuple(text) for text in alone("plain", tuple(Arrival(0, (3, 1), one) for one in params))}) == 4


PROMPT, TOKENS, TOP_K, TEMPERATURE = (3, 1, 4), 4, 3, 2.0
DRAWS, BATCH = 2048, 64
LIKELY, UNLIKELY = 1e-3, 1e-9
# A cell that is expected less often is counted with others of its kind, as the test of chi-square wants it.
LEAST_EXPECTED = 5.0


@cache
def exact_joint() -> dict[tuple[int, ...], float]:
    """The probability of each text of the target alone, by its logits on the CPU."""
    oracle = oracle_target(Setup("plain"))
    joint: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(TOKENS):
        joint = {(*text, t): p * q for text, p in joint.items() for t, q in _next(oracle, text)}
    return joint


def _next(oracle: Any, text: tuple[int, ...]) -> list[tuple[int, float]]:
    logits = next_logits(oracle, [*PROMPT, *text])[-1].double() / TEMPERATURE
    best = logits.topk(TOP_K)
    return list(zip(best.indices.tolist(), best.values.softmax(-1).tolist(), strict=True))


def likelihood(built: Built) -> float:
    """The probability that the engine's texts are at least this far from the exact joint."""
    params = [
        SamplingParams(TEMPERATURE, TOP_K, max_new_tokens=TOKENS, seed=seed, ignore_eos=True) for seed in range(DRAWS)
    ]
    found = [tuple(text) for text in texts(built, [Arrival(0, PROMPT, one) for one in params])]
    joint = exact_joint()
    assert set(found) <= joint.keys()
    cells = {text: n for n, text in enumerate(text for text, p in joint.items() if p * DRAWS >= LEAST_EXPECTED)}
    expected = torch.zeros(len(cells) + 1, dtype=torch.float64)
    for text, probability in joint.items():
        expected[cells.get(text, len(cells))] += probability
    counts = torch.bincount(torch.tensor([cells.get(text, len(cells)) for text in found]), minlength=len(cells) + 1)
    return chi_square(counts, expected)


@pytest.mark.parametrize("worker", WORKERS)
def test_sampled_texts_are_distributed_as_the_exact_joint_of_the_target(worker: str) -> None:
    built = build(Setup(worker, max_running_requests=BATCH), (SamplingMode.FILTERED,))
    assert len(list(product(range(TOP_K), repeat=TOKENS))) == len(exact_joint())
    assert likelihood(built) > LIKELY


def test_a_worker_that_says_its_drafts_were_drawn_from_the_target_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_q(draft_tokens: torch.Tensor, q: torch.Tensor, logits: torch.Tensor, *rest: Any) -> Any:
        _, tensors, mode = rest
        return verify_chain(draft_tokens, probabilities(logits[:, :-1], tensors, mode), logits, *rest)

    monkeypatch.setattr(target_module, "verify_chain", wrong_q)
    built = build(Setup("dflash", max_running_requests=BATCH), (SamplingMode.FILTERED,))
    assert likelihood(built) < UNLIKELY
