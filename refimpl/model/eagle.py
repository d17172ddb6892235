"""EAGLE-3: one layer that guesses the next token from the target's features, then from its own output, k times over."""

import torch
from torch import Tensor, nn

from refimpl.model.attention import AttentionBackend
from refimpl.model.config import EagleConfig
from refimpl.model.layers import MLP, Attention, RMSNorm
from refimpl.model.qwen3 import Qwen3
from refimpl.model.rope import RotaryTable
from refimpl.model.shared import SharedTables


class EagleLayer(nn.Module):
    """A decoder layer whose attention reads the next token's embedding and the feature side by side."""

    def __init__(self, config: EagleConfig) -> None:
        """Makes the layer."""
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.hidden_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config, input_size=2 * config.hidden_size)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(
        self, embedded: Tensor, hidden: Tensor, positions: Tensor, cos_sin: Tensor, attention: AttentionBackend
    ) -> Tensor:
        """Runs the layer; the residual stream is ``hidden``.

        Returns:
            ``[..., hidden_size]``.
        """
        both = torch.cat([self.input_layernorm(embedded), self.hidden_norm(hidden)], dim=-1)
        attended = self.self_attn(both, positions, cos_sin, 0, attention)
        normed, residual = self.post_attention_layernorm.add(attended, hidden)
        total: Tensor = residual + self.mlp(normed)
        return total


class Eagle3(nn.Module):
    """The EAGLE-3 head over a target's embedding table and head.

    Origin ``t`` is the token whose feature is known: its input token is ``x_{t+1}``, its kv entry is ``t``, and it
    guesses ``x_{t+2}``. Step 0 takes fused features of the target, each later step the hidden state that the step
    before returned.

    Args:
        config: the shape.
        target: whose tables are shared; not a submodule.

    Source:
        SafeAILab/EAGLE, ``cnets.py`` of EAGLE-3; arXiv 2503.01840.
    """

    def __init__(self, config: EagleConfig, target: Qwen3) -> None:
        """Makes the head."""
        super().__init__()
        self.config = config
        self.shared = SharedTables(target, config)
        self.fc = nn.Linear(len(config.feature_layers) * config.hidden_size, config.hidden_size, bias=False)
        self.midlayer = EagleLayer(config)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary = RotaryTable(config.head_dim, config.rope_theta, config.max_position_embeddings)

    def fuse(self, features: Tensor) -> Tensor:
        """Makes a hidden state of a token's features, ``[..., n * hidden_size]`` to ``[..., hidden_size]``."""
        out: Tensor = self.fc(features)
        return out

    def forward(self, input_ids: Tensor, hidden: Tensor, positions: Tensor, attention: AttentionBackend) -> Tensor:
        """Runs one step.

        Args:
            input_ids: ``[...]``, the token after each origin.
            hidden: ``[..., hidden_size]``, of :meth:`fuse` or of the step before.
            positions: ``[...]``, the origins.
            attention: the head's own KV, layer 0.

        Returns:
            ``[..., hidden_size]``: the next step's ``hidden``, and the input of :meth:`logits`.
        """
        out: Tensor = self.midlayer(self.shared.embed(input_ids), hidden, positions, self.rotary.cos_sin, attention)
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the token two after each origin, ``[..., vocab_size]``."""
        return self.shared.logits(self.norm(hidden))
