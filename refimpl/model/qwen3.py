"""The target: a Qwen3-style transformer that also hands out the features its drafts live on."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from refimpl.model.attention import AttentionBackend
from refimpl.model.config import ModelConfig
from refimpl.model.layers import DecoderStack, RMSNorm
from refimpl.model.rope import RotaryTable


class Qwen3(nn.Module):
    """A decoder-only transformer: RMSNorm, QK-norm, RoPE, grouped queries, SwiGLU; equal to transformers' Qwen3.

    Source:
        transformers 5.17, ``Qwen3ForCausalLM``, is the oracle.
    """

    def __init__(self, config: ModelConfig) -> None:
        """Makes the modules with torch's default initialization; :mod:`refimpl.model.weights_io` fills them."""
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = DecoderStack(config, config.num_hidden_layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary = RotaryTable(config.head_dim, config.rope_theta, config.max_position_embeddings)
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embed_tokens.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """What the weights are cast to."""
        return self.embed_tokens.weight.dtype

    def embed(self, input_ids: Tensor) -> Tensor:
        """Rows of the embedding table, ``[...]`` to ``[..., hidden_size]``."""
        out: Tensor = self.embed_tokens(input_ids)
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of every token, ``[..., hidden_size]`` to ``[..., vocab_size]``, in the model's dtype."""
        head = self.embed_tokens if self.config.tie_word_embeddings else self.lm_head
        return nn.functional.linear(hidden, head.weight)

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        attention: AttentionBackend,
        feature_layers: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor | None]:
        """Runs the layers.

        Args:
            input_ids: ``[...]`` integer, flat over the batch with paged attention, ``[b, t]`` with dense.
            positions: as ``input_ids``.
            attention: where K and V go and come from.
            feature_layers: layers whose outputs are wanted, ascending. The last layer has none: what follows it is
                the final norm, and no draft is trained on that.

        Returns:
            The hidden states after the final norm ``[..., hidden_size]``, for :meth:`logits`; and the outputs of the
            named layers side by side ``[..., len(feature_layers) * hidden_size]``, None if none are named.

        Raises:
            ValueError: a feature layer that is not below the last layer.
        """
        self._check_features(feature_layers)
        hidden, residual, features = self.layers(
            self.embed(input_ids), positions, self.rotary.cos_sin, attention, feature_layers
        )
        hidden, _ = self.norm.add(hidden, residual)
        return hidden, torch.cat(features, dim=-1) if features else None

    def _check_features(self, feature_layers: Sequence[int]) -> None:
        last = self.config.num_hidden_layers - 1
        for index in feature_layers:
            if not 0 <= index < last:
                raise ValueError(f"Qwen3: feature layer {index} of a model with {last + 1} layers; name 0..{last - 1}")
