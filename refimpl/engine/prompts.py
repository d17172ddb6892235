"""Prompts as callers give them, made into tokens that the target knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from numbers import Integral
from typing import Any

from refimpl.engine.checks import shown
from refimpl.engine.errors import EngineError
from refimpl.model.tokenizer import Tokenizer

Prompt = str | Sequence[int]
"""Text, or tokens as they are."""
NO_PROMPT = bytes, bytearray, memoryview, Mapping, Set
"""They can be iterated over, and what comes is no text and no row of tokens."""


def prompt_tokens(prompts: Prompt | Iterable[Prompt], tokenizer: Tokenizer, vocab_size: int) -> list[list[int]]:
    """The tokens of each prompt.

    Args:
        prompts: one, or several; NumPy arrays and tensors are lists of tokens, or of prompts.
        tokenizer: for those that are text.
        vocab_size: of the target.

    Raises:
        EngineError: there is none, one is neither text nor tokens, or holds what is no token.

    Example:
        >>> prompt_tokens(["é", [5, 6]], Tokenizer.of_bytes(), 259)
        [[256, 195, 169], [5, 6]]
    """
    given = _several(prompts)
    if not given:
        raise EngineError("no prompts: give at least one")
    return [_tokens(f"prompt {index}", prompt, tokenizer, vocab_size) for index, prompt in enumerate(given)]


def _several(prompts: object) -> list[Any]:
    """One prompt is a list of one; a list of numbers is a prompt of tokens."""
    if isinstance(prompts, str):
        return [prompts]
    given = _items("prompts", prompts)
    return [given] if given and _is_token(given[0]) else given


def _tokens(name: str, prompt: object, tokenizer: Tokenizer, vocab_size: int) -> list[int]:
    if isinstance(prompt, str):
        return _encoded(name, prompt, tokenizer)
    ids = _items(name, prompt)
    if not ids:
        raise EngineError(f"{name} has no tokens: give at least one")
    wrong = [token for token in ids if not (_is_token(token) and 0 <= token < vocab_size)]
    if wrong:
        raise EngineError(f"{name} holds {shown(wrong[0])}, which is no token: use 0 to {vocab_size - 1}")
    return [int(token) for token in ids]


def _encoded(name: str, text: str, tokenizer: Tokenizer) -> list[int]:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EngineError(f"{name} holds {text[error.start]!r}, which is no character: give Unicode text") from None
    return tokenizer.encode(text)


def _items(name: str, value: object) -> list[Any]:
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(listed, NO_PROMPT) or not isinstance(listed, Iterable):
        raise EngineError(f"{name}: {shown(value)} is neither text nor a list of tokens: give one of the two")
    return list(listed)


def _is_token(value: object) -> bool:
    """Whether this is a whole number; Python's True is one, but nobody's token."""
    return isinstance(value, Integral) and not isinstance(value, bool)
