"""What target and drafts are built of: RMSNorm, attention with QK-norm and RoPE, gated MLP, and the decoder layer.

Sums are carried as SGLang carries them: a layer returns what it adds and the residual stream apart, and the next norm
adds the two, so that on CUDA one kernel does both.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from refimpl.model import ops
from refimpl.model.attention import AttentionBackend, PagedAttention
from refimpl.model.config import LayerConfig


class RMSNorm(nn.Module):
    """Scales each row to a mean square of one, then by a learned weight."""

    def __init__(self, size: int, eps: float) -> None:
        """A norm over rows of ``size`` elements."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes ``x`` ``[..., size]``."""
        return ops.rms_norm(x, self.weight, self.eps)

    def add(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """Adds ``x`` to the residual stream; returns the normalized sum and the sum, both new tensors."""
        return ops.add_rms_norm(x, residual, self.weight, self.eps)


class Attention(nn.Module):
    """Projections, QK-norm and RoPE around whatever attends.

    Args:
        config: the shape.
        input_size: width of the input; EAGLE's is twice the hidden size.
    """

    def __init__(self, config: LayerConfig, input_size: int | None = None) -> None:
        """Makes the projections, not yet initialized for use."""
        super().__init__()
        self.heads = config.num_attention_heads
        self.kv_heads = config.num_key_value_heads
        self.q_size = config.q_size
        qkv_size = config.q_size + 2 * config.kv_size
        self.qkv_proj = nn.Linear(input_size or config.hidden_size, qkv_size, bias=False)
        self.o_proj = nn.Linear(config.q_size, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def forward(self, x: Tensor, positions: Tensor, cos_sin: Tensor, layer: int, attention: AttentionBackend) -> Tensor:
        """Attends.

        Args:
            x: ``[..., input_size]``.
            positions: ``[...]`` integer, the RoPE position of each row.
            cos_sin: the rotary table ``[positions, head_dim]`` fp32.
            layer: which KV cache of the backend is this layer's.
            attention: stores K and V and attends.

        Returns:
            ``[..., hidden_size]``.
        """
        qkv = self.qkv_proj(x)
        norms = (self.q_norm.weight, self.k_norm.weight, cos_sin, positions, self.heads, self.kv_heads, self.q_norm.eps)
        if isinstance(attention, PagedAttention):
            # One kernel makes K and V and stores them.
            attended = attention.attend(layer, ops.qk_norm_rope_store(qkv, *norms, *attention.place(layer)))
        else:
            attended = attention(layer, *ops.qk_norm_rope(qkv, *norms))
        out: Tensor = self.o_proj(attended.flatten(-2))
        return out

    def keys_values(self, x: Tensor, positions: Tensor, cos_sin: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values alone, as DFLASH makes them of its context: no query, so none is computed.

        Args:
            x: ``[..., input_size]``.
            positions: ``[...]`` integer.
            cos_sin: the rotary table.

        Returns:
            ``k, v`` ``[..., kv_heads, head_dim]``, k normalized and rotated.
        """
        kv = nn.functional.linear(x, self.qkv_proj.weight[self.q_size :])
        _, k, v = ops.qk_norm_rope(
            kv, self.q_norm.weight, self.k_norm.weight, cos_sin, positions, 0, self.kv_heads, self.k_norm.eps
        )
        return k, v


class MLP(nn.Module):
    """The gated MLP: ``down(silu(gate) * up)``, gate and up in one projection."""

    def __init__(self, config: LayerConfig) -> None:
        """Makes the projections."""
        super().__init__()
        self.gate_up_proj = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Maps ``[..., hidden_size]`` to the same."""
        out: Tensor = self.down_proj(ops.silu_and_mul(self.gate_up_proj(x)))
        return out


class DecoderLayer(nn.Module):
    """One layer of a target or of a DFLASH draft, its two sums left to the norms that follow them."""

    def __init__(self, config: LayerConfig) -> None:
        """Makes the layer."""
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(
        self,
        normed: Tensor,
        residual: Tensor,
        positions: Tensor,
        cos_sin: Tensor,
        layer: int,
        attention: AttentionBackend,
    ) -> tuple[Tensor, Tensor]:
        """Runs attention and MLP.

        Args:
            normed: what the layer before left, through :attr:`input_layernorm`, ``[..., hidden_size]``.
            residual: the same without the norm.
            positions: ``[...]``.
            cos_sin: the rotary table.
            layer: which KV cache.
            attention: stores K and V and attends.

        Returns:
            What the MLP adds, and the residual stream that it is still to be added to.
        """
        attended = self.self_attn(normed, positions, cos_sin, layer, attention)
        normed, residual = self.post_attention_layernorm.add(attended, residual)
        return self.mlp(normed), residual


class DecoderStack(nn.ModuleList):
    """The layers of a model in order; layer ``i`` uses KV cache ``i`` of the backend."""

    def __init__(self, config: LayerConfig, layers: int) -> None:
        """Makes the layers."""
        super().__init__(DecoderLayer(config) for _ in range(layers))

    def layer(self, index: int) -> DecoderLayer:
        """One of them."""
        return cast(DecoderLayer, self[index])

    def forward(
        self,
        hidden: Tensor,
        positions: Tensor,
        cos_sin: Tensor,
        attention: AttentionBackend,
        feature_layers: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Runs all layers on the embeddings.

        Returns:
            What the last layer adds, the residual stream that it is still to be added to, and the outputs of the named
            layers, none of them the last.
        """
        normed, residual = self.layer(0).input_layernorm(hidden), hidden
        outputs: dict[int, Tensor] = {}
        for index in range(len(self)):
            if index > 0:
                normed, residual = self.layer(index).input_layernorm.add(hidden, residual)
            if index - 1 in feature_layers:
                outputs[index - 1] = residual
            hidden, residual = self.layer(index)(normed, residual, positions, cos_sin, index, attention)
        return hidden, residual, [outputs[index] for index in feature_layers]
