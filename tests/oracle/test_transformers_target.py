"""Our Qwen3 against transformers', on the same random weights in fp32."""

import dataclasses

import pytest
import torch

from refimpl.lessons.peers.transformers_models import target_to_transformers
from refimpl.model.config import ModelConfig
from refimpl.model.registry import slide_odd_layers
from tests.unit.model.models import NANO, Pool, dense, nano_target, spans, tokens

TIGHT = {"atol": 2e-5, "rtol": 1e-5}
CONFIGS = {
    "tied": NANO.target,
    "untied": dataclasses.replace(NANO.target, tie_word_embeddings=False),
    "two kv heads": dataclasses.replace(NANO.target, num_attention_heads=4, num_key_value_heads=2),
    "another theta and eps": dataclasses.replace(NANO.target, rope_theta=1e6, rms_norm_eps=1e-5),
    "sliding": slide_odd_layers(NANO.target, 5),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@torch.no_grad()
def test_logits_and_features_are_those_of_transformers(config: ModelConfig) -> None:
    ours = nano_target(config)
    theirs, ids, layers = target_to_transformers(ours), tokens(2, 21), (0, 1, 2)
    hidden, features = ours(ids, torch.arange(21)[None].expand(2, -1), dense(config), layers)
    expected = theirs(ids, output_hidden_states=True)
    torch.testing.assert_close(ours.logits(hidden), expected.logits, **TIGHT)
    assert features is not None
    # Entry 0 of transformers' tuple is the embedding.
    of_layers = torch.cat([expected.hidden_states[layer + 1] for layer in layers], dim=-1)
    torch.testing.assert_close(features, of_layers, **TIGHT)
    torch.testing.assert_close(hidden, expected.hidden_states[-1], **TIGHT)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@torch.no_grad()
def test_ragged_prefill_then_paged_decoding_gives_the_tokens_and_logits_of_transformers(config: ModelConfig) -> None:
    ours, lengths, steps = nano_target(config), [4, 11, 1], 6
    theirs = target_to_transformers(ours)
    prompts = [tokens(1, length, seed=length) for length in lengths]
    pool, before, new = Pool.of(config.num_hidden_layers, 3, config.num_key_value_heads), [0, 0, 0], lengths
    ids, texts = torch.cat(prompts, dim=1)[0], [prompt[0].tolist() for prompt in prompts]
    logits: list[torch.Tensor] = []
    for _ in range(steps):
        full = pool.metadata(before, new)
        window = pool.metadata(before, new, window=config.sliding_window) if config.sliding_layers else None
        hidden, _ = ours(ids, spans(before, new), pool.attention(full, window, config.sliding_layers))
        last = torch.tensor(new).cumsum(0) - 1
        logits.append(ours.logits(hidden[last]))
        ids = logits[-1].argmax(-1)
        for text, token in zip(texts, ids.tolist(), strict=True):
            text.append(token)
        before, new = [start + count for start, count in zip(before, new, strict=True)], [1, 1, 1]
    for request, prompt in enumerate(prompts):
        out = theirs.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=steps,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            return_dict_in_generate=True,
            output_logits=True,
        )
        assert out.sequences[0].tolist() == texts[request]
        ours_here = torch.stack([step[request] for step in logits])
        torch.testing.assert_close(ours_here, torch.cat(out.logits), **TIGHT)


def test_a_target_of_transformers_shares_the_memory_of_ours() -> None:
    ours = nano_target()
    theirs = target_to_transformers(ours)
    assert (
        theirs.model.layers[1].self_attn.q_proj.weight.data_ptr()
        == ours.layers.layer(1).self_attn.qkv_proj.weight.data_ptr()
    )
    assert theirs.lm_head.weight.data_ptr() == ours.embed_tokens.weight.data_ptr()
    assert sum(parameter.numel() for parameter in theirs.parameters()) == sum(p.numel() for p in ours.parameters())
