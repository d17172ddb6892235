"""Drafting, verifying and forcing run in a captured graph on the simulated device and give what the CPU gives."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.model.acceptance import (
    ForcedAcceptance,
    build_tree,
    expand,
    last_accepted,
    verify_chain,
    verify_tree,
)
from refimpl.model.sampling import Purpose, SamplingMode, SamplingTensors, draw

BATCH, NUM_DRAFTS, VOCABULARY, TOPK, STEPS, NODES = 4, 5, 48, 3, 3, 10


def made(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    draft = torch.randn(BATCH, NUM_DRAFTS, VOCABULARY, generator=generator) * 2
    noise = torch.randn(BATCH, NUM_DRAFTS + 1, VOCABULARY, generator=generator)
    return {
        "draft": draft,
        "target": torch.cat([draft, draft[:, :1]], 1) + noise,
        "frontiers": torch.randn(BATCH, STEPS, TOPK, VOCABULARY, generator=generator).mul(2).log_softmax(-1),
        "nodes": torch.randn(BATCH, NODES, VOCABULARY, generator=generator) * 3,
        "anchors": torch.randint(VOCABULARY, (BATCH,), generator=generator),
        "seq_lens": torch.randint(1, 99, (BATCH,), generator=generator).int(),
        "temperature": torch.tensor([0.0, 0.7, 1.0, 1.3]),
        "top_k": torch.tensor([0, 5, 0, 20], dtype=torch.int32),
        "top_p": torch.tensor([1.0, 1.0, 0.8, 0.9]),
        "seed": torch.tensor([0, 1, 2, 2**31]),
    }


def sampling(x: dict[str, torch.Tensor]) -> SamplingTensors:
    return SamplingTensors(**{field.name: x[field.name] for field in fields(SamplingTensors)})


def chain(x: dict[str, torch.Tensor], mode: SamplingMode) -> list[torch.Tensor]:
    places = x["seq_lens"][:, None] + torch.arange(1, NUM_DRAFTS + 1, device=x["seq_lens"].device)
    drawn = draw(x["draft"], sampling(x), mode, places, Purpose.DRAFT)
    accepted = verify_chain(drawn.tokens, drawn.probs, x["target"], x["seq_lens"], sampling(x), mode)
    undrawn = verify_chain(x["draft"].argmax(-1), None, x["target"], x["seq_lens"], sampling(x), mode)
    return [drawn.tokens, accepted.tokens, accepted.accept_len, last_accepted(accepted), undrawn.tokens]


def tree(x: dict[str, torch.Tensor], mode: SamplingMode) -> list[torch.Tensor]:
    scores, expansions = torch.zeros(BATCH, 1, device=x["anchors"].device), []
    for step in range(STEPS):
        expansions.append(expand(scores, x["frontiers"][:, step, : scores.shape[1]], TOPK))
        scores = expansions[-1].scores
    grown = build_tree(x["anchors"], expansions, NODES)
    accepted = verify_tree(grown, x["nodes"], x["seq_lens"], sampling(x), mode)
    return [grown.tokens, grown.parents, grown.depth, grown.mask, accepted.tokens, accepted.path]


@cache
def histogram(device: str) -> ForcedAcceptance:
    """Made before a capture, as it copies from the host."""
    return ForcedAcceptance([1, 2, 3, 4], device)


def forced(x: dict[str, torch.Tensor], mode: SamplingMode) -> list[torch.Tensor]:
    drafts, target = x["draft"].argmax(-1), x["target"].argmax(-1)
    return [histogram(x["seed"].device.type).accept(drafts, target, x["seed"], x["seq_lens"]).tokens]


@pytest.mark.parametrize("mode", SamplingMode)
@pytest.mark.parametrize("step", [chain, tree, forced])
def test_a_replay_on_sim_gives_what_the_cpu_gives(step: Callable[..., Any], mode: SamplingMode) -> None:
    dev = device.sim()
    static = {name: value.to("sim") for name, value in made(0).items()}
    graph = dev.CUDAGraph()
    step(static, mode)
    with dev.graph(graph):
        results = step(static, mode)
    for seed in (1, 2):
        inputs = made(seed)
        for name, value in inputs.items():
            static[name].copy_(value)
        graph.replay()
        for on_sim, on_cpu in zip(results, step(inputs, mode), strict=True):
            assert on_sim.cpu().equal(on_cpu)
