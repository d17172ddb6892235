"""What the timeline takes: an Explorable, a Program, or the JSON of either."""

from collections.abc import Mapping
from typing import Any

from refimpl.program import Explorable, Program, program_from_json, program_to_json

Shown = Explorable | Program | Mapping[str, Any]
"""What can be drawn."""


def spec_of(shown: Shown) -> dict[str, Any]:
    """The JSON values that the timeline component reads.

    Raises:
        TypeError: neither an Explorable, nor a Program, nor their JSON.
    """
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
    """The program that the first frame shows: an explorable's initial variant."""
    if isinstance(shown, Program):
        return shown
    if isinstance(shown, Explorable):
        return shown.variant(shown.initial or shown.variants[0].id).program
    spec = spec_of(shown)
    if "ops" in spec:
        return program_from_json(spec)
    variants = {v["id"]: v["program"] for v in spec["variants"]}
    return program_from_json(variants[spec.get("initial", next(iter(variants)))])
