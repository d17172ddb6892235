"""The timeline in Jupyter: the same component as in the static book, as an anywidget."""

from typing import Any

import anywidget
import traitlets

from refimpl.order import check
from refimpl.view.bundle import css, esm
from refimpl.view.predict import Predict
from refimpl.view.spec import Shown, first_program, spec_of
from refimpl.view.svg import first_frame, in_words


class Timeline(anywidget.AnyWidget):
    """A timeline that answers back: toggle variants, drag durations, step through time, ask for the order of two ops.

    It needs no running kernel: the saved notebook and the built page show it alive all the same. Without scripts and in
    print they show its first frame.

    Args:
        shown: an Explorable, a Program, or the JSON of one.
        caption: the claim that the picture makes, shown under it.
        alt: text for readers who do not see it; by default verdict, hazards and lanes in words.
        predict: what the reader is asked before anything is answered: True asks whether there is a race and between
            which two ops; "step", "blocked", "waits" and "fastest" ask about time; a mapping with ``question`` and
            ``choices`` asks in your words (:func:`refimpl.view.predict.question_of`). The model computes the answer.

    Raises:
        TypeError, ProgramError: nothing that can be drawn, or a question that nothing could answer.

    Example:
        >>> from refimpl.program import Launch, Program, Stream
        >>> ops = (Launch(stream="forward", name="verify"),)
        >>> Timeline(Program(id="tiny", streams={"forward": Stream()}, ops=ops))
        Timeline('tiny': host, forward; ok)
    """

    _esm = esm()
    _css = css()
    spec = traitlets.Dict().tag(sync=True)

    def __init__(
        self, shown: Shown, *, caption: str | None = None, alt: str | None = None, predict: Predict | None = None
    ) -> None:
        program = first_program(shown)
        report = check(program)
        spec = spec_of(shown if predict is None else {**spec_of(shown), "predict": predict})
        asks = "predict" in spec
        spec["alt"] = alt or in_words(program, report)
        super().__init__(spec=spec if caption is None else {**spec, "caption": caption})
        said = "predict first" if asks else report.verdict
        self._short = f"Timeline({spec.get('id', 'program')!r}: {', '.join(program.lanes)}; {said})"
        self._picture = first_frame(spec if asks else shown, alt)

    def __repr__(self) -> str:
        return self._short

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget's view, and beside it the first frame for those who cannot run it."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, "image/svg+xml": self._picture, "text/plain": repr(self)}, metadata
