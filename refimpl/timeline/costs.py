"""``Costs``: what an op takes when the program does not say."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from types import MappingProxyType

from refimpl.program import UserError
from refimpl.program.ops import OPS


@dataclass(frozen=True)
class Costs:
    """Durations in microseconds, checked at construction.

    The defaults are round numbers of the right size, the same as the timeline component's: order and proportion
    count, not the values. For a picture of one GPU, give what was measured there.

    Args:
        call_us: host time of one call into the runtime.
        calls: host time of the calls of one kind, by the op's name in JSON, such as ``{"graph_launch": 14.5}``;
            others take ``call_us``.
        launch_us, copy_us, fill_us, node_us, agent_us: duration of a kernel, copy, fill, graph node or transfer
            beside the host that has no ``us``.

    Raises:
        UserError: a negative or unbounded duration, an unknown op.

    Example:
        >>> Costs(calls={"event_record": 1.3}).call("event_record"), Costs().call("event_record")
        (1.3, 6.0)
    """

    call_us: float = 6.0
    launch_us: float = 10.0
    copy_us: float = 10.0
    fill_us: float = 10.0
    node_us: float = 10.0
    agent_us: float = 10.0
    calls: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", MappingProxyType(dict(self.calls)))
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "calls"}
        for name, us in {**given, **self.calls}.items():
            if not (isfinite(us) and us >= 0):
                raise UserError(f"cost {name!r} is {us}; a cost is a finite number of microseconds from 0")
        for name in self.calls:
            if name not in OPS:
                raise UserError(f"calls names an unknown op {name!r}; known are {', '.join(OPS)}")

    def call(self, op: str) -> float:
        """Host time in microseconds of one call of the op with this name."""
        return self.calls.get(op, self.call_us)
