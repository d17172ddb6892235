"""Every kernel against the plain op, with its output's memory poisoned; `TRITON_INTERPRET=1` runs them on the CPU."""

import os

import pytest
import torch
from torch import Tensor

from refimpl.model import ops
from refimpl.model.ops import plain
from tests.unit.ops.cases import ATTENTION, Attention, attention_call, rope_table

pytestmark = pytest.mark.gpu
DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
EPS = 1e-6
BF16_STEP = 2.0**-7
"""Between 1 and the next bfloat16."""
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
WIDTHS = pytest.mark.parametrize("d", [96, 320, 4096])


@pytest.fixture(autouse=True)
def _poisoned() -> None:
    """What is allocated next holds NaN until a kernel has written it."""
    if DEVICE == "cuda":
        for size in (1 << 10, 1 << 14, 1 << 18, 1 << 22):
            torch.full((size,), float("nan"), device=DEVICE)


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(DEVICE, dtype)


def _close(kernel: Tensor, expected: Tensor) -> None:
    """As close as two orders of summing are; in bfloat16 a term may have been rounded to its neighbour."""
    assert kernel.dtype == expected.dtype
    largest = expected.abs().max().item() if expected.numel() else 0.0
    rtol, atol = (1e-5, 1e-5) if expected.dtype == torch.float32 else (BF16_STEP, BF16_STEP * largest)
    torch.testing.assert_close(kernel, expected, rtol=rtol, atol=atol)


@DTYPES
@WIDTHS
def test_norms_are_the_plain_norms(dtype: torch.dtype, d: int) -> None:
    from refimpl.model.ops import triton_norm

    x, residual, weight = _random(3, 5, d, dtype=dtype), _random(3, 5, d, dtype=dtype), _random(d, dtype=dtype)
    _close(triton_norm.rms_norm(x, weight, EPS), plain.rms_norm(x, weight, EPS))
    normed, total = triton_norm.add_rms_norm(x, residual, weight, EPS)
    assert torch.equal(total, x + residual)
    _close(normed, plain.rms_norm(total, weight, EPS))


@DTYPES
def test_a_norm_reads_rows_with_a_stride_of_their_own(dtype: torch.dtype) -> None:
    from refimpl.model.ops import triton_norm

    wide, weight = _random(7, 200, dtype=dtype), _random(96, dtype=dtype)
    _close(triton_norm.rms_norm(wide[:, 32:128], weight, EPS), plain.rms_norm(wide[:, 32:128], weight, EPS))


@DTYPES
@pytest.mark.parametrize("f", [40, 768, 12288])
def test_the_gate_is_the_plain_gate(dtype: torch.dtype, f: int) -> None:
    from refimpl.model.ops import triton_norm

    gate_up = _random(2, 3, 2 * f, dtype=dtype)
    _close(triton_norm.silu_and_mul(gate_up), plain.silu_and_mul(gate_up))


@DTYPES
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(3, 1, 32), (5, 1, 64), (32, 8, 128), (0, 2, 64)])
def test_rotated_heads_are_the_plain_ones(dtype: torch.dtype, heads: int, kv_heads: int, head_dim: int) -> None:
    from refimpl.model.ops import triton_rope

    qkv = _random(6, (heads + 2 * kv_heads) * head_dim, dtype=dtype)
    weights = _random(head_dim, dtype=dtype), _random(head_dim + 1, dtype=dtype)[:-1]
    positions = torch.tensor([0, 5, 99, 1, 7, 7], device=DEVICE)
    call = (qkv, *weights, rope_table(100, head_dim).to(DEVICE), positions, heads, kv_heads, EPS)
    expected = plain.qk_norm_rope(*call)
    for ours, theirs in zip(triton_rope.qk_norm_rope(*call), expected, strict=True):
        _close(ours, theirs)

    slots = torch.tensor([4, 2, 9, 1, 12, 3], device=DEVICE)[:, None].repeat(1, 2)[:, 0]
    k_cache, v_cache = torch.zeros(2, 13, kv_heads, head_dim, dtype=dtype, device=DEVICE)
    _close(triton_rope.qk_norm_rope_store(*call, k_cache, v_cache, slots), expected[0])
    _close(k_cache[slots], expected[1])
    assert torch.equal(v_cache[slots], expected[2])
    assert not k_cache[[0, 5, 6, 7, 8, 10, 11]].any()


@DTYPES
def test_keys_and_values_land_in_their_slots_and_nowhere_else(dtype: torch.dtype) -> None:
    from refimpl.model.ops import triton_tables

    k, v = _random(5, 2, 32, dtype=dtype), _random(5, 6 * 32, dtype=dtype).unflatten(1, (6, 32))[:, 4:]
    slots = torch.tensor([4, 2, 9, 1, 12], device=DEVICE)
    ours, expected = torch.zeros(2, 2, 13, 2, 32, dtype=dtype, device=DEVICE)
    triton_tables.store_kv(k, v, ours[0], ours[1], slots)
    plain.store_kv(k, v, expected[0], expected[1], slots)
    assert torch.equal(ours, expected)


@DTYPES
@pytest.mark.parametrize("splits", [None, 1, 4])
@pytest.mark.parametrize("case", ATTENTION, ids=lambda case: case.name)
def test_paged_attention_is_the_plain_one_however_it_is_split(
    case: Attention, splits: int | None, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from refimpl.model.ops import triton_attention

    plan_of = triton_attention.plan_of
    if splits is not None:
        monkeypatch.setattr(triton_attention, "plan_of", lambda *shape: replace(plan_of(*shape), splits=splits))
    call = attention_call(case, dtype, DEVICE)
    _close(triton_attention.paged_attention(**call), plain.paged_attention(**call))


def test_lengths_may_be_int64_and_columns_of_a_table() -> None:
    from refimpl.model.ops import triton_attention

    call = attention_call(ATTENTION[11], torch.float32, DEVICE)
    expected = plain.paged_attention(**call)
    for name in ("kv_lens", "q_starts"):
        call[name] = call[name].long()[:, None].repeat(1, 3)[:, 1]
    _close(triton_attention.paged_attention(**call), expected)


@pytest.mark.parametrize("bs", [1, 3, 8])
def test_a_batch_is_loaded_as_the_plain_op_loads_it(bs: int) -> None:
    from refimpl.model.ops import triton_tables

    req_to_token = torch.arange(20 * 1500, device=DEVICE).int().view(20, 1500)
    indices = torch.randperm(20, generator=torch.Generator().manual_seed(bs))[:bs].to(DEVICE)
    lens = torch.arange(5, 5 + bs, device=DEVICE)
    pairs = []
    for op in (triton_tables.load_rows, plain.load_rows):
        out = (torch.full((9,), 7, device=DEVICE), torch.full((9,), 7, device=DEVICE).int())
        table = torch.full((9, 1300), 7, device=DEVICE).int()
        op(req_to_token, indices, lens, *out, table, 8)
        pairs.append((*out, table))
    for ours, expected in zip(*pairs, strict=True):
        assert torch.equal(ours, expected)


@pytest.mark.parametrize("d", [96, 320])
def test_a_norm_launched_again_takes_what_it_is_given_then(d: int) -> None:
    """The second launch of a kind goes past Triton's dispatch; one from memory that is not aligned does not."""
    from refimpl.model.ops import triton_norm

    weight, memory = _random(d), _random(40 * d + 8)
    for rows, begin in ((5, 0), (5, d), (40, 0), (7, 1), (7, 4), (5, 3), (40, 8)):
        x = memory[begin : begin + rows * d].view(rows, d)
        _close(triton_norm.rms_norm(x, weight, EPS), plain.rms_norm(x, weight, EPS))


@pytest.mark.skipif(DEVICE == "cpu", reason="the dispatch sends CPU tensors to the plain ops")
def test_a_gradient_through_a_kernel_is_an_error_and_none_inside_reference() -> None:
    x, weight = _random(2, 8).requires_grad_(), _random(8)
    with pytest.raises(RuntimeError, match="the kernels have no gradient"):
        ops.rms_norm(x, weight, EPS)
    with ops.reference():
        ops.rms_norm(x, weight, EPS).sum().backward()
    assert x.grad is not None


@pytest.mark.skipif(DEVICE == "cpu", reason="only a GPU captures")
def test_a_captured_step_follows_lengths_that_change_on_the_device() -> None:
    case = Attention("decode", (1, 1), (5, 60), heads=5, kv_heads=1, head_dim=64)
    call = attention_call(case, torch.float32, DEVICE)
    ops.paged_attention(**call)  # compiles; a capture may not
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = ops.paged_attention(**call)
    for lens in ((1, 1), (5, 60), (3, 33)):
        call["kv_lens"].copy_(torch.tensor(lens))
        out.fill_(float("nan"))
        graph.replay()
        _close(out, plain.paged_attention(**call))


@pytest.mark.skipif(DEVICE == "cpu", reason="only a GPU has streams")
@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
def test_a_kernel_that_may_start_early_still_comes_after_what_its_stream_waits_for(captured: bool) -> None:
    x, weight = _random(64, 4096), _random(4096)
    new = _random(64, 4097)[:, :-1].contiguous()
    main, side = torch.cuda.Stream(), torch.cuda.Stream()
    written = torch.cuda.Event()

    def work() -> Tensor:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)
            x.copy_(new)
            written.record()
        ops.rms_norm(new, weight, EPS)  # the kernel before: the next may start while it ends
        torch.cuda.current_stream().wait_event(written)
        return ops.rms_norm(x, weight, EPS)

    ops.rms_norm(x, weight, EPS)
    torch.cuda.synchronize()
    if captured:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=main):
            out = work()
        x.zero_()
        graph.replay()
    else:
        with torch.cuda.stream(main):
            out = work()
    torch.cuda.synchronize()
    _close(out, plain.rms_norm(new, weight, EPS))


@pytest.mark.skipif(DEVICE == "cpu", reason="only a GPU starts kernels early")
@pytest.mark.parametrize("bs", [1, 16])
def test_layers_that_read_settled_lengths_early_give_what_the_plain_layers_give(bs: int) -> None:
    heads, kv_heads, head_dim, layers, steps = 8, 2, 128, 12, 6
    qkv = [_random(bs, (heads + 2 * kv_heads) * head_dim + i)[:, i:] for i in range(layers)]
    rope, weight = rope_table(200, head_dim).to(DEVICE), _random(head_dim)
    req_to_token = torch.arange(bs * 128, device=DEVICE).int().view(bs, 128)
    rows, lens = torch.arange(bs, device=DEVICE), 100 + torch.arange(bs, device=DEVICE)
    table, kv_lens, indices = torch.zeros_like(req_to_token), torch.zeros_like(lens), torch.zeros_like(rows)
    q_starts = torch.arange(bs + 1, device=DEVICE)

    def step(caches: Tensor) -> Tensor:
        ops.load_rows(req_to_token, rows, lens, indices, kv_lens, table, bs)
        slots = table.gather(1, kv_lens[:, None] - 1).long().view(-1)
        out = []
        for (k, v), x in zip(caches, qkv, strict=True):
            head = (x, weight, weight, rope, kv_lens, heads, kv_heads, EPS)
            q = ops.qk_norm_rope_store(*head, k, v, slots)
            out.append(ops.paged_attention(q, k, v, table, kv_lens, q_starts, 1, settled=True))
        return torch.stack(out)

    caches = _random(layers, 2, bs * 128, kv_heads, head_dim)
    expected_caches = caches.clone()
    step(caches.clone())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step(caches)
    for _ in range(steps):
        graph.replay()
        with ops.reference():
            expected = step(expected_caches)
        _close(out, expected)
        lens += 1


@pytest.mark.skipif(DEVICE == "cpu", reason="only a GPU starts kernels early")
def test_a_chain_of_kernels_that_may_start_early_gives_what_the_chain_gives() -> None:
    x, weight = _random(64, 4096), _random(4096)
    expected, ours = x, x
    for _ in range(20):
        expected = plain.add_rms_norm(expected, x, weight, EPS)[0]
        ours = ops.add_rms_norm(ours, x, weight, EPS)[0]
    torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-3)
