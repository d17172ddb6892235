from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from refimpl.model.shapes import FAMILIES
from refimpl.model.tokenizer import Tokenizer


def trained() -> Tokenizer:
    """A tokenizer with merges, the special tokens at the top, as the trained sizes have it."""
    backend = tokenizers.Tokenizer(tokenizers.models.BPE())
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(
        ["def fib(n):\n    return n if n < 2 else fib(n - 1)\n", "naïve 日本語 naïve 日本"], trainer
    )
    backend.add_special_tokens(["<bos>", "<eos>", "<mask>"])
    return Tokenizer(backend)


TOKENIZER = trained()
IDS = st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=30)


@given(st.text(max_size=60))
def test_text_comes_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(IDS)
def test_a_stream_gives_the_text_of_the_whole_and_no_half_character_before_its_end(ids: list[int]) -> None:
    stream = TOKENIZER.stream()
    pieces = [stream.push([token]) for token in ids]
    assert "".join(pieces) + stream.finish() == TOKENIZER.decode(ids)


@given(st.text(max_size=40))
def test_a_stream_of_valid_text_never_shows_a_replacement_character(text: str) -> None:
    stream = TOKENIZER.stream()
    pieces = [stream.push([token]) for token in TOKENIZER.encode(text)]
    assert "".join(pieces) == text
    assert stream.finish() == ""


@given(IDS)
def test_decoding_agrees_with_the_library(ids: list[int]) -> None:
    assert TOKENIZER.decode(ids) == TOKENIZER._backend.decode(ids, skip_special_tokens=True)


def test_a_text_begins_with_bos_unless_told_otherwise() -> None:
    assert TOKENIZER.encode("n")[0] == TOKENIZER.bos_token_id
    assert TOKENIZER.encode("n", bos=False) == TOKENIZER.encode("n")[1:]


def test_a_prompt_cannot_spell_a_special_token() -> None:
    special = {TOKENIZER.bos_token_id, TOKENIZER.eos_token_id, TOKENIZER.mask_token_id}
    assert not special & set(TOKENIZER.encode("<bos><eos><mask>", bos=False))
    assert TOKENIZER.decode(TOKENIZER.encode("<eos>")) == "<eos>"


def test_special_tokens_have_no_text() -> None:
    assert TOKENIZER.decode([TOKENIZER.bos_token_id, TOKENIZER.mask_token_id, TOKENIZER.eos_token_id]) == ""


def test_a_file_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(TOKENIZER._backend.to_str())
    assert Tokenizer.load(path).encode("naïve fib") == TOKENIZER.encode("naïve fib")


def test_a_tokenizer_without_special_tokens_is_an_error() -> None:
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={"a": 0}, merges=[]))
    with pytest.raises(ValueError, match="no <bos>"):
        Tokenizer(backend)


def test_a_file_that_is_no_tokenizer_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="not a tokenizer"):
        Tokenizer.load(tmp_path / "tokenizer.json")
    with pytest.raises(FileNotFoundError, match="no tokenizer there"):
        Tokenizer.load(tmp_path / "none.json")


def test_the_tokenizer_that_comes_with_the_weights_has_the_tokens_of_their_config() -> None:
    shipped = Tokenizer.load()
    for name in ("nano", "small"):
        config = FAMILIES[name].target
        assert shipped.vocab_size == config.vocab_size
        assert (shipped.bos_token_id, shipped.eos_token_id, shipped.mask_token_id) == (
            config.bos_token_id,
            config.eos_token_id,
            config.mask_token_id,
        )
    text = "def fib(n):\n    return n if n < 2 else fib(n - 1)  # naïve 日本\n"
    assert shipped.decode(shipped.encode(text)) == text


def test_a_token_beyond_the_vocabulary_is_a_replacement_character() -> None:
    tokenizer = trained()
    ids = [*tokenizer.encode("a", bos=False), tokenizer.vocab_size]
    assert tokenizer.decode(ids) == tokenizer.stream().push(ids) == "a\N{REPLACEMENT CHARACTER}"
