"""Documents become tokens: the split by file, the tokenizer, and one file of uint16 ids a split."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from refimpl.model.shapes import VOCAB_SIZE
from refimpl.model.tokenizer import BOS, EOS, MASK
from refimpl.train.sources import Document, Domain, documents

SPECIALS = (BOS, EOS, MASK)
"""They take the top ids, in this order; `<mask>` never stands in a text: it is what a DFLASH block is filled with."""
HELD_OUT_SHARE = 0.02
"""Of the files of each domain that is trained on."""
PROSE_HELD_OUT_SHARE = 0.1
"""Plays are few and long: two in a hundred could be none."""
TRAIN = "train"
UNSEEN_TOKENS = 400_000
"""Of the package that is held out whole: prompts need no more."""


def held_out(document: Document) -> bool:
    """Whether a document is kept from training; its path alone decides, so that no re-run moves it."""
    if document.source.domain is Domain.UNSEEN:
        return True
    share = PROSE_HELD_OUT_SHARE if document.source.domain is Domain.PROSE else HELD_OUT_SHARE
    digest = hashlib.sha256(document.path.encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def train_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """A byte-level BPE of 4,096 ids, the three special ones at the top: it can spell any text."""
    plain = VOCAB_SIZE - len(SPECIALS)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=plain, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != plain:
        raise ValueError(f"the text yields {tokenizer.get_vocab_size()} tokens rather than {plain}: give more text")
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer


def build(prose: Path, folder: Path, tokenizer_file: Path) -> dict[str, Any]:
    """Write the tokenizer, `train.bin`, one `.bin` a held-out domain, and `corpus.json`, which is also returned.

    Args:
        prose: the archive of plays (`sources.documents`).
        folder: where the token files go; made if it is missing.
        tokenizer_file: where `tokenizer.json` goes.
    """
    found = list(documents(prose))
    kept = [document for document in found if not held_out(document)]
    tokenizer = train_tokenizer(document.text for document in kept)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer_file.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(tokenizer_file))
    tokenizer.encode_special_tokens = True  # a file that spells "<mask>" means these six characters
    splits = {TRAIN: kept}
    for domain in Domain:
        splits[domain.value] = [each for each in found if held_out(each) and each.source.domain is domain]
    report: dict[str, Any] = {"vocab_size": VOCAB_SIZE, "sources": _sources(found, kept), "splits": {}}
    for name, members in splits.items():
        limit = UNSEEN_TOKENS if name == Domain.UNSEEN else None
        tokens = encode(tokenizer, [document.text for document in members], limit)
        tokens.tofile(split_file(folder, name))
        size = len(decoded_bytes(tokenizer, tokens)) if limit else sum(len(each.text.encode()) for each in members)
        report["splits"][name] = {"files": len(members), "tokens": len(tokens), "bytes": size}
    (folder / "corpus.json").write_text(json.dumps(report, indent=1) + "\n")
    return report


def split_file(folder: Path, name: str) -> Path:
    """The file of little-endian uint16 ids of a split: `train` or the name of a domain."""
    return folder / f"{name.replace(' ', '_')}.bin"


def load(folder: Path, name: str) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """The ids of a split, `[tokens]` uint16.

    Raises:
        FileNotFoundError: the corpus has not been built in this folder.
    """
    file = split_file(folder, name)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing: build the corpus with `python -m refimpl train corpus`")
    return np.fromfile(file, dtype="<u2")


def encode(
    tokenizer: Tokenizer, texts: Sequence[str], limit: int | None = None
) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """Ids of all texts in a row, each between `<bos>` and `<eos>`; cut at `limit` ids if one is given."""
    bos, eos = (_id(tokenizer, special) for special in (BOS, EOS))
    ids: list[int] = []
    for text in texts:
        ids.append(bos)
        ids.extend(tokenizer.encode(text, add_special_tokens=False).ids)
        ids.append(eos)
        if limit is not None and len(ids) >= limit:
            break
    return np.asarray(ids[:limit], dtype="<u2")


def decoded_bytes(tokenizer: Tokenizer, tokens: np.ndarray[Any, np.dtype[np.uint16]]) -> bytes:
    """The text that ids stand for, the special ones left out."""
    text: str = tokenizer.decode(tokens.tolist(), skip_special_tokens=True)
    return text.encode()


def _id(tokenizer: Tokenizer, special: str) -> int:
    found = tokenizer.token_to_id(special)
    if found is None:
        raise ValueError(f"the tokenizer has no {special}: train it with `train_tokenizer`")
    return found


def _sources(found: Sequence[Document], kept: Sequence[Document]) -> list[dict[str, Any]]:
    rows = []
    for source in dict.fromkeys(document.source for document in found):
        mine = [document for document in found if document.source == source]
        rows.append(
            {
                **asdict(source),
                "files": len(mine),
                "trained_files": sum(document.source == source for document in kept),
                "bytes": sum(len(document.text.encode()) for document in mine),
            }
        )
    return rows
