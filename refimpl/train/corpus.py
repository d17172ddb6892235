"""Documents become tokens: the split by file, the tokenizer, and one packed file of uint16 ids a split."""

import hashlib
import json
import lzma
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from refimpl.model.shapes import VOCAB_SIZE
from refimpl.model.tokenizer import BOS, EOS, MASK
from refimpl.train.sources import Document, Domain, documents

Ids = np.ndarray[Any, np.dtype[np.uint16]]

SPECIALS = (BOS, EOS, MASK)
"""They take the top ids, in this order; `<mask>` never stands in a text: it is what a DFLASH block is filled with."""
TRAIN = "train"
HELD_OUT_SHARES = {Domain.CODE: 0.02, Domain.UNSEEN: 1.0, Domain.PROSE: 0.1}
"""Of the files of a domain: nothing learns from them. Plays are few and long: two in a hundred could be none."""
TOKENIZER, CORPUS = "tokenizer.json", "corpus.json"
PACKING = 3
"""Of lzma: most of the gain in little of the time."""
TOKENIZER_TEXTS = 4
"""The tokenizer is trained on every fourth document: plenty for four thousand merges."""
UNSEEN_TOKENS = 400_000
"""Of the package that is held out whole: prompts need no more."""


def split_of(document: Document) -> str:
    """`train`, or the domain that it is held out for; its path alone decides, so that no re-run moves it."""
    held_out = HELD_OUT_SHARES[document.source.domain]
    digest = hashlib.sha256(document.path.encode()).digest()
    place = int.from_bytes(digest[:4], "big") / 2**32
    return document.source.domain.value if place < held_out else TRAIN


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


def build(prose: Path, folder: Path, tokenizer_file: Path | None = None) -> dict[str, Any]:
    """Write `tokenizer.json`, a packed file a split, and `corpus.json`, which is also returned.

    Args:
        prose: the archive of plays (`sources.documents`).
        folder: where they go; made if it is missing.
        tokenizer_file: of weights that are to be trained further; None trains a tokenizer.
    """
    found = list(documents(prose))
    splits: dict[str, list[Document]] = {name: [] for name in (TRAIN, *(domain.value for domain in Domain))}
    for document in found:
        splits[split_of(document)].append(document)
    if tokenizer_file is None:
        tokenizer = train_tokenizer(document.text for document in splits[TRAIN][::TOKENIZER_TEXTS])
    else:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / TOKENIZER))
    tokenizer.encode_special_tokens = True  # a file that spells "<mask>" means these six characters
    report: dict[str, Any] = {"vocab_size": VOCAB_SIZE, "sources": _sources(found, splits[TRAIN]), "splits": {}}
    for name, members in splits.items():
        limit = UNSEEN_TOKENS if name == Domain.UNSEEN else None
        tokens = encode(tokenizer, [document.text for document in members], limit)
        save(folder, name, tokens)
        size = len(decoded_bytes(tokenizer, tokens)) if limit else sum(len(each.text.encode()) for each in members)
        report["splits"][name] = {"files": len(members), "tokens": len(tokens), "bytes": size}
    (folder / CORPUS).write_text(json.dumps(report, indent=1) + "\n")
    return report


def split_file(folder: Path, name: str) -> Path:
    """The packed file of little-endian uint16 ids of a split: `train` or the name of a domain."""
    return folder / f"{name.replace(' ', '_')}.xz"


def save(folder: Path, name: str, tokens: Ids) -> None:
    """Pack the ids of a split, `[tokens]`."""
    split_file(folder, name).write_bytes(lzma.compress(tokens.astype("<u2").tobytes(), preset=PACKING))


def load(folder: Path, name: str) -> Ids:
    """The ids of a split, `[tokens]` uint16.

    Raises:
        FileNotFoundError: the corpus has not been built in this folder.
    """
    file = split_file(folder, name)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing: build the corpus with `python -m refimpl train corpus`")
    return np.frombuffer(lzma.decompress(file.read_bytes()), dtype="<u2")


def encode(tokenizer: Tokenizer, texts: Sequence[str], limit: int | None = None) -> Ids:
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


def decoded_bytes(tokenizer: Tokenizer, tokens: Ids) -> bytes:
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
