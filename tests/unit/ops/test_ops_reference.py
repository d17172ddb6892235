"""The plain ops against transformers' functions and against loops; on `sim` they give what the CPU gives."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import refimpl.device
from refimpl.model import ops
from refimpl.program import Launch
from refimpl.record import record
from tests.unit.ops.cases import ATTENTION, Attention, attend_by_loops, attention_call, rope_table

EPS = 1e-6


@pytest.fixture
def random() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm_is_bit_equal_to_qwen3s(random: torch.Generator, dtype: torch.dtype) -> None:
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    theirs = Qwen3RMSNorm(96, EPS).to(dtype)
    weight = torch.randn(96, generator=random).to(dtype)
    theirs.weight.data.copy_(weight)
    x = (3 * torch.randn(2, 5, 96, generator=random)).to(dtype)
    assert torch.equal(ops.rms_norm(x, weight, EPS), theirs(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_add_rms_norm_is_the_sum_then_the_norm(random: torch.Generator, dtype: torch.dtype) -> None:
    x, residual, weight = (torch.randn(4, 64, generator=random).to(dtype) for _ in range(3))
    normed, total = ops.add_rms_norm(x, residual, weight[0], EPS)
    assert torch.equal(total, x + residual)
    assert torch.equal(normed, ops.rms_norm(x + residual, weight[0], EPS))


def test_qk_norm_rope_is_qwen3s_norm_and_rotation(random: torch.Generator) -> None:
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm, apply_rotary_pos_emb

    batch, length, heads, kv_heads, head_dim = 2, 7, 6, 2, 32
    qkv = torch.randn(batch, length, (heads + 2 * kv_heads) * head_dim, generator=random)
    q_weight, k_weight = torch.randn(2, head_dim, generator=random)
    positions = torch.randint(0, 50, (batch, length), generator=random)
    table = rope_table(50, head_dim)
    q, k, v = ops.qk_norm_rope(qkv, q_weight, k_weight, table, positions, heads, kv_heads, EPS)

    q_norm, k_norm = Qwen3RMSNorm(head_dim, EPS), Qwen3RMSNorm(head_dim, EPS)
    q_norm.weight.data.copy_(q_weight)
    k_norm.weight.data.copy_(k_weight)
    sizes = (heads * head_dim, kv_heads * head_dim, kv_heads * head_dim)
    q_in, k_in, v_in = (part.unflatten(-1, (-1, head_dim)) for part in qkv.split(sizes, dim=-1))
    cos, sin = (half.repeat(1, 1, 2) for half in table[positions].chunk(2, dim=-1))
    expected = apply_rotary_pos_emb(q_norm(q_in).transpose(1, 2), k_norm(k_in).transpose(1, 2), cos, sin)
    torch.testing.assert_close(q, expected[0].transpose(1, 2))
    torch.testing.assert_close(k, expected[1].transpose(1, 2))
    assert torch.equal(v, v_in)


def test_qk_norm_rope_of_keys_alone_needs_no_query(random: torch.Generator) -> None:
    kv = torch.randn(3, 2 * 2 * 32, generator=random)
    weight = torch.randn(32, generator=random)
    q, k, _ = ops.qk_norm_rope(kv, weight, weight, rope_table(9, 32), torch.arange(3), 0, 2, EPS)
    assert q.shape == (3, 0, 32)
    assert k.shape == (3, 2, 32)


def test_the_fused_store_puts_keys_and_values_where_the_two_ops_put_them(random: torch.Generator) -> None:
    qkv = torch.randn(5, (4 + 2 * 2) * 32, generator=random)
    weight = torch.randn(32, generator=random)
    arguments = (qkv, weight, weight, rope_table(20, 32), torch.arange(5), 4, 2, EPS)
    slots = torch.tensor([7, 3, 9, 1, 2])
    apart, fused = torch.zeros(2, 2, 11, 2, 32)
    q, k, v = ops.qk_norm_rope(*arguments)
    ops.store_kv(k, v, apart[0], apart[1], slots)
    assert torch.equal(ops.qk_norm_rope_store(*arguments, fused[0], fused[1], slots), q)
    assert torch.equal(apart, fused)


def test_silu_and_mul_gates_the_second_half_by_the_first(random: torch.Generator) -> None:
    gate, up = torch.randn(2, 3, 40, generator=random)
    expected = gate / (1 + (-gate).exp()) * up
    torch.testing.assert_close(ops.silu_and_mul(torch.cat((gate, up), dim=-1)), expected)


def test_store_kv_changes_the_named_slots_and_no_other() -> None:
    k_cache, v_cache = torch.zeros(2, 6, 2, 4)
    k, v = torch.arange(1, 33).float().view(2, 2, 2, 4)
    ops.store_kv(k, v, k_cache, v_cache, torch.tensor([4, 2]))
    assert torch.equal(k_cache[[4, 2]], k)
    assert torch.equal(v_cache[[4, 2]], v)
    assert not k_cache[[0, 1, 3, 5]].any()
    assert not v_cache[[0, 1, 3, 5]].any()


@pytest.mark.parametrize("case", ATTENTION, ids=lambda case: case.name)
def test_paged_attention_is_attention_row_by_row(case: Attention) -> None:
    call = attention_call(case, torch.float32, "cpu")
    torch.testing.assert_close(
        ops.paged_attention(**call), attend_by_loops(**call).float(), rtol=1e-5, atol=5e-6, equal_nan=False
    )


def test_paged_attention_keeps_bfloat16_and_sums_in_float32() -> None:
    call = attention_call(ATTENTION[1], torch.bfloat16, "cpu")
    out = ops.paged_attention(**call)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out, attend_by_loops(**call).bfloat16(), rtol=1e-2, atol=1e-3)


def test_the_scale_is_one_over_the_root_of_the_head_if_none_is_given() -> None:
    call = attention_call(ATTENTION[0], torch.float32, "cpu") | {"scale": None}
    assert torch.equal(ops.paged_attention(**call), ops.paged_attention(**call | {"scale": 32**-0.5}))


def test_tensors_that_speak_of_different_numbers_of_requests_or_tokens_are_refused() -> None:
    call = attention_call(ATTENTION[4], torch.float32, "cpu")
    for name, sentence in (("page_table", "1 rows, kv_lens 2"), ("kv_lens", "kv_lens 1"), ("q_starts", "q_starts 1")):
        with pytest.raises(ValueError, match=sentence):
            ops.paged_attention(**call | {name: call[name][:1]})
    k, cache, slots = torch.zeros(3, 2, 4), torch.zeros(9, 2, 4), torch.arange(2)
    with pytest.raises(ValueError, match="3 tokens, and slots of shape"):
        ops.store_kv(k, k, cache, cache, slots)
    table, rows, lens = _batch_of_three()
    with pytest.raises(ValueError, match="3 rows and 2 lengths"):
        ops.load_rows(table, rows, lens[:2], rows, lens, table, 3)


def _batch_of_three() -> tuple[Tensor, ...]:
    req_to_token = torch.arange(60).int().view(6, 10)
    req_to_token[0] = 0
    return req_to_token, torch.tensor([3, 1, 5]), torch.tensor([4, 9, 2]).int()


def test_load_rows_copies_the_batch_and_pads_it_with_row_0() -> None:
    req_to_token, indices, lens = _batch_of_three()
    out_indices, out_lens = torch.full((8,), 99), torch.full((8,), 99).int()
    out_table = torch.full((8, 7), 99).int()
    ops.load_rows(req_to_token, indices, lens, out_indices, out_lens, out_table, bucket=4)
    assert out_indices.tolist() == [3, 1, 5, 0, 99, 99, 99, 99]
    assert out_lens.tolist() == [4, 9, 2, 0, 99, 99, 99, 99]
    assert torch.equal(out_table[:4], req_to_token[[3, 1, 5, 0], :7])
    assert (out_table[4:] == 99).all()


def test_load_rows_refuses_a_bucket_that_does_not_fit() -> None:
    req_to_token, indices, lens = _batch_of_three()
    buffers = torch.zeros(4).long(), torch.zeros(4).int(), torch.zeros(4, 10).int()
    for bucket in (2, 5):
        with pytest.raises(ValueError, match=f"3 requests for bucket {bucket} with buffers of 4"):
            ops.load_rows(req_to_token, indices, lens, *buffers, bucket)


def test_reference_ops_carry_gradients() -> None:
    qkv = torch.randn(3, 4 * 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(8, dtype=torch.float64, requires_grad=True)

    def rotated(qkv: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        return ops.qk_norm_rope(qkv, weight, weight, rope_table(3, 8), torch.arange(3), 2, 1, EPS)

    assert torch.autograd.gradcheck(rotated, (qkv, weight))
    assert torch.autograd.gradcheck(lambda x, w: ops.add_rms_norm(x, 2 * x, w, EPS), (qkv[:, :8], weight))
    assert torch.autograd.gradcheck(ops.silu_and_mul, (qkv,))


@pytest.mark.parametrize("case", ATTENTION, ids=lambda case: case.name)
def test_attention_on_sim_is_attention_on_the_cpu(case: Attention) -> None:
    refimpl.device.get("sim")
    call = attention_call(case, torch.float32, "cpu")
    there: dict[str, Any] = {name: x.to("sim") if isinstance(x, Tensor) else x for name, x in call.items()}
    torch.testing.assert_close(ops.paged_attention(**there).cpu(), ops.paged_attention(**call), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("longest", [5, 64, 150, 400])
def test_attention_on_sim_does_not_change_in_a_bit_with_the_longest_request_of_the_batch(longest: int) -> None:
    refimpl.device.get("sim")
    call = attention_call(Attention("", (3, 3), (40, 500), heads=3, kv_heads=1), torch.float32, "cpu")
    there: dict[str, Any] = {name: x.to("sim") if isinstance(x, Tensor) else x for name, x in call.items()}
    whole = ops.paged_attention(**there).cpu()[:3]
    there["kv_lens"][1] = longest
    assert torch.equal(ops.paged_attention(**there).cpu()[:3], whole)


def test_every_other_op_on_sim_is_the_op_on_the_cpu(random: torch.Generator) -> None:
    refimpl.device.get("sim")

    def everything(device: str) -> list[Tensor]:
        qkv = torch.randn(5, 8 * 32, generator=random.manual_seed(1)).to(device)
        weight = torch.ones(32).to(device)
        cache = torch.zeros(2, 11, 2, 32).to(device)
        slots = torch.tensor([7, 3, 9, 1, 2]).to(device)
        rope = rope_table(20, 32).to(device), torch.arange(5).to(device)
        q = ops.qk_norm_rope_store(qkv, weight, weight, *rope, 4, 2, EPS, cache[0], cache[1], slots)
        table, indices, lens = (x.to(device) for x in _batch_of_three())
        buffers = torch.ones(4).long().to(device), torch.ones(4).int().to(device), torch.ones(4, 8).int().to(device)
        ops.load_rows(table, indices, lens, *buffers, bucket=4)
        gated = ops.silu_and_mul(qkv)
        return [x.cpu() for x in (q, cache, *buffers, table, gated, *ops.add_rms_norm(gated, gated, gated[0], EPS))]

    for there, here in zip(everything("sim"), everything("cpu"), strict=True):
        assert torch.equal(there, here)


def _pieces_of_work(op: Callable[..., object], *arguments: object) -> int:
    with record("sim") as recording:
        op(*(x.to("sim") if isinstance(x, Tensor) else x for x in arguments))
    return sum(isinstance(piece, Launch) for piece in recording.ops)


def test_on_sim_an_op_is_one_piece_of_work_and_inside_reference_it_is_many() -> None:
    refimpl.device.get("sim")
    attention = attention_call(ATTENTION[4], torch.float32, "cpu").values()
    x, weight = torch.randn(4, 8 * 32), torch.ones(32)
    rotation = x, weight, weight, rope_table(9, 32), torch.arange(4), 4, 2, EPS
    cache = torch.zeros(9, 2, 32), torch.zeros(9, 2, 32), torch.arange(4)
    for op, arguments in (
        (ops.paged_attention, attention),
        (ops.add_rms_norm, (x, x, torch.ones(256), EPS)),
        (ops.qk_norm_rope, rotation),
        (ops.qk_norm_rope_store, (*rotation, *cache)),
    ):
        assert _pieces_of_work(op, *arguments) == 1
        with ops.reference():
            with ops.reference():
                pass
            assert _pieces_of_work(op, *arguments) > 2
        assert _pieces_of_work(op, *arguments) == 1


def test_what_needs_a_gradient_on_sim_goes_through_the_plain_op() -> None:
    refimpl.device.get("sim")
    x, weight = torch.randn(2, 8).to("sim"), torch.randn(8).to("sim").requires_grad_()
    assert ops.rms_norm(x, weight, EPS).grad_fn is not None
    with torch.inference_mode():
        assert not ops.rms_norm(x, weight, EPS).requires_grad
