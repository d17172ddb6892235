"""Predict, then look: the question that a timeline asks before it answers, checked before it is drawn."""

from collections.abc import Mapping
from typing import Any

from refimpl.program import ProgramError

Predict = bool | str | Mapping[str, Any]
"""What a timeline may ask first: True for the built-in question about races, the name of another built-in one, or a
question of the author's with choices."""

BUILT_IN = ("race", "step", "blocked", "waits", "fastest")
"""Questions made from the model. race: is there one, and between which two ops? step: as long as the longer lane, as
both, or between? blocked: what holds the host? waits: what does the main stream wait for? fastest: which variant?"""

CLAIMS = ("races", "race", "stuck", "step", "blocked", "waits", "fastest")
"""What a choice may claim; the model says whether it holds."""

_KEYS = ("about", "variant", "question", "choices")


def question_of(predict: Predict, variants: tuple[str, ...]) -> dict[str, Any] | None:
    """The JSON form of a question, or None where nothing is to be asked. No answer is in it: the model computes it.

    Args:
        predict: True; one of ``BUILT_IN``; or a mapping with ``about`` (one of them), ``variant`` (the id that is asked
            about, else the one shown first), ``question`` (the author's wording) and ``choices`` (text to what it
            claims, such as ``{"Only one may run first": {"races": False}}``).
        variants: ids of the variants; none for a plain program.

    Raises:
        ProgramError: an unknown question, variant or claim, or fewer than two choices.

    Example:
        >>> question_of("step", ())
        {'about': 'step'}
        >>> choices = {"They are ordered": {"races": False}, "They race": {"races": True}}
        >>> question_of({"question": "Who is first?", "choices": choices}, ())["choices"][1]
        {'text': 'They race', 'holds': {'races': True}}
    """
    if predict is False or predict is None:
        return None
    asked: Mapping[str, Any] = {"about": "race"} if predict is True else predict if isinstance(predict, Mapping) else {}
    if isinstance(predict, str):
        asked = {"about": predict}
    unknown = [key for key in asked if key not in _KEYS]
    if unknown or not asked:
        raise ProgramError(f"is True, one of {', '.join(BUILT_IN)}, or has {', '.join(_KEYS)}", field="predict")
    out = {key: asked[key] for key in _KEYS if key in asked}
    if out.get("about", "race") not in BUILT_IN:
        raise ProgramError(f"cannot ask about {out['about']!r}; it can about {', '.join(BUILT_IN)}", field="predict")
    if "variant" in out and out["variant"] not in variants:
        known = ", ".join(variants) or "none"
        raise ProgramError(f"asks about variant {out['variant']!r}; there are {known}", field="predict")
    if out.get("about") == "fastest" and len(variants) < 2:
        raise ProgramError("cannot ask which is fastest: there is one variant", field="predict")
    if "choices" in out:
        out["choices"] = _choices(out["choices"])
        if not isinstance(out.get("question"), str):
            raise ProgramError("has choices of its own and so needs a question", field="predict")
    return out


def about_times(question: Mapping[str, Any]) -> bool:
    """Whether a picture with times would answer it."""
    claims = {claim for choice in question.get("choices", []) for claim in choice["holds"]}
    return question.get("about", "race") != "race" or bool(claims - {"races", "race", "stuck"})


def _choices(given: Any) -> list[dict[str, Any]]:
    """Choices as a list, whose order a saved notebook keeps."""
    if isinstance(given, Mapping):
        given = [{"text": text, "holds": holds} for text, holds in given.items()]
    if not isinstance(given, list) or len(given) < 2 or not all(_is_choice(choice) for choice in given):
        why = f"needs two choices or more, each a text and what it claims: of {', '.join(CLAIMS)}"
        raise ProgramError(why, field="predict")
    return [{"text": choice["text"], "holds": dict(choice["holds"])} for choice in given]


def _is_choice(value: Any) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        return False
    claims = value.get("holds")
    return isinstance(claims, Mapping) and bool(claims) and all(claim in CLAIMS for claim in claims)


def unspoiled(lanes: tuple[str, ...], question: Mapping[str, Any]) -> str:
    """The text alternative of a picture that asks first: its lanes, and no verdict."""
    asked = f" {question['question']}" if "question" in question else ""
    return f"Lanes {', '.join(lanes)}. Predict first: the live timeline asks, then answers.{asked}"
