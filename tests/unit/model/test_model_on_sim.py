from pathlib import Path

import torch

from refimpl import device
from refimpl.model.attention import PagedAttention, PagedMetadata
from refimpl.model.config_io import save_family
from refimpl.model.dflash import DFlash
from refimpl.model.registry import load_draft, load_target, random_draft, random_target
from refimpl.model.weights_io import save_weights
from tests.unit.model.models import NANO, Pool, spans, tokens

LENGTHS = [7, 3]


def moved(metadata: PagedMetadata, to: str) -> PagedMetadata:
    tensors = {name: getattr(metadata, name).to(to) for name in ("slots", "page_table", "kv_lens", "q_starts")}
    return PagedMetadata(**tensors, max_q_len=metadata.max_q_len, causal=metadata.causal)


@torch.no_grad()
def prefill_and_block(to: str, weights: Path) -> torch.Tensor:
    """Logits of a ragged prefill, and of a DFLASH block behind it."""
    target = load_target("nano", to, weights=weights)
    draft = load_draft("dflash", "nano", target, weights=weights)
    assert isinstance(draft, DFlash)
    assert draft.fc.weight.device == target.device
    size, pool = draft.config.block_size, Pool.of(4, 2)
    committed = moved(pool.metadata([0, 0], LENGTHS), to)
    in_block = moved(pool.metadata(LENGTHS, [size, size], causal=False), to)
    caches, of_draft = ([[x.nan_to_num().to(to) for x in half] for half in (pool.k, pool.v)] for _ in range(2))
    positions = spans([0, 0], LENGTHS).to(to)
    hidden, features = target(tokens(sum(LENGTHS)).to(to), positions, PagedAttention(*caches, committed), (0, 1, 2))
    context = draft.context(features)
    for layer in range(draft.config.num_hidden_layers):
        k, v = draft.context_kv(layer, context, positions)
        of_draft[0][layer].index_put_((committed.slots,), k)
        of_draft[1][layer].index_put_((committed.slots,), v)
    block = draft.block(tokens(2, seed=5).to(to)).flatten()
    filled = draft(block, spans(LENGTHS, [size, size]).to(to), PagedAttention(*of_draft, in_block))
    return torch.cat([target.logits(hidden), draft.logits(filled)]).cpu()


def test_target_and_draft_on_sim_give_what_they_give_on_the_cpu(tmp_path: Path) -> None:
    target = random_target(NANO.target)
    save_family(NANO, tmp_path / "nano" / "config.json")
    save_weights(target, tmp_path / "nano" / "target.safetensors")
    save_weights(random_draft(NANO.dflash, target), tmp_path / "nano" / "dflash.safetensors")
    sim = device.sim()
    with sim.schedule(sim.Timed()):
        on_sim = prefill_and_block("sim", tmp_path)
    torch.testing.assert_close(on_sim, prefill_and_block("cpu", tmp_path), atol=1e-5, rtol=1e-4)


def test_random_weights_on_sim_are_those_of_the_cpu() -> None:
    device.sim()
    on_sim, on_cpu = random_target(NANO.target, "sim"), random_target(NANO.target)
    assert torch.equal(on_sim.layers.layer(3).mlp.down_proj.weight.cpu(), on_cpu.layers.layer(3).mlp.down_proj.weight)
    assert torch.equal(on_sim.rotary.cos_sin.cpu(), on_cpu.rotary.cos_sin)
