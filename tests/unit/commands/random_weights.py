"""Weights of nano's shape that nobody trained, in files like those of trained ones."""

import shutil
from pathlib import Path

from refimpl.model.config_io import save_family
from refimpl.model.registry import random_draft, random_target
from refimpl.model.shapes import FAMILIES
from refimpl.model.tokenizer import TOKENIZER_PATH
from refimpl.model.weights_io import save_weights


def write_random_nano(folder: Path) -> Path:
    """A folder for --weights, with the tokenizer that comes with the package."""
    family = FAMILIES["nano"]
    save_family(family, folder / "nano" / "config.json")
    target = random_target(family.target)
    save_weights(target, folder / "nano" / "target.safetensors")
    for kind, config in family.drafts().items():
        save_weights(random_draft(config, target), folder / "nano" / f"{kind}.safetensors")
    shutil.copy(TOKENIZER_PATH, folder)
    return folder
