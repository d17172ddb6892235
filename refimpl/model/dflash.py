"""DFLASH: a few layers that fill a block of masks in one forward, over K and V made of the target's features."""

import torch
from torch import Tensor, nn

from refimpl.model.attention import AttentionBackend
from refimpl.model.config import DFlashConfig
from refimpl.model.layers import DecoderStack, RMSNorm
from refimpl.model.qwen3 import Qwen3
from refimpl.model.rope import RotaryTable
from refimpl.model.shared import SharedTables


class DFlash(nn.Module):
    """The DFLASH draft over a target's embedding table and head.

    The anchor is the last emitted token, at position ``n``; its features do not exist yet. Kv entries ``0..n-1`` are
    context: each accepted token's fused features, projected once to K and V in every layer. The block
    ``[anchor, mask, mask, ...]`` takes positions ``n..n+B-1``, sees all context and all of itself, and slot ``k``
    guesses the token of position ``n+k``. K and V of the block are scratch: drop them after the forward.

    Args:
        config: the shape.
        target: whose tables are shared; not a submodule.

    Source:
        z-lab/dflash; arXiv 2602.06036; transformers 5.17, ``MuseGlimmerAssistantModel``, is the oracle.
    """

    def __init__(self, config: DFlashConfig, target: Qwen3) -> None:
        """Makes the draft."""
        super().__init__()
        self.config = config
        self.shared = SharedTables(target, config)
        self.fc = nn.Linear(len(config.feature_layers) * config.hidden_size, config.hidden_size, bias=False)
        self.hidden_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.layers = DecoderStack(config, config.num_hidden_layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary = RotaryTable(config.head_dim, config.rope_theta, config.max_position_embeddings)

    def context(self, features: Tensor) -> Tensor:
        """Fused features of committed tokens, ``[..., n * hidden_size]`` to ``[..., hidden_size]``, for all layers."""
        out: Tensor = self.hidden_norm(self.fc(features))
        return out

    def context_kv(self, layer: int, context: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """K and V of committed tokens in one layer.

        Args:
            layer: which layer.
            context: ``[..., hidden_size]``, of :meth:`context`.
            positions: ``[...]``, of the tokens.

        Returns:
            ``k, v`` ``[..., kv_heads, head_dim]``.
        """
        return self.layers.layer(layer).self_attn.keys_values(context, positions, self.rotary.cos_sin)

    def block(self, anchors: Tensor) -> Tensor:
        """The block of each anchor, ``[...]`` to ``[..., block_size]``: the anchor, then masks."""
        masks = torch.full_like(anchors, self.shared.target_config.mask_token_id)[..., None]
        return torch.cat([anchors[..., None], masks.expand(*anchors.shape, self.config.block_size - 1)], dim=-1)

    def forward(self, block_ids: Tensor, positions: Tensor, attention: AttentionBackend) -> Tensor:
        """Fills blocks.

        Args:
            block_ids: ``[...]``, blocks of :meth:`block`, flat with paged attention.
            positions: ``[...]``.
            attention: KV that holds the context; not causal.

        Returns:
            ``[..., hidden_size]`` after the final norm, for :meth:`logits`.
        """
        hidden, residual, _ = self.layers(self.shared.embed(block_ids), positions, self.rotary.cos_sin, attention)
        hidden, _ = self.norm.add(hidden, residual)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the token at each slot's own position, ``[..., vocab_size]``."""
        return self.shared.logits(hidden)
