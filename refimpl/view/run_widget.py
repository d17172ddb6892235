"""A whole recorded run in Jupyter: overview, zoom, search, folded steps; the same component as in the static book."""

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from refimpl.program import Program, Trace
from refimpl.timeline.writing.columns import columns
from refimpl.view.bundle import RUN, css, esm
from refimpl.view.plot.words import alt_text
from refimpl.view.run_frame import run_frame

PLAIN_BYTES = 32_000
"""Below this the notebook holds the numbers as they are; above, packed."""


class Run(anywidget.AnyWidget):
    """A recorded run of any length that answers back: zoom, search, fold its steps, ask why a stream is idle.

    It needs no running kernel: the saved notebook and the built page show it alive all the same. Without scripts and in
    print they show its first frame.

    Args:
        trace: when it ran: measured, simulated or scheduled.
        program: what ran; adds the edges of order and the steps.
        before: another run, shown above this one on one axis, with the difference of their steps.
        title: its name.
        step_op: name of the op whose starts mark the steps, without its number; the reader can choose another.
        caption: the claim that the picture makes, shown under it.
        alt: text for readers who do not see it; by default lanes, how busy they are, and what holds the host.

    Example:
        >>> from refimpl.program import Span, SpanKind, TraceSource
        >>> verify = Span("forward", "verify", SpanKind.RUN, 0, 16)
        >>> Run(Trace(("host", "forward"), (verify,), TraceSource.MEASURED), title="tiny")
        Run('tiny': host, forward; 1 span)
    """

    _esm = esm(RUN)
    _css = css(RUN)
    view = traitlets.Unicode("run").tag(sync=True)
    spec = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        trace: Trace,
        program: Program | None = None,
        *,
        before: Trace | None = None,
        title: str = "Recorded run",
        step_op: str | None = None,
        caption: str | None = None,
        alt: str | None = None,
    ) -> None:
        for one in (trace, before):
            if not isinstance(one, Trace | None) or trace is None:
                raise TypeError(f"a run shows a Trace, not {type(one).__name__}: read one with from_profiler")
        table = columns(trace, program, title=title, step_op=step_op)
        shown: dict[str, Any] = table if caption is None else {**table, "caption": caption}
        if before is not None:
            shown = {"before": columns(before, title=title, step_op=step_op), "after": shown}
        super().__init__(spec=packed(shown))
        count = len(trace.spans)
        self._short = f"Run({title!r}: {', '.join(trace.lanes)}; {count} span{'' if count == 1 else 's'})"
        self._picture = run_frame(trace, title, alt or alt_text(trace))

    def __repr__(self) -> str:
        return self._short

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget's view, and beside it the first frame for those who cannot run it."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, "image/svg+xml": self._picture, "text/plain": repr(self)}, metadata


def packed(shown: Mapping[str, Any]) -> dict[str, Any]:
    """What the component takes, small: as it is, or from 32 kB on as ``{"packed": gzip in base64}``.

    Example:
        >>> packed({"schema": "trace/1"})
        {'schema': 'trace/1'}
        >>> list(packed({"names": ["x" * 40_000]}))
        ['packed']
    """
    text = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    if len(text) <= PLAIN_BYTES:
        return dict(shown)
    return {"packed": b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")}
