"""Weights on disk: safetensors in bf16 under Hugging Face's names, and the config.json that says their shapes.

In memory q, k and v are one matrix, gate and up another; on disk each is its own, so that other libraries read the
files.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from refimpl.model.config import LayerConfig
from refimpl.model.dflash import DFlash
from refimpl.model.eagle import Eagle3
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.qwen3 import Qwen3

Draft = Eagle3 | MultiLayerEagle | DFlash
Model = Qwen3 | Draft

DISK_DTYPE = torch.bfloat16


class WeightsError(ValueError):
    """A weights file or a config that does not fit; one sentence, naming the file."""


def disk_tensors(model: Model) -> dict[str, Tensor]:
    """Every parameter under its name on disk, as views of the memory of the model.

    Writing to a view writes to the model, so the same table serves to save and to load.

    Returns:
        Names as transformers' Qwen3 has them for a target (``model.layers.0.self_attn.q_proj.weight``), as z-lab and
        SGLang have them for a draft (``layers.0.self_attn.q_proj.weight``).
    """
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        for disk_name, view in _split(name, parameter.detach(), model.config):
            tensors[_prefix(model, disk_name) + disk_name] = view
    return tensors


def save_weights(model: Model, path: Path) -> None:
    """Writes a model's weights in bf16; a reader sees the old file or the new one, never half of one.

    Args:
        model: on any device, in any dtype; rounded to bf16.
        path: ``….safetensors``; its folder is made.

    Order:
        Blocks the host until the weights have been copied off their device.
    """
    tensors = {
        name: view.to(device="cpu", dtype=DISK_DTYPE, copy=True).contiguous()
        for name, view in disk_tensors(model).items()
    }
    replace_file(path, safetensors.torch.save(tensors, metadata={"format": "pt"}))


def load_weights(model: Model, path: Path) -> None:
    """Fills a model from a file, cast to the model's dtype; all of it or, on an error, none.

    Args:
        model: made of the config that the weights were trained with.
        path: what :func:`save_weights` wrote.

    Raises:
        FileNotFoundError: no such file.
        WeightsError: a file cut short, a tensor missing or left over, or of another shape.

    Order:
        Copies are queued on the current stream; pageable memory, so the host blocks until they are made.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no weights there; train them, or name a size that has weights")
    try:
        stored = safetensors.torch.load_file(path)
    except SafetensorError as error:
        raise WeightsError(f"{path}: not a whole safetensors file ({error}); fetch or train it again") from error
    wanted = disk_tensors(model)
    _require_fit(path, model, wanted, stored)
    for name, view in wanted.items():
        view.copy_(stored[name].to(view.dtype))


def replace_file(path: Path, content: bytes) -> None:
    """Writes beside ``path`` and renames, so that ``path`` is never half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _require_fit(path: Path, model: Model, wanted: dict[str, Tensor], stored: dict[str, Tensor]) -> None:
    kind = type(model).__name__
    if missing := sorted(wanted.keys() - stored.keys()):
        raise WeightsError(
            f"{path}: {len(missing)} tensors that this {kind} needs are missing, {missing[0]} first; "
            "its config is not the one the weights were trained with"
        )
    if extra := sorted(stored.keys() - wanted.keys()):
        raise WeightsError(
            f"{path}: {len(extra)} tensors that this {kind} has no place for, {extra[0]} first; "
            "its config is not the one the weights were trained with"
        )
    for name, view in wanted.items():
        if view.shape != stored[name].shape:
            raise WeightsError(
                f"{path}: {name} has shape {list(stored[name].shape)}, and this {kind} wants {list(view.shape)}; "
                "its config is not the one the weights were trained with"
            )


def _prefix(model: Model, disk_name: str) -> str:
    return "model." if isinstance(model, Qwen3) and not disk_name.startswith("lm_head.") else ""


def _split(name: str, tensor: Tensor, config: LayerConfig) -> Iterator[tuple[str, Tensor]]:
    """The parts that a fused matrix has on disk; other tensors are one part."""
    stem, _, leaf = name.rpartition(".")
    owner, _, module = stem.rpartition(".")
    match module:
        case "qkv_proj":
            parts = {"q_proj": config.q_size, "k_proj": config.kv_size, "v_proj": config.kv_size}
        case "gate_up_proj":
            parts = {"gate_proj": config.intermediate_size, "up_proj": config.intermediate_size}
        case _:
            yield name, tensor
            return
    for part, rows in zip(parts, tensor.split(list(parts.values())), strict=True):
        yield f"{owner}.{part}.{leaf}", rows


def empty_model(model: nn.Module, device: str | torch.device, dtype: torch.dtype) -> None:
    """Gives a model that was made on the meta device memory on ``device``, not yet filled, frozen, for inference."""
    model.to(dtype).to_empty(device=device)
    model.requires_grad_(False).eval()
