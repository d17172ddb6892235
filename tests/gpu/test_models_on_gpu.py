"""The models on a GPU, through the kernels, give what the plain ops give on the CPU, and what transformers gives."""

import dataclasses
import time
from collections.abc import Iterator

import pytest
import torch

from refimpl.lessons.peers.transformers_models import dflash_to_transformers, target_to_transformers
from refimpl.model.attention import PagedAttention, PagedMetadata
from refimpl.model.config import LayerConfig, ModelConfig
from refimpl.model.dflash import DFlash
from refimpl.model.eagle import Eagle3
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.qwen3 import Qwen3
from refimpl.model.registry import load_draft, load_target, random_draft, random_target, slide_odd_layers
from refimpl.model.shapes import FAMILIES
from refimpl.model.weights_io import disk_tensors
from tests.unit.model.models import Pool, spans

pytestmark = pytest.mark.gpu
LENGTHS = [9, 30, 1]
# Sums of some hundred products in another order.
CLOSE = {"atol": 2e-4, "rtol": 2e-4}


@pytest.fixture(autouse=True)
def _ieee_fp32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    with torch.inference_mode():
        yield
    torch.backends.cuda.matmul.allow_tf32 = before


def sized(config: ModelConfig) -> Qwen3:
    """A random target on the CPU whose attention is far from uniform."""
    target = random_target(config)
    for parameter in target.parameters():
        if parameter.dim() > 1:
            parameter.mul_(2.0)
    return target


def on_cuda(target: Qwen3) -> Qwen3:
    copied = random_target(target.config, "cuda")
    for name, parameter in target.named_parameters():
        copied.get_parameter(name).copy_(parameter)
    return copied


def moved(metadata: PagedMetadata, to: str) -> PagedMetadata:
    tensors = {name: getattr(metadata, name).to(to) for name in ("slots", "page_table", "kv_lens", "q_starts")}
    mask = None if metadata.tail_mask is None else metadata.tail_mask.to(to)
    return dataclasses.replace(metadata, **tensors, tail_mask=mask)


def attention(pool: Pool, to: str, full: PagedMetadata, window: int | None, layers: tuple[int, ...]) -> PagedAttention:
    sliding = moved(dataclasses.replace(full, window=window), to) if layers else None
    return PagedAttention(pool.k, pool.v, moved(full, to), sliding, layers)


def pool_on(to: str, layers: int, config: LayerConfig) -> Pool:
    pool = Pool.of(layers, len(LENGTHS), config.num_key_value_heads, config.head_dim)
    return Pool([k.to(to) for k in pool.k], [v.to(to) for v in pool.v], pool.page_table)


def prefill_and_verify(target: Qwen3, to: str) -> torch.Tensor:
    """Logits of a ragged prefill, then of four rows a request; the features too."""
    config, layers = target.config, FAMILIES["small"].dflash.feature_layers
    pool, out, before = pool_on(to, config.num_hidden_layers, config), [], [0, 0, 0]
    generator = torch.Generator().manual_seed(5)
    for new in (LENGTHS, [4, 4, 4], [1, 1, 1]):
        ids = torch.randint(0, config.vocab_size, (sum(new),), generator=generator).to(to)
        full = pool.metadata(before, new)
        backend = attention(pool, to, full, config.sliding_window, config.sliding_layers)
        hidden, features = target(ids, spans(before, new).to(to), backend, layers)
        out += [target.logits(hidden).flatten(), features.flatten()]
        before = [start + count for start, count in zip(before, new, strict=True)]
    return torch.cat(out).cpu()


@pytest.mark.parametrize("window", [None, 7])
def test_a_target_through_the_kernels_equals_the_plain_one(window: int | None) -> None:
    target = sized(slide_odd_layers(FAMILIES["small"].target, window))
    torch.testing.assert_close(prefill_and_verify(on_cuda(target), "cuda"), prefill_and_verify(target, "cpu"), **CLOSE)


def drafted(kind: str, target: Qwen3, to: str) -> torch.Tensor:
    """Logits that a random draft gives behind random features."""
    config = FAMILIES["small"].drafts()[kind]
    made = random_draft(config, random_target(target.config))
    draft = random_draft(config, target)
    for name, parameter in made.named_parameters():
        draft.get_parameter(name).copy_(parameter * (2.0 if parameter.dim() > 1 else 1.0))
    layers = {"eagle": 1, "mtp": 3, "dflash": 3}[kind]
    pool, total = pool_on(to, layers, config), sum(LENGTHS)
    generator = torch.Generator().manual_seed(6)
    features = torch.randn(total, 3 * target.config.hidden_size, generator=generator).to(to)
    ids = torch.randint(0, 4096, (total,), generator=generator).to(to)
    positions = spans([0, 0, 0], LENGTHS).to(to)
    committed = pool.metadata([0, 0, 0], LENGTHS)
    backend = PagedAttention(pool.k, pool.v, moved(committed, to))
    match draft:
        case Eagle3():
            return draft.logits(draft(ids, draft.fuse(features), positions, backend)).cpu()
        case MultiLayerEagle():
            hidden, out = draft.fuse(features), []
            for step in range(3):
                hidden = draft(step, ids, hidden, positions, backend)
                out.append(draft.logits(step, hidden))
            return torch.stack(out).cpu()
        case DFlash():
            context = draft.context(features)
            for layer in range(layers):
                k, v = draft.context_kv(layer, context, positions)
                slots = committed.slots.to(to)
                pool.k[layer][slots], pool.v[layer][slots] = k, v
            size = draft.config.block_size
            block = draft.block(ids[: len(LENGTHS)]).flatten()
            filled = moved(pool.metadata(LENGTHS, [size] * 3, causal=False), to)
            return draft.logits(
                draft(block, spans(LENGTHS, [size] * 3).to(to), PagedAttention(pool.k, pool.v, filled))
            ).cpu()


@pytest.mark.parametrize("kind", ["eagle", "mtp", "dflash"])
def test_a_draft_through_the_kernels_equals_the_plain_one(kind: str) -> None:
    target = sized(FAMILIES["small"].target)
    on_gpu, on_cpu = drafted(kind, on_cuda(target), "cuda"), drafted(kind, target, "cpu")
    torch.testing.assert_close(on_gpu, on_cpu, **CLOSE)


def test_a_target_on_the_gpu_gives_the_logits_of_transformers() -> None:
    target = on_cuda(sized(FAMILIES["small"].target))
    ids = torch.randint(0, 4096, (40,), device="cuda")
    pool = pool_on("cuda", 6, target.config)
    full = moved(pool.metadata([0], [40]), "cuda")
    hidden, _ = target(ids, torch.arange(40, device="cuda"), PagedAttention(pool.k, pool.v, full))
    expected = target_to_transformers(target)(ids[None]).logits[0]
    torch.testing.assert_close(target.logits(hidden), expected, **CLOSE)


def test_the_8b_shape_is_made_on_the_gpu_in_seconds_and_shared_with_transformers() -> None:
    begun = time.perf_counter()
    target = load_target("8b", "cuda", torch.bfloat16)
    draft = load_draft("dflash", "8b", target)
    assert isinstance(draft, DFlash)
    torch.cuda.synchronize()
    assert time.perf_counter() - begun < 30
    made = torch.cuda.memory_allocated()
    theirs = target_to_transformers(target), dflash_to_transformers(draft)
    assert torch.cuda.memory_allocated() - made < 2**20
    names = disk_tensors(target)
    shared = theirs[0].model.layers[35].mlp.up_proj.weight
    assert shared.data_ptr() == names["model.layers.35.mlp.up_proj.weight"].data_ptr()
    assert target.embed_tokens.weight.float().std().item() == pytest.approx(0.02, rel=0.01)
