import pytest
import torch

from refimpl.model.registry import load_draft, load_target, random_draft, random_target
from refimpl.model.shapes import FAMILIES

NANO = FAMILIES["nano"]


def test_an_unknown_target_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="unknown target 'huge'; name one of nano, small, 8b"):
        load_target("huge")


def test_an_unknown_draft_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="unknown draft 'medusa'; name one of eagle, mtp, dflash"):
        load_draft("medusa", "nano", random_target(NANO.target))


def test_a_draft_that_a_size_has_not_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="target '8b' has no 'eagle' draft; it has dflash"):
        load_draft("eagle", "8b", random_target(NANO.target))


def test_a_draft_for_another_target_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="hidden_size 4096 on a target of 96"):
        load_draft("dflash", "8b", random_target(NANO.target))


def test_random_weights_are_the_same_for_a_seed_and_others_for_another() -> None:
    first, again, other = (random_target(NANO.target, seed=seed).layers.layer(0) for seed in (1, 1, 2))
    assert torch.equal(first.mlp.down_proj.weight, again.mlp.down_proj.weight)
    assert not torch.equal(first.mlp.down_proj.weight, other.mlp.down_proj.weight)


def test_random_matrices_are_normal_and_norms_are_one() -> None:
    target = random_target(NANO.target, dtype=torch.bfloat16)
    assert target.embed_tokens.weight.float().std().item() == pytest.approx(0.02, rel=0.02)
    assert target.embed_tokens.weight.float().mean().item() == pytest.approx(0.0, abs=1e-3)
    assert torch.equal(target.norm.weight, torch.ones(96, dtype=torch.bfloat16))


def test_every_file_of_the_trained_sizes_fits_into_what_may_be_shipped() -> None:
    mebibyte, all_bytes = 2**20, 0
    for name in ("nano", "small"):
        target = random_target(FAMILIES[name].target)
        models = [target, *(random_draft(config, target) for config in FAMILIES[name].drafts().values())]
        sizes = [2 * sum(parameter.numel() for parameter in model.parameters()) for model in models]
        assert max(sizes) <= 16 * mebibyte
        all_bytes += sum(sizes)
    assert all_bytes <= 32 * mebibyte


def test_the_8b_shape_has_the_parameters_of_qwen3_8b() -> None:
    config = FAMILIES["8b"].target
    layer = config.hidden_size * (2 * config.q_size + 2 * config.kv_size + 3 * config.intermediate_size)
    matrices = config.num_hidden_layers * layer + 2 * config.vocab_size * config.hidden_size
    assert matrices == pytest.approx(8.19e9, rel=1e-3)
