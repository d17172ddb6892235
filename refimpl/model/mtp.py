"""A multi-layer EAGLE: a head of its own for each draft of the chain, each with its own KV."""

from typing import cast

import torch
from torch import Tensor, nn

from refimpl.model.attention import AttentionBackend
from refimpl.model.config import MtpConfig
from refimpl.model.layers import DecoderLayer, RMSNorm
from refimpl.model.qwen3 import Qwen3
from refimpl.model.rope import RotaryTable
from refimpl.model.shared import SharedTables


class MtpHead(nn.Module):
    """Joins a token's embedding to the hidden state that came before it, and runs one decoder layer on the two."""

    def __init__(self, config: MtpConfig) -> None:
        """Makes the head."""
        super().__init__()
        self.enorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.hnorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = DecoderLayer(config)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self,
        step: int,
        embedded: Tensor,
        hidden: Tensor,
        positions: Tensor,
        cos_sin: Tensor,
        attention: AttentionBackend,
    ) -> Tensor:
        """Runs the head on layer ``step`` of the backend; returns ``[..., hidden_size]``."""
        joined = self.eh_proj(torch.cat([self.enorm(embedded), self.hnorm(hidden)], dim=-1))
        normed = self.layer.input_layernorm(joined)
        out, residual = self.layer(normed, joined, positions, cos_sin, step, attention)
        total: Tensor = residual + out
        return total


class MultiLayerEagle(nn.Module):
    """``num_steps`` heads over a target's embedding table and head.

    Head ``i`` of origin ``t`` reads token ``x_{t+1+i}`` and the hidden state of head ``i-1`` at ``t`` (the fused
    features for head 0), and guesses ``x_{t+2+i}``. Every head keeps kv entries of its own, at the origins.

    Args:
        config: the shape.
        target: whose tables are shared; not a submodule.

    Source:
        deepseek-ai/DeepSeek-V3, multi-token prediction; sgl-project/sglang, ``multi_layer_eagle_worker``.
    """

    def __init__(self, config: MtpConfig, target: Qwen3) -> None:
        """Makes the heads."""
        super().__init__()
        self.config = config
        self.shared = SharedTables(target, config)
        self.fc = nn.Linear(len(config.feature_layers) * config.hidden_size, config.hidden_size, bias=False)
        self.heads = nn.ModuleList(MtpHead(config) for _ in range(config.num_steps))
        self.rotary = RotaryTable(config.head_dim, config.rope_theta, config.max_position_embeddings)

    def fuse(self, features: Tensor) -> Tensor:
        """Makes a hidden state of a token's features, ``[..., n * hidden_size]`` to ``[..., hidden_size]``."""
        out: Tensor = self.fc(features)
        return out

    def forward(
        self, step: int, input_ids: Tensor, hidden: Tensor, positions: Tensor, attention: AttentionBackend
    ) -> Tensor:
        """Runs head ``step``.

        Args:
            step: which head, and which layer of ``attention``.
            input_ids: ``[...]``, the token ``1 + step`` after each origin.
            hidden: ``[..., hidden_size]``, of :meth:`fuse` for step 0, else what head ``step - 1`` returned.
            positions: ``[...]``, the origins.
            attention: KV of all heads, a layer each.

        Returns:
            ``[..., hidden_size]``: the next head's ``hidden``, and the input of :meth:`logits`.
        """
        embedded = self.shared.embed(input_ids)
        out: Tensor = self._head(step)(step, embedded, hidden, positions, self.rotary.cos_sin, attention)
        return out

    def logits(self, step: int, hidden: Tensor) -> Tensor:
        """Scores of the token ``2 + step`` after each origin, ``[..., vocab_size]``."""
        return self.shared.logits(self._head(step).norm(hidden))

    def _head(self, step: int) -> MtpHead:
        return cast(MtpHead, self.heads[step])
