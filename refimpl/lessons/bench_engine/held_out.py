"""Held-out prompts, as text: what acceptance is measured on where the training text is not at hand."""

import json
from pathlib import Path

from refimpl.model.tokenizer import Tokenizer

FILE = Path(__file__).with_name("held_out.json")
DOMAINS = ("code", "unseen package", "prose")
PROMPTS = 64
PROMPT_TOKENS = 128


def prompts(domain: str, tokenizer: Tokenizer) -> list[list[int]]:
    """Token ids of the prompts of a domain, each cut to `PROMPT_TOKENS`.

    Args:
        domain: one of `DOMAINS`.
        tokenizer: of the model.

    Raises:
        KeyError: another domain.
    """
    texts: list[str] = json.loads(FILE.read_text(encoding="utf-8"))[domain]
    # The texts begin in the middle of files, as most of the training windows do.
    return [tokenizer.encode(text, bos=False)[:PROMPT_TOKENS] for text in texts]


def collect(corpus: Path, tokenizer: Tokenizer) -> None:
    """Writes the file anew, from the held-out splits of the training text.

    Args:
        corpus: the folder that `python -m refimpl train corpus` wrote.
        tokenizer: what it was written with.
    """
    import torch

    from refimpl.train.text import CorpusText

    special = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.mask_token_id}
    drawn = {}
    for domain in DOMAINS:
        windows = CorpusText(corpus, domain, torch.device("cpu"), seed=0).batch(2 * PROMPTS, PROMPT_TOKENS).tolist()
        within = [window for window in windows if special.isdisjoint(window)]
        drawn[domain] = [tokenizer.decode(window) for window in within[:PROMPTS]]
    FILE.write_text(json.dumps(drawn, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
