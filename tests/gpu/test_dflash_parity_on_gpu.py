"""The engine's DFLASH on a GPU against transformers' loop: the small weights, float32, TF32 off."""

import pytest
import torch

from refimpl.engine import Engine
from refimpl.lessons.peers.assisted import SHORT_CYCLES, ours, theirs

pytestmark = pytest.mark.gpu


def test_generate_of_transformers_gives_the_same_tokens_and_accepts_the_same_drafts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    engine = Engine("small", "dflash", "cuda", dtype=torch.float32, max_running_requests=1, max_context=512)
    total, drafted = 0, 0
    for text in ("def fib(n):\n", "class Point(Basic):\n    def __init__(self", "import os\n\n\ndef "):
        prompt = engine.tokenizer.encode(text)
        tokens, accept_lens = ours(engine, prompt, 128)
        their_tokens, their_lens = theirs(engine.target, engine.draft, prompt, 128)
        assert tokens == their_tokens
        whole = len(their_lens) - SHORT_CYCLES
        assert accept_lens[:whole] == their_lens[:whole]
        total, drafted = total + sum(accept_lens), drafted + len(accept_lens)
    assert total / drafted > 1.5, "where next to nothing is accepted, the same acceptance says little"
