"""What shape a target and its drafts have: frozen, checked when they are made."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LayerConfig:
    """The shape of one decoder layer, checked: heads divide evenly, a head can be rotated, nothing is empty.

    Args:
        hidden_size: width of the residual stream.
        num_attention_heads: query heads.
        num_key_value_heads: key and value heads; each serves ``num_attention_heads / num_key_value_heads`` queries.
        head_dim: width of one head, even.
        intermediate_size: width of the gated MLP.
        rope_theta: base of the rotary angles.
        rms_norm_eps: what RMSNorm adds to the mean square.
        max_position_embeddings: positions that the rotary table covers, from 0.

    Raises:
        ValueError: a number that cannot be one, or heads that do not divide.
    """

    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048

    def __post_init__(self) -> None:
        """Rejects a shape that no layer can have."""
        self._require_positive(
            "hidden_size",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "intermediate_size",
            "rope_theta",
            "rms_norm_eps",
            "max_position_embeddings",
        )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"{type(self).__name__}: num_attention_heads {self.num_attention_heads} is not a multiple of "
                f"num_key_value_heads {self.num_key_value_heads}; give each key head the same number of queries"
            )
        if self.head_dim % 2:
            raise ValueError(f"{type(self).__name__}: head_dim {self.head_dim} is odd; RoPE turns pairs, make it even")

    @property
    def q_size(self) -> int:
        """Width of all query heads together."""
        return self.num_attention_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of all key heads together; the value heads are as wide."""
        return self.num_key_value_heads * self.head_dim

    def _require_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value <= 0:
                raise ValueError(f"{type(self).__name__}: {name} is {value}; it must be above 0")

    def _require_features(self, feature_layers: tuple[int, ...]) -> None:
        if not feature_layers or list(feature_layers) != sorted(set(feature_layers)) or feature_layers[0] < 0:
            raise ValueError(
                f"{type(self).__name__}: feature_layers {feature_layers} must name layers of the target, each once, "
                "in ascending order"
            )


@dataclass(frozen=True, kw_only=True)
class ModelConfig(LayerConfig):
    """The shape of a target, and the ids that mean something to it.

    Args:
        vocab_size: rows of the embedding table.
        num_hidden_layers: decoder layers.
        tie_word_embeddings: whether the head is the embedding table.
        bos_token_id, eos_token_id, mask_token_id: begin, end, and the token that DFLASH puts where it guesses.
        sliding_window: how many kv entries a query of a sliding layer sees, itself included; None: no layer slides.
        sliding_layers: the layers that slide.

    Raises:
        ValueError: as :class:`LayerConfig`; ids outside the vocabulary; sliding layers without a window, or outside
            the model.
    """

    vocab_size: int
    num_hidden_layers: int
    bos_token_id: int
    eos_token_id: int
    mask_token_id: int
    tie_word_embeddings: bool = True
    sliding_window: int | None = None
    sliding_layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Rejects a shape that no target can have."""
        super().__post_init__()
        self._require_positive("vocab_size", "num_hidden_layers")
        for name in ("bos_token_id", "eos_token_id", "mask_token_id"):
            if not 0 <= getattr(self, name) < self.vocab_size:
                raise ValueError(f"ModelConfig: {name} {getattr(self, name)} is not below vocab_size {self.vocab_size}")
        if bool(self.sliding_layers) != (self.sliding_window is not None):
            raise ValueError(
                f"ModelConfig: sliding_window {self.sliding_window} and sliding_layers {self.sliding_layers} must be "
                "given together"
            )
        if self.sliding_window is not None and self.sliding_window <= 0:
            raise ValueError(f"ModelConfig: sliding_window is {self.sliding_window}; it must be above 0")
        if any(not 0 <= layer < self.num_hidden_layers for layer in self.sliding_layers):
            raise ValueError(
                f"ModelConfig: sliding_layers {self.sliding_layers} must lie in 0..{self.num_hidden_layers - 1}"
            )


@dataclass(frozen=True, kw_only=True)
class EagleConfig(LayerConfig):
    """The shape of an EAGLE-3 head: one layer, run ``num_steps`` times for ``num_steps`` drafts.

    Args:
        feature_layers: layers of the target whose outputs are fused into the first input.
        num_steps: drafts that the head was trained to make in a chain.
    """

    feature_layers: tuple[int, ...]
    num_steps: int

    def __post_init__(self) -> None:
        """Rejects a shape that no head can have."""
        super().__post_init__()
        self._require_positive("num_steps")
        self._require_features(self.feature_layers)


@dataclass(frozen=True, kw_only=True)
class MtpConfig(LayerConfig):
    """The shape of a multi-layer EAGLE: ``num_steps`` heads of one layer each, one for each draft.

    Args:
        feature_layers: layers of the target whose outputs are fused into the input of the first head.
        num_steps: heads, and so drafts.
    """

    feature_layers: tuple[int, ...]
    num_steps: int

    def __post_init__(self) -> None:
        """Rejects a shape that no draft can have."""
        super().__post_init__()
        self._require_positive("num_steps")
        self._require_features(self.feature_layers)


@dataclass(frozen=True, kw_only=True)
class DFlashConfig(LayerConfig):
    """The shape of a DFLASH draft: a few layers over the target's features, and one block a forward.

    Args:
        feature_layers: layers of the target whose outputs are the context.
        num_hidden_layers: layers of the draft.
        block_size: the anchor and the drafts after it: ``block_size - 1`` drafts a verify.
    """

    feature_layers: tuple[int, ...]
    num_hidden_layers: int
    block_size: int

    def __post_init__(self) -> None:
        """Rejects a shape that no draft can have."""
        super().__post_init__()
        self._require_positive("num_hidden_layers")
        self._require_features(self.feature_layers)
        if self.block_size < 2:
            raise ValueError(
                f"DFlashConfig: block_size is {self.block_size}; a block is an anchor and one draft at least"
            )


DraftConfig = EagleConfig | MtpConfig | DFlashConfig
