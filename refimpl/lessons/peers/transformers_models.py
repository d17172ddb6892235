"""Our models as transformers' classes, on the same memory: the oracle of parity tests and the peer of benchmarks."""

from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from refimpl.model.config import LayerConfig, ModelConfig
from refimpl.model.dflash import DFlash
from refimpl.model.qwen3 import Qwen3
from refimpl.model.weights_io import disk_tensors

_DFLASH_NAMES = {"fc.": "encoder.fc.", "hidden_norm.": "encoder.output_norm_enc."}


def target_to_transformers(target: Qwen3, attention: str = "sdpa") -> Any:
    """A ``Qwen3ForCausalLM`` whose parameters are the target's own memory; nothing is copied.

    Args:
        target: on the CPU or on CUDA.
        attention: which attention of transformers it runs.

    Returns:
        The model, for inference.
    """
    library, config = _transformers(), target.config
    theirs = library.Qwen3Config(
        **_layer_arguments(config),
        vocab_size=config.vocab_size,
        num_hidden_layers=config.num_hidden_layers,
        tie_word_embeddings=config.tie_word_embeddings,
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        sliding_window=config.sliding_window,
        use_sliding_window=config.sliding_window is not None,
        layer_types=_layer_types(config),
        attn_implementation=attention,
    )
    with torch.device("meta"):
        model = library.Qwen3ForCausalLM(theirs)
    _assign(model, disk_tensors(target))
    model.tie_weights()
    model.model.rotary_emb = _rotary(model.model.rotary_emb, theirs, target.device)
    return _ready(model)


def dflash_to_transformers(draft: DFlash, attention: str = "sdpa") -> Any:
    """transformers' DFLASH draft, ``MuseGlimmerAssistantModel``, on the memory of ours.

    Args:
        draft: on the CPU or on CUDA; its weights map one to one, only the names of the context's projection differ.
        attention: which attention of transformers it runs.

    Returns:
        The model, for ``generate(assistant_model=…, speculation_type="dflash")``.
    """
    library, config, target = _transformers(), draft.config, draft.shared.target_config
    theirs = library.MuseGlimmerAssistantConfig(
        **_layer_arguments(config),
        num_hidden_layers=config.num_hidden_layers,
        layer_types=["full_attention"] * config.num_hidden_layers,
        bos_token_id=target.bos_token_id,
        eos_token_id=target.eos_token_id,
        pad_token_id=target.eos_token_id,
        block_size=config.block_size,
        mask_token_id=target.mask_token_id,
        target_layer_ids=list(config.feature_layers),
        attn_implementation=attention,
    )
    with torch.device("meta"):
        model = library.MuseGlimmerAssistantModel(theirs)
    _assign(model, {_dflash_name(name): tensor for name, tensor in disk_tensors(draft).items()})
    model.rotary_emb = _rotary(model.rotary_emb, theirs, draft.fc.weight.device)
    return _ready(model)


def _transformers() -> Any:
    """Imported when it is needed, as it takes seconds; untyped."""
    return import_module("transformers")


def _layer_arguments(config: LayerConfig) -> dict[str, Any]:
    return {
        "hidden_size": config.hidden_size,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.intermediate_size,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta},
        "rms_norm_eps": config.rms_norm_eps,
        "max_position_embeddings": config.max_position_embeddings,
    }


def _layer_types(config: ModelConfig) -> list[str]:
    slides = set(config.sliding_layers)
    return ["sliding_attention" if layer in slides else "full_attention" for layer in range(config.num_hidden_layers)]


def _dflash_name(name: str) -> str:
    for ours, theirs in _DFLASH_NAMES.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def _assign(model: Any, tensors: dict[str, Tensor]) -> None:
    """Strict but for a tied head, which is no tensor of its own."""
    found = model.load_state_dict(tensors, strict=False, assign=True)
    missing = [name for name in found.missing_keys if name != "lm_head.weight"]
    if missing or found.unexpected_keys:
        raise RuntimeError(
            f"{type(model).__name__} of this transformers wants {missing} and does not know {found.unexpected_keys}; "
            "use transformers 5.17"
        )


def _rotary(made_on_meta: Any, config: Any, device: torch.device) -> Any:
    """Its angles are computed when it is made, and on the meta device there is nothing to compute."""
    return type(made_on_meta)(config).to(device)


def _ready(model: Any) -> Any:
    return model.requires_grad_(False).eval()
