"""What the timeline takes: an Explorable, a Program, or the JSON of either."""

from collections.abc import Mapping
from typing import Any

from refimpl.program import Explorable, Program, ProgramError, program_from_json, program_to_json
from refimpl.view.predict import question_of

Shown = Explorable | Program | Mapping[str, Any]
"""What can be drawn."""

_BESIDE = ("caption", "alt", "predict")
"""What a timeline carries beside a program's own fields."""


def spec_of(shown: Shown) -> dict[str, Any]:
    """The JSON values that the timeline component reads.

    Raises:
        TypeError: neither an Explorable, nor a Program, nor their JSON.
        ProgramError: a question to be asked first that nothing could answer.
    """
    spec = _as_json(shown)
    variants = spec.get("variants", [])
    ids = tuple(str(v.get("id")) for v in variants if isinstance(v, Mapping)) if isinstance(variants, list) else ()
    question = question_of(spec.pop("predict", None), ids)
    return spec if question is None else {**spec, "predict": question}


def _as_json(shown: Shown) -> dict[str, Any]:
    if isinstance(shown, Explorable):
        # a notebook is saved with its keys sorted, and the sliders have an order of their own
        return {**shown.to_json(), "sliders": list(shown.params)}
    if isinstance(shown, Program):
        return program_to_json(shown)
    if isinstance(shown, Mapping) and ("variants" in shown or "ops" in shown):
        return dict(shown)
    raise TypeError(
        f"a timeline shows an Explorable, a Program or the JSON of one, not {type(shown).__name__}: build one first"
    )


def first_program(shown: Shown) -> Program:
    """The program that the first frame shows: an explorable's initial variant.

    Raises:
        ProgramError: JSON that is no program, or an explorable's without a variant to show.
    """
    if isinstance(shown, Program):
        return shown
    if isinstance(shown, Explorable):
        return shown.variant(shown.initial or shown.variants[0].id).program
    spec = spec_of(shown)
    if "ops" in spec:
        return program_from_json({key: value for key, value in spec.items() if key not in _BESIDE})
    return program_from_json(_initial(spec)["program"])


def _initial(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The variant shown first."""
    variants = spec["variants"]
    if not isinstance(variants, list) or not variants or not all(_is_variant(v) for v in variants):
        raise ProgramError("must be a list of at least one variant, each with id and program", field="variants")
    ids = [variant["id"] for variant in variants]
    first = ids[0] if spec.get("initial") is None else spec["initial"]
    if first not in ids:
        raise ProgramError(f"names no variant; there are {', '.join(map(str, ids))}", field="initial")
    shown: Mapping[str, Any] = variants[ids.index(first)]
    return shown


def _is_variant(value: Any) -> bool:
    return isinstance(value, Mapping) and "id" in value and "program" in value
