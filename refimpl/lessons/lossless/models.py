"""Tiny models that make mistakes visible: a target that every cached key and value counts in, drafts that half know it.

Random weights as they are used for timing will not do: such a target repeats its last token whatever its cache holds.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from refimpl.model.attention import AttentionBackend
from refimpl.model.config import DFlashConfig, DraftConfig, EagleConfig, ModelConfig, MtpConfig
from refimpl.model.dflash import DFlash
from refimpl.model.eagle import Eagle3
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.qwen3 import Qwen3
from refimpl.model.registry import make_target, slide_odd_layers
from refimpl.model.weights_io import Draft, empty_model

VOCAB_SIZE = 48
_HIDDEN = 32
_SHAPE: dict[str, Any] = {
    "hidden_size": _HIDDEN,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "intermediate_size": 32,
    "max_position_embeddings": 512,
}
TINY = ModelConfig(
    **_SHAPE,
    vocab_size=VOCAB_SIZE,
    num_hidden_layers=2,
    bos_token_id=VOCAB_SIZE - 3,
    eos_token_id=VOCAB_SIZE - 2,
    mask_token_id=VOCAB_SIZE - 1,
    tie_word_embeddings=False,
)
TINY_DRAFTS: dict[str, DraftConfig] = {
    "eagle": EagleConfig(**_SHAPE, feature_layers=(0,), num_steps=3),
    "mtp": MtpConfig(**_SHAPE, feature_layers=(0,), num_steps=3),
    "dflash": DFlashConfig(**_SHAPE, feature_layers=(0,), num_hidden_layers=1, block_size=4),
}

# How much the layers add to what the last token alone would say: enough that about half of the tokens hang on it.
_CONTEXT = 1.1
# Attention picks few entries, so that each of them counts.
_SHARPNESS = 4.0
# A guess weighs this much beside the draft's own hidden state.
_GUESS = 2.0


def tiny_target(device: str, dtype: torch.dtype = torch.float32, window: int | None = None, seed: int = 0) -> Qwen3:
    """A target of two layers, the same numbers on every device.

    Args:
        device: ``"cpu"``, ``"sim"`` or ``"cuda"``.
        dtype: of the weights.
        window: what the second layer sees; None: everything.
        seed: of the weights.
    """
    target = make_target(slide_odd_layers(TINY, window), device, dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            drawn = _drawn(parameter.shape, generator, _CONTEXT)
            parameter.copy_(_SHARPNESS * drawn if name.endswith("q_norm.weight") else drawn)
        embedding = torch.randn(VOCAB_SIZE, _HIDDEN, generator=generator)
        target.embed_tokens.weight.copy_(embedding)
        target.lm_head.weight[successors(seed)] = (embedding / _HIDDEN**0.5).to(device, dtype)
    return target


def successors(seed: int = 0) -> Tensor:
    """``[V]`` int64: the token that follows each, as far as the target goes by its last token alone; one long cycle."""
    cycle = torch.randperm(VOCAB_SIZE, generator=torch.Generator().manual_seed(seed))
    return torch.empty_like(cycle).index_copy(0, cycle, cycle.roll(-1))


def tiny_draft(kind: str, target: Qwen3, seed: int = 0) -> Draft:
    """A draft with random weights and caches like any other, which also knows what mostly follows a token.

    Args:
        kind: ``"eagle"``, ``"mtp"`` or ``"dflash"``.
        target: what :func:`tiny_target` made.
        seed: the target's.
    """
    config = TINY_DRAFTS[kind]
    with torch.device("meta"):
        draft = _guessing(config, target)
    empty_model(draft, target.device, target.dtype)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in draft.parameters():
            parameter.copy_(_drawn(parameter.shape, generator, 1.0))
        head = target.lm_head.weight.cpu().float()
        draft.guesses = (_GUESS * head * _HIDDEN**0.5)[_chains(seed)].to(target.device, target.dtype)
    return draft


class _Guesses:
    """Draft models that add what mostly follows to their hidden state; ``guesses`` is ``[steps, V, d]``."""

    guesses: Tensor

    def _guess(self, hidden: Tensor, step: int, tokens: Tensor) -> Tensor:
        scale = hidden.pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt()
        return hidden * scale + self.guesses[step].index_select(0, tokens.reshape(-1)).view(hidden.shape)


class _GuessingEagle(_Guesses, Eagle3):
    def forward(self, input_ids: Tensor, hidden: Tensor, positions: Tensor, attention: AttentionBackend) -> Tensor:
        return self._guess(super().forward(input_ids, hidden, positions, attention), 1, input_ids)


class _GuessingMtp(_Guesses, MultiLayerEagle):
    def forward(
        self, step: int, input_ids: Tensor, hidden: Tensor, positions: Tensor, attention: AttentionBackend
    ) -> Tensor:
        return self._guess(super().forward(step, input_ids, hidden, positions, attention), 1, input_ids)


class _GuessingDFlash(_Guesses, DFlash):
    def forward(self, block_ids: Tensor, positions: Tensor, attention: AttentionBackend) -> Tensor:
        hidden = super().forward(block_ids, positions, attention).view(-1, self.config.block_size, _HIDDEN)
        anchors = block_ids.view(-1, self.config.block_size)[:, 0]
        slots = [self._guess(hidden[:, slot], slot, anchors) for slot in range(self.config.block_size)]
        return torch.stack(slots, dim=1).view(-1, _HIDDEN)


def _guessing(config: DraftConfig, target: Qwen3) -> _GuessingEagle | _GuessingMtp | _GuessingDFlash:
    match config:
        case EagleConfig():
            return _GuessingEagle(config, target)
        case MtpConfig():
            return _GuessingMtp(config, target)
        case DFlashConfig():
            return _GuessingDFlash(config, target)


def _chains(seed: int) -> Tensor:
    """``[block, V]`` int64: what mostly follows a token after 0, 1, 2, … steps."""
    following, chain = successors(seed), [torch.arange(VOCAB_SIZE)]
    dflash = TINY_DRAFTS["dflash"]
    assert isinstance(dflash, DFlashConfig)
    for _ in range(dflash.block_size - 1):
        chain.append(following[chain[-1]])
    return torch.stack(chain)


def _drawn(shape: torch.Size, generator: torch.Generator, gain: float) -> Tensor:
    """A matrix that keeps the size of what it multiplies, times ``gain``; the weights of a norm lie around 1."""
    numbers = torch.randn(shape, generator=generator)
    return 1 + 0.3 * numbers if len(shape) == 1 else gain * numbers / shape[-1] ** 0.5
