"""The sizes that come with the book: nano for tests, small for the chapters, 8b for timing."""

from dataclasses import dataclass
from typing import Any

from refimpl.model.config import DFlashConfig, DraftConfig, EagleConfig, ModelConfig, MtpConfig


@dataclass(frozen=True)
class Family:
    """A target and the drafts made for it; None where a size has no such draft."""

    target: ModelConfig
    eagle: EagleConfig | None = None
    mtp: MtpConfig | None = None
    dflash: DFlashConfig | None = None

    def drafts(self) -> dict[str, DraftConfig]:
        """The drafts that there are, by kind."""
        named: dict[str, DraftConfig | None] = {"eagle": self.eagle, "mtp": self.mtp, "dflash": self.dflash}
        return {kind: config for kind, config in named.items() if config is not None}


# The tokenizer of the trained sizes: byte-level BPE, the three special tokens at the top.
VOCAB_SIZE = 4096
_TOKENS: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "bos_token_id": VOCAB_SIZE - 3,
    "eos_token_id": VOCAB_SIZE - 2,
    "mask_token_id": VOCAB_SIZE - 1,
}

_NANO: dict[str, Any] = {
    "hidden_size": 96,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "intermediate_size": 256,
}
# No last layer: a target does not hand out what follows it. All drafts of a size live on the same features.
_NANO_FEATURES: dict[str, Any] = {"feature_layers": (0, 1, 2)}

_SMALL: dict[str, Any] = {
    "hidden_size": 320,
    "num_attention_heads": 5,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "intermediate_size": 768,
}
_SMALL_FEATURES: dict[str, Any] = {"feature_layers": (1, 3, 4)}

# Qwen/Qwen3-8B, and z-lab's DFLASH draft for it.
_QWEN3_8B: dict[str, Any] = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12_288,
    "rope_theta": 1_000_000.0,
    "max_position_embeddings": 40_960,
}

FAMILIES: dict[str, Family] = {
    "nano": Family(
        target=ModelConfig(**_NANO, **_TOKENS, num_hidden_layers=4),
        eagle=EagleConfig(**_NANO, **_NANO_FEATURES, num_steps=7),
        mtp=MtpConfig(**_NANO, **_NANO_FEATURES, num_steps=3),
        dflash=DFlashConfig(**_NANO, **_NANO_FEATURES, num_hidden_layers=2, block_size=8),
    ),
    "small": Family(
        target=ModelConfig(**_SMALL, **_TOKENS, num_hidden_layers=6),
        # The newest token reaches an EAGLE layer through its attention alone: one value head of 64 would be its neck.
        eagle=EagleConfig(**{**_SMALL, "num_key_value_heads": 5}, **_SMALL_FEATURES, num_steps=7),
        # Three heads share what one EAGLE layer may weigh.
        mtp=MtpConfig(**{**_SMALL, "intermediate_size": 384}, **_SMALL_FEATURES, num_steps=3),
        dflash=DFlashConfig(**_SMALL, **_SMALL_FEATURES, num_hidden_layers=3, block_size=16),
    ),
    "8b": Family(
        target=ModelConfig(
            **_QWEN3_8B,
            vocab_size=151_936,
            num_hidden_layers=36,
            bos_token_id=151_643,
            eos_token_id=151_645,
            mask_token_id=151_669,
            tie_word_embeddings=False,
        ),
        dflash=DFlashConfig(**_QWEN3_8B, feature_layers=(1, 9, 17, 25, 33), num_hidden_layers=5, block_size=16),
    ),
}
