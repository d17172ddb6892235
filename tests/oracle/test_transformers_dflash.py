"""Our DFLASH against transformers' draft class and its generate loop, on the same weights in fp32."""

import dataclasses

import pytest
import torch
from torch import Tensor

from refimpl.engine import Engine
from refimpl.lessons.peers.assisted import SHORT_CYCLES, ours, theirs
from refimpl.lessons.peers.transformers_models import dflash_to_transformers
from refimpl.model.attention import DenseAttention, DenseCache
from refimpl.model.config import DFlashConfig
from refimpl.model.dflash import DFlash
from refimpl.model.qwen3 import Qwen3
from refimpl.model.registry import load_draft, load_target, random_draft
from tests.unit.model.models import NANO, nano_target, tokens

TIGHT = {"atol": 2e-5, "rtol": 1e-5}
CONFIGS = {
    "nano": NANO.dflash,
    "two kv heads": dataclasses.replace(NANO.dflash, num_attention_heads=4, num_key_value_heads=2),
    "one feature, another theta and eps": dataclasses.replace(
        NANO.dflash, feature_layers=(1,), rope_theta=1e6, rms_norm_eps=1e-5
    ),
}


def nano_draft(config: DFlashConfig, target: Qwen3) -> DFlash:
    draft = random_draft(config, target)
    assert isinstance(draft, DFlash)
    for parameter in draft.parameters():
        if parameter.dim() > 1:
            parameter.mul_(4.0)
    return draft


class OurDraft:
    """The draft's side of a serving loop over dense tensors: context grows, the block is scratch."""

    def __init__(self, draft: DFlash) -> None:
        self.draft, self.cache = draft, DenseCache()

    def fill(self, features: Tensor, anchor: Tensor) -> Tensor:
        """Hidden states of the block behind the context, after the features ``[1, n, …]`` have joined it."""
        start, count = self.cache.length(), features.shape[1]
        context = self.draft.context(features)
        positions = torch.arange(start, start + count)[None]
        for layer in range(self.draft.config.num_hidden_layers):
            self.cache.append(layer, *self.draft.context_kv(layer, context, positions))
        length = start + count
        block_positions = torch.arange(length, length + self.draft.config.block_size)[None]
        attention = DenseAttention(causal=False, cache=self.cache)
        hidden = self.draft(self.draft.block(anchor), block_positions, attention)
        self.cache.crop(length)
        return hidden


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@torch.no_grad()
def test_blocks_behind_a_growing_context_are_those_of_transformers(config: DFlashConfig) -> None:
    from transformers.cache_utils import DFlashCache

    target = nano_target()
    draft = nano_draft(config, target)
    ours, theirs = OurDraft(draft), dflash_to_transformers(draft)
    cache, length, size = DFlashCache(config=theirs.config), 0, config.block_size
    cache.activate_past_recording()
    for cycle, accepted in enumerate((9, 1, 4, size)):
        features = torch.randn(1, accepted, len(config.feature_layers) * 96)
        anchor = tokens(1, seed=cycle)
        cache.set_previous_accepted_tokens(accepted)
        if cycle:
            cache.crop(-size)
        expected = theirs(
            noise_embeds=target.embed(draft.block(anchor)),
            context_hidden_states=features,
            position_ids=torch.arange(length, length + accepted + size)[None],
            attention_mask=torch.ones(1, length + accepted + size, dtype=torch.long),
            past_key_values=cache,
        ).last_hidden_state
        torch.testing.assert_close(ours.fill(features, anchor), expected, **TIGHT)
        length += accepted


def test_generate_of_transformers_gives_the_same_tokens_and_accepts_the_same_drafts() -> None:
    """The engine on `sim`; transformers on the CPU, with the weights loaded once more."""
    engine = Engine("nano", "dflash", "sim", max_running_requests=1, max_context=160)
    target = load_target("nano")
    draft = load_draft("dflash", "nano", target)
    total, drafted = 0, 0
    for text in ("def fib(n):\n", "class Point(Basic):\n    def __init__(self", "import os\n\n\ndef "):
        prompt = engine.tokenizer.encode(text)
        tokens, accept_lens = ours(engine, prompt, 64)
        their_tokens, their_lens = theirs(target, draft, prompt, 64)
        assert tokens == their_tokens
        whole = len(their_lens) - SHORT_CYCLES
        assert accept_lens[:whole] == their_lens[:whole]
        total, drafted = total + sum(accept_lens), drafted + len(accept_lens)
    assert total / drafted > 1.5, "where next to nothing is accepted, the same acceptance says little"
