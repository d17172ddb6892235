"""``config.json`` of a size: the target's config and its drafts', checked key by key when read."""

import dataclasses
import json
from pathlib import Path
from typing import Any, TypeVar

from refimpl.model.config import DFlashConfig, EagleConfig, LayerConfig, ModelConfig, MtpConfig
from refimpl.model.shapes import Family
from refimpl.model.weights_io import WeightsError, replace_file

_Config = TypeVar("_Config", bound=LayerConfig)

_DRAFTS: dict[str, type[EagleConfig] | type[MtpConfig] | type[DFlashConfig]] = {
    "eagle": EagleConfig,
    "mtp": MtpConfig,
    "dflash": DFlashConfig,
}


def save_family(family: Family, path: Path) -> None:
    """Writes ``{"target": {…}, "drafts": {"eagle": {…}, …}}``; a reader never sees half of it."""
    content = {
        "target": dataclasses.asdict(family.target),
        "drafts": {kind: dataclasses.asdict(config) for kind, config in family.drafts().items()},
    }
    replace_file(path, (json.dumps(content, indent=2) + "\n").encode())


def load_family(path: Path) -> Family:
    """Reads what :func:`save_family` wrote.

    Raises:
        FileNotFoundError: no such file.
        WeightsError: not JSON, a key unknown or missing, or a shape that cannot be.
    """
    content = _read(path)
    if not isinstance(content, dict) or content.keys() != {"target", "drafts"}:
        raise WeightsError(f'{path}: must hold the keys "target" and "drafts", and nothing else')
    written = content["drafts"]
    if not isinstance(written, dict):
        raise WeightsError(f"{path}: drafts must be a table of {', '.join(_DRAFTS)}")
    if written.keys() - _DRAFTS.keys():
        raise WeightsError(f"{path}: drafts must be a table of {', '.join(_DRAFTS)}; it holds {[*written]}")
    drafts: dict[str, Any] = {kind: _config(path, _DRAFTS[kind], values) for kind, values in written.items()}
    return Family(target=_config(path, ModelConfig, content["target"]), **drafts)


def _read(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no config there; name a size that has weights")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WeightsError(f"{path}: not JSON ({error}); fetch or train it again") from error


def _config(path: Path, kind: type[_Config], values: Any) -> _Config:
    """Tuples come back from JSON as lists; all else is as it was written."""
    if not isinstance(values, dict):
        raise WeightsError(f"{path}: {kind.__name__} must be a table of names and values")
    arguments: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise WeightsError(f"{path}: {kind.__name__} does not fit ({error})") from error
