"""Where training batches come from: random windows of the corpus, and rows that the target wrote."""

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from refimpl.train import corpus

SHARD_PATTERN = "shard-*.npy"


class CorpusText:
    """Random windows of one split, held on the device.

    Args:
        folder: the corpus (`corpus.build`).
        split: `train` or a domain.
        device: where batches are made.
        seed: of the windows drawn.
    """

    def __init__(self, folder: Path, split: str, device: torch.device, seed: int) -> None:
        """Loads the split."""
        self.tokens = torch.from_numpy(corpus.load(folder, split).astype(np.int32)).to(device)
        self._generator = torch.Generator(device).manual_seed(seed)

    def batch(self, rows: int, length: int) -> Tensor:
        """``[rows, length]`` int64 windows, drawn with replacement."""
        last = len(self.tokens) - length
        if last < 0:
            raise ValueError(
                f"the split has {len(self.tokens)} tokens, fewer than a window of {length}: take more text"
            )
        starts = torch.randint(last + 1, (rows, 1), generator=self._generator, device=self.tokens.device)
        return self.tokens[starts + torch.arange(length, device=self.tokens.device)].long()


class DraftText:
    """Rows for drafts: the corpus until the target has written something, then mostly the target's own text.

    The target may still be writing: shards are taken up as they appear in the folder.

    Args:
        corpus_text: where the other rows come from.
        folder: where shards appear (`write_shard`).
        own_share: of the rows of a batch that are the target's, once there are any.
        seed: of the rows drawn.
    """

    def __init__(self, corpus_text: CorpusText, folder: Path, own_share: float, seed: int) -> None:
        """Starts with no shard."""
        self._corpus, self._folder, self._own_share = corpus_text, folder, own_share
        self._device = corpus_text.tokens.device
        self._generator = torch.Generator(self._device).manual_seed(seed)
        self._shards: dict[str, Tensor] = {}
        self._rows: Tensor | None = None

    @property
    def own_tokens(self) -> int:
        """How many tokens of the target's there are by now."""
        return 0 if self._rows is None else self._rows.numel()

    def refresh(self) -> None:
        """Takes up shards that have appeared since the last call."""
        for file in sorted(self._folder.glob(SHARD_PATTERN)):
            if file.name not in self._shards:
                self._shards[file.name] = torch.from_numpy(np.load(file).astype(np.int16)).to(self._device)
                self._rows = torch.cat(list(self._shards.values()))

    def batch(self, rows: int, length: int) -> Tensor:
        """``[rows, length]`` int64."""
        own = 0 if self._rows is None else round(rows * self._own_share)
        parts = [self._corpus.batch(rows - own, length)]
        if self._rows is not None and own:
            chosen = torch.randint(len(self._rows), (own,), generator=self._generator, device=self._device)
            parts.append(self._rows[chosen, :length].long())
        return torch.cat(parts)


def write_shard(folder: Path, number: int, rows: Tensor) -> None:
    """Puts ``[rows, length]`` ids where `DraftText` finds them; whole or not at all, as a reader may look meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"shard-{number:04d}.npy"
    unfinished = folder / f"{file.stem}.part"
    with unfinished.open("wb") as stream:
        np.save(stream, rows.cpu().numpy().astype(np.uint16))
    os.replace(unfinished, file)
