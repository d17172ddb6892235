"""What a run leaves: few files, so that they can be carried, and from them the weights, the results and the card."""

import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from refimpl.model.weights_io import replace_file
from refimpl.train import corpus as corpus_files

PACKS = {
    "small-target.tar": ("small/target.safetensors", "small/config.json"),
    "small-drafts.tar": tuple(f"small/{kind}.safetensors" for kind in ("eagle", "mtp", "dflash")),
    "nano.tar": ("nano/config.json", *(f"nano/{model}.safetensors" for model in ("target", "eagle", "mtp", "dflash"))),
}
"""Which weights travel in which archive."""
REPORT = "training.json"
LOG = "training.log"


def keep(corpus: Path, work: Path, out: Path, about: Mapping[str, Any]) -> None:
    """Pack what there is by now; whole files replace those of the call before.

    Args:
        corpus: folder of the token files.
        work: the run's folder.
        out: where the packs go.
        about: the run itself, for the report: machine and seconds.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name, members in PACKS.items():
        present = [member for member in members if (work / "weights" / member).is_file()]
        if present:
            _pack(out / name, work / "weights", present)
    replace_file(out / corpus_files.TOKENIZER, (corpus / corpus_files.TOKENIZER).read_bytes())
    content = {**about, "corpus": json.loads((corpus / corpus_files.CORPUS).read_text()), "jobs": reports(work)}
    replace_file(out / REPORT, (json.dumps(content, indent=1) + "\n").encode())
    logs = sorted((work / "logs").glob("*.log"))
    replace_file(out / LOG, b"".join(b"== " + log.name.encode() + b"\n" + log.read_bytes() for log in logs))


def reports(work: Path) -> dict[str, Any]:
    """What each job reported, by `<size>-<job>`."""
    return {file.stem: json.loads(file.read_text()) for file in sorted((work / "reports").glob("*.json"))}


def install(out: Path, weights: Path) -> list[str]:
    """Put a run's weights and its tokenizer where the registry reads them; returns the names of the files."""
    names = [corpus_files.TOKENIZER]
    replace_file(weights / corpus_files.TOKENIZER, (out / corpus_files.TOKENIZER).read_bytes())
    for name in PACKS:
        if (out / name).is_file():
            with tarfile.open(out / name) as archive:
                names += archive.getnames()
                archive.extractall(weights, filter="data")
    return names


def _pack(file: Path, folder: Path, members: list[str]) -> None:
    unfinished = file.with_suffix(".part")
    with tarfile.open(unfinished, "w") as archive:
        for member in members:
            archive.add(folder / member, arcname=member)
    os.replace(unfinished, file)
