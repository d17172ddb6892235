"""On a GPU whose streams are stalled at random, greedy text is the target's own: float32 without TF32, and bfloat16."""

from collections.abc import Iterator
from functools import cache

import pytest
import torch

from refimpl.lessons.lossless.campaign import Judge, RunReport, spread
from refimpl.lessons.lossless.load import LoadShape
from refimpl.lessons.lossless.setups import TINY_MODELS, WORKERS, Setup, build
from refimpl.lessons.lossless.stall import stalls
from refimpl.model.shapes import VOCAB_SIZE

pytestmark = pytest.mark.gpu

TINY = LoadShape(requests=8, vocabulary=40)
TRAINED = LoadShape(requests=24, vocabulary=VOCAB_SIZE - 8, max_prompt=64, max_new=48)
DTYPES = (torch.float32, torch.bfloat16)
# Of the tokens in bfloat16, at most so many are excused: a rule that excuses everything would say nothing.
MOST_EXCUSED = {torch.float32: 0.001, torch.bfloat16: 0.1}


@pytest.fixture(autouse=True)
def without_tf32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@cache
def judge(worker: str, variant: str, models: str, dtype: torch.dtype, batch: int) -> Judge:
    context = 32 if models == TINY_MODELS else 128
    return Judge(build(Setup(worker, variant, models, "cuda", dtype, batch, context)))


def check_run(found: RunReport) -> None:
    assert found.wrong == (), f"{found.near_ties} of {found.tokens} excused, {found.furthest} below the best"
    assert found.near_ties <= MOST_EXCUSED[found.setup.dtype] * found.tokens


@pytest.mark.parametrize(
    ("worker", "variant", "seed"), [(s.worker, s.variant, n) for s, seeds in spread(WORKERS, range(8)) for n in seeds]
)
def test_every_token_of_the_tiny_models_is_the_one_that_the_target_likes_best(
    worker: str, variant: str, seed: int
) -> None:
    check_run(judge(worker, variant, TINY_MODELS, torch.float32, 5).run(TINY, seed, stalls))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["overlap", "all at once"])
@pytest.mark.parametrize("worker", WORKERS)
def test_every_token_of_the_small_models_is_the_one_that_the_target_likes_best(
    worker: str, variant: str, dtype: torch.dtype
) -> None:
    found = judge(worker, variant, "small", dtype, 16).run(TRAINED, 1, stalls)
    check_run(found)
    assert worker == "plain" or found.emitted > 1.2 * found.verifies


@pytest.mark.parametrize("worker", WORKERS)
def test_a_batch_of_64_decodes_as_one_request_alone(worker: str) -> None:
    shape = LoadShape(requests=64, vocabulary=VOCAB_SIZE - 8, turns=0, max_new=24, aborted=0)
    check_run(judge(worker, "overlap", "small", torch.float32, 64).run(shape, 2, stalls))
