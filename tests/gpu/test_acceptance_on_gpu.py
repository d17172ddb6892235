"""Draws, samples and acceptance are bit for bit the CPU's on a GPU, captured in a graph, whatever order it adds in."""

from collections.abc import Callable

import pytest
import torch

from refimpl.model.acceptance import (
    ForcedAcceptance,
    build_tree,
    expand,
    verify_chain,
    verify_greedy,
    verify_rejection,
    verify_tree_rejection,
)
from refimpl.model.sampling import Purpose, SamplingMode, SamplingTensors, draw, probabilities, sample, uniform

pytestmark = pytest.mark.gpu

BATCH, NUM_DRAFTS, TOPK, STEPS, NODES = 32, 7, 4, 4, 24
SMALL, LARGE = 4096, 151_936


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def params(requests: int) -> SamplingTensors:
    rows = torch.arange(requests)
    return SamplingTensors((rows % 4) / 2, (rows % 3 * 20).int(), 1 - (rows % 5) / 10, rows)


def moved(tensors: SamplingTensors, device: str) -> SamplingTensors:
    names = ("temperature", "top_k", "top_p", "seed")
    return SamplingTensors(*(getattr(tensors, name).to(device) for name in names))


def captured(step: Callable[..., list[torch.Tensor]], *inputs: torch.Tensor) -> list[torch.Tensor]:
    """What a replay on the GPU leaves; capturing fails where the host would block."""
    static = [x.cuda() for x in inputs]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step(*static)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step(*static)
    graph.replay()
    torch.cuda.synchronize()
    return [x.cpu() for x in results]


def assert_as_on_the_cpu(step: Callable[..., list[torch.Tensor]], *inputs: torch.Tensor) -> None:
    for on_gpu, on_cpu in zip(captured(step, *inputs), step(*inputs), strict=True):
        assert on_gpu.equal(on_cpu)


@pytest.mark.parametrize("purpose", Purpose)
def test_draws_are_the_cpu_s(purpose: Purpose) -> None:
    seeds = torch.tensor([0, 1, -1, 2**31, 2**62 + 3])
    assert_as_on_the_cpu(lambda s, p: [uniform(s, p, purpose)], seeds, torch.arange(5 * 1000).view(5, 1000))


@pytest.mark.parametrize("vocabulary", [SMALL, LARGE])
def test_samples_are_the_cpu_s_to_the_token(vocabulary: int) -> None:
    probs = torch.softmax(3 * randn(64, vocabulary), -1)
    u = uniform(torch.arange(64), torch.arange(64), Purpose.TARGET)
    assert_as_on_the_cpu(lambda p, u: [sample(p, u)], probs, u)


@pytest.mark.parametrize("vocabulary", [SMALL, LARGE])
def test_no_token_of_zero_probability_is_drawn(vocabulary: int) -> None:
    generator = torch.Generator().manual_seed(1)
    probs = torch.softmax(4 * randn(8, vocabulary), -1) * (torch.rand(8, vocabulary, generator=generator) < 0.01)
    ends = torch.tensor([0.0, 1 - 2**-24])
    for part in range(16):
        u = torch.cat([ends, uniform(torch.tensor([part]), torch.arange(62)[None], Purpose.DRAFT)[0]]).cuda()
        drawn = sample(probs.cuda()[:, None].expand(-1, len(u), -1), u.expand(8, -1))
        assert probs.cuda().gather(1, drawn).min() > 0


def test_chains_are_verified_as_on_the_cpu() -> None:
    q = torch.softmax(2 * randn(BATCH, NUM_DRAFTS, SMALL), -1)
    p = torch.softmax(2 * randn(BATCH, NUM_DRAFTS + 1, SMALL), -1)
    p[:, :-1] = 0.3 * p[:, :-1] + 0.7 * q
    places = torch.arange(BATCH * NUM_DRAFTS).view(BATCH, NUM_DRAFTS)
    seeds = torch.arange(BATCH)
    drafts = sample(q, uniform(seeds, places, Purpose.DRAFT))
    u_accept, u_final = uniform(seeds, places, Purpose.ACCEPT), uniform(seeds, places[:, 0], Purpose.FINAL)

    def step(*x: torch.Tensor) -> list[torch.Tensor]:
        drafts, q, p, u_accept, u_final = x
        drawn = verify_rejection(drafts, q, p, u_accept, u_final)
        undrawn = verify_rejection(drafts, None, p, u_accept, u_final)
        greedy = verify_greedy(drafts, p.argmax(-1))
        return [drawn.tokens, drawn.accept_len, undrawn.tokens, greedy.tokens]

    assert step(drafts, q, p, u_accept, u_final)[1].unique().numel() > NUM_DRAFTS // 2
    assert_as_on_the_cpu(step, drafts, q, p, u_accept, u_final)


def test_trees_are_grown_and_walked_as_on_the_cpu() -> None:
    logprobs = (3 * randn(BATCH, STEPS, TOPK, SMALL)).log_softmax(-1)
    p = torch.softmax(12 * randn(BATCH, NODES, SMALL), -1)
    u = uniform(torch.arange(BATCH), torch.arange(BATCH * NODES).view(BATCH, NODES), Purpose.TARGET)

    def step(anchors: torch.Tensor, logprobs: torch.Tensor, p: torch.Tensor, u: torch.Tensor) -> list[torch.Tensor]:
        scores, expansions = torch.zeros(BATCH, 1, device=anchors.device), []
        for depth in range(STEPS):
            expansions.append(expand(scores, logprobs[:, depth, : scores.shape[1]], TOPK))
            scores = expansions[-1].scores
        tree = build_tree(anchors, expansions, NODES)
        # A child is likely, so that paths are long.
        children = tree.parents * SMALL + tree.tokens
        likely = p.flatten(1).scatter_add(1, children, torch.full_like(u, 0.5)).view_as(p)
        accepted = verify_tree_rejection(tree, likely, u)
        return [tree.tokens, tree.parents, tree.depth, tree.mask, accepted.tokens, accepted.path]

    assert_as_on_the_cpu(step, torch.arange(BATCH), logprobs, p, u)


def test_forced_lengths_are_the_cpu_s() -> None:
    drafts, target = torch.zeros(BATCH, 7, dtype=torch.int64), torch.ones(BATCH, 8, dtype=torch.int64)
    on = {device: ForcedAcceptance([5, 4, 3, 2, 1, 1, 1, 9], device) for device in ("cpu", "cuda")}

    def step(drafts: torch.Tensor, target: torch.Tensor, seed: torch.Tensor) -> list[torch.Tensor]:
        return [on[drafts.device.type].accept(drafts, target, seed, seed + 3).tokens]

    assert_as_on_the_cpu(step, drafts, target, torch.arange(BATCH))


@pytest.mark.parametrize("mode", SamplingMode)
def test_probabilities_are_near_the_cpu_s_and_a_whole_step_can_be_captured(mode: SamplingMode) -> None:
    tensors, logits = params(BATCH), (4 * randn(BATCH, NUM_DRAFTS + 1, SMALL)).bfloat16()
    on_gpu = moved(tensors, "cuda")
    torch.testing.assert_close(
        probabilities(logits.cuda(), on_gpu, mode).cpu(), probabilities(logits, tensors, mode), rtol=1e-4, atol=1e-6
    )

    def step(logits: torch.Tensor, places: torch.Tensor) -> list[torch.Tensor]:
        chosen = on_gpu if logits.is_cuda else tensors
        drawn = draw(logits[:, :-1].contiguous(), chosen, mode, places, Purpose.DRAFT)
        accepted = verify_chain(drawn.tokens, drawn.probs, logits, places[:, 0] - 1, chosen, mode)
        return [drawn.tokens, accepted.tokens]

    places = torch.arange(BATCH)[:, None] + torch.arange(1, NUM_DRAFTS + 1)
    # A softmax rounds otherwise on a GPU, so that a draw next to a border may fall on its other side.
    for on_device, on_cpu in zip(captured(step, logits, places), step(logits, places), strict=True):
        assert (on_device == on_cpu).double().mean() > 0.99
