"""Models by name: trained ones from the files that come with the package, 8B-shaped ones made of random numbers."""

import dataclasses
from pathlib import Path

import torch

from refimpl.model.config import DFlashConfig, DraftConfig, EagleConfig, ModelConfig, MtpConfig
from refimpl.model.config_io import load_family
from refimpl.model.dflash import DFlash
from refimpl.model.eagle import Eagle3
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.qwen3 import Qwen3
from refimpl.model.random_weights import fill_random
from refimpl.model.shapes import FAMILIES, Family
from refimpl.model.weights_io import Draft, empty_model, load_weights

WEIGHTS = Path(__file__).parent / "weights"
TRAINED = ("nano", "small")
RANDOM = ("8b",)
DRAFT_KINDS = ("eagle", "mtp", "dflash")


def load_target(
    name: str,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    *,
    sliding_window: int | None = None,
    weights: Path = WEIGHTS,
) -> Qwen3:
    """A target, frozen, on a device.

    Args:
        name: ``"nano"``, ``"small"``: trained; ``"8b"``: the shape of Qwen3-8B with random weights, for timing.
        device: ``"cpu"``, ``"cuda"`` or ``"sim"``; ``sim`` is registered by :func:`refimpl.device.get`.
        dtype: what the bf16 weights are cast to.
        sliding_window: given, every odd layer sees only so many entries. The weights were trained without it: for
            experiments on the pool, not on the text.
        weights: the folder of the trained sizes.

    Raises:
        ValueError: an unknown name.
        FileNotFoundError, WeightsError: files that are not there or do not fit.

    Order:
        Copies are queued on the current stream; the host blocks until a pageable copy is made.
    """
    config = slide_odd_layers(_family(name, weights).target, sliding_window)
    if name in RANDOM:
        return random_target(config, device, dtype)
    target = make_target(config, device, dtype)
    load_weights(target, weights / name / "target.safetensors")
    return target


def load_draft(kind: str, name: str, target: Qwen3, *, weights: Path = WEIGHTS) -> Draft:
    """The draft of a kind that was trained for a target, on the target's device and in its dtype.

    Args:
        kind: ``"eagle"``, ``"mtp"`` or ``"dflash"``.
        name: the size, as for :func:`load_target`.
        target: whose embedding table and head the draft shares.
        weights: the folder of the trained sizes.

    Raises:
        ValueError: an unknown kind or name, a kind that the size has not, or a target of another size.
        FileNotFoundError, WeightsError: files that are not there or do not fit.
    """
    if kind not in DRAFT_KINDS:
        raise ValueError(f"unknown draft {kind!r}; name one of {', '.join(DRAFT_KINDS)}")
    drafts = _family(name, weights).drafts()
    if kind not in drafts:
        raise ValueError(f"target {name!r} has no {kind!r} draft; it has {', '.join(drafts)}")
    if name in RANDOM:
        return random_draft(drafts[kind], target)
    draft = make_draft(drafts[kind], target)
    load_weights(draft, weights / name / f"{kind}.safetensors")
    return draft


def random_target(
    config: ModelConfig, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32, seed: int = 0
) -> Qwen3:
    """A target of any shape with random weights, the same for a seed, a device kind and a dtype."""
    target = make_target(config, device, dtype)
    fill_random(target, seed)
    return target


def random_draft(config: DraftConfig, target: Qwen3, seed: int = 1) -> Draft:
    """A draft of any shape with random weights, on the target's device and in its dtype."""
    draft = make_draft(config, target)
    fill_random(draft, seed)
    return draft


def make_target(config: ModelConfig, device: str | torch.device, dtype: torch.dtype) -> Qwen3:
    """A frozen target whose weights are memory not yet written."""
    with torch.device("meta"):
        target = Qwen3(config)
    empty_model(target, device, dtype)
    return target


def make_draft(config: DraftConfig, target: Qwen3) -> Draft:
    """A frozen draft whose weights are memory not yet written."""
    with torch.device("meta"):
        draft = build_draft(config, target)
    empty_model(draft, target.device, target.dtype)
    return draft


def build_draft(config: DraftConfig, target: Qwen3) -> Draft:
    """The module of a config, initialized as torch does; for training."""
    match config:
        case EagleConfig():
            return Eagle3(config, target)
        case MtpConfig():
            return MultiLayerEagle(config, target)
        case DFlashConfig():
            return DFlash(config, target)


def slide_odd_layers(config: ModelConfig, window: int | None) -> ModelConfig:
    """The config with every odd layer seeing ``window`` entries; the config itself for None."""
    if window is None:
        return config
    odd = tuple(range(1, config.num_hidden_layers, 2))
    return dataclasses.replace(config, sliding_window=window, sliding_layers=odd)


def _family(name: str, weights: Path) -> Family:
    if name in RANDOM:
        return FAMILIES[name]
    if name not in TRAINED:
        raise ValueError(f"unknown target {name!r}; name one of {', '.join(TRAINED + RANDOM)}")
    return load_family(weights / name / "config.json")
