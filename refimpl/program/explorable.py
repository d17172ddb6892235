"""``Explorable``: the variants of one program side by side, with the durations that a reader may change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from refimpl.program.codec import SCHEMA, program_to_json
from refimpl.program.errors import ProgramError
from refimpl.program.program import Program


@dataclass(frozen=True)
class Param:
    """A duration that a reader may change: every op whose ``param`` has its name takes it.

    Args:
        label: what the slider says.
        us: the value at rest, in microseconds.
        min, max, step: the slider's bounds and step, in microseconds.
    """

    label: str
    us: float
    min: float
    max: float
    step: float = 50.0

    def __post_init__(self) -> None:
        if not (0 <= self.min <= self.us <= self.max and self.step > 0):
            raise ProgramError(f"parameter {self.label!r} needs 0 <= min <= us <= max and step > 0", field="params")


@dataclass(frozen=True)
class Variant:
    """One way to write the program.

    Args:
        id, label: its name in code and on screen.
        words: one sentence on what it does.
        program: the whole program under this variant.
    """

    id: str
    label: str
    words: str
    program: Program


@dataclass(frozen=True)
class Explorable:
    """Variants of one program, for a timeline that answers back.

    Args:
        id, title, words: what it is, and the claim that it shows.
        variants: at least one.
        params: durations by name.
        initial: id of the variant shown first; the first one when None.
        before: id of the variant that others are compared with.
        topic: events under study, drawn in full ink.
        hero: the lane whose idle time is accounted for.
        step_op: name of the op whose starts mark the steps, without its number.
        ask: names of two ops whose order the reader may ask for.
        predict: the question that the reader is asked before anything is answered, as ``refimpl.view.Timeline`` takes
            it: True, the name of a built-in one, or a mapping with question and choices.
    """

    id: str
    title: str
    variants: tuple[Variant, ...]
    words: str = ""
    params: Mapping[str, Param] = field(default_factory=dict)
    initial: str | None = None
    before: str | None = None
    topic: tuple[str, ...] = ()
    hero: str = "forward"
    step_op: str | None = None
    ask: tuple[str, str] | None = None
    predict: bool | str | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        ids = [variant.id for variant in self.variants]
        if not ids or len(set(ids)) < len(ids):
            raise ProgramError(f"explorable {self.id!r} needs variants with different ids, not {ids}", field="variants")
        for key in ("initial", "before"):
            name = getattr(self, key)
            if name is not None and name not in ids:
                raise ProgramError(
                    f"explorable {self.id!r} has no variant {name!r}; it has {', '.join(ids)}", field=key
                )
        for variant in self.variants:
            for index, op in enumerate(variant.program.ops):
                if op.param is not None and op.param not in self.params:
                    raise ProgramError(
                        f"no duration parameter {op.param!r}", case=f"{self.id}/{variant.id}", op=index, field="param"
                    )

    def variant(self, id: str) -> Variant:
        """The variant with this id.

        Raises:
            ProgramError: there is none.
        """
        for variant in self.variants:
            if variant.id == id:
                return variant
        raise ProgramError(
            f"explorable {self.id!r} has no variant {id!r}; it has {', '.join(v.id for v in self.variants)}"
        )

    def to_json(self) -> dict[str, Any]:
        """JSON values for the timeline component."""
        out: dict[str, Any] = {
            "schema": SCHEMA,
            "id": self.id,
            "title": self.title,
            "words": self.words,
            "hero": self.hero,
            "topic": list(self.topic),
        }
        for key in ("initial", "before", "step_op"):
            if getattr(self, key) is not None:
                out[key] = getattr(self, key)
        if self.ask is not None:
            out["ask"] = list(self.ask)
        if self.predict is not None:
            out["predict"] = self.predict
        out["params"] = {name: vars(param) for name, param in self.params.items()}
        out["variants"] = [
            {"id": v.id, "label": v.label, "words": v.words, "program": program_to_json(v.program)}
            for v in self.variants
        ]
        return out
