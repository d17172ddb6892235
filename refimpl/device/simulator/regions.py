"""Named cost regions: what the ops issued inside them cost together."""

from __future__ import annotations

import math

from refimpl.device.simulator.ops import Kind, Op


class Region:
    """Shares `us` out over the ops issued inside, in proportion to what the cost model says of each; or scales each.

    Until the region closes its ops have no duration, so the device does not start them: the host sees nothing land
        meanwhile. A call that blocks the host inside settles them at the cost model's durations, and the rest of the
        time goes to what follows.

    Args:
        name: The region's name, which its ops carry.
        us: Device time of all ops of the region together; None to leave the sum as it comes out.
        scale: Factor on each op's duration, used where `us` is None.
        outer: The region around it.
    Attributes:
        empty: No op was issued inside.
    """

    def __init__(self, name: str, us: float | None, scale: float, outer: Region | None) -> None:
        self.name = name
        if us is not None and not 0.0 <= us < math.inf:
            raise ValueError(f"cost({name!r}, us={us}): use a finite number of microseconds that is not negative")
        if not 0.0 <= scale < math.inf:
            raise ValueError(f"cost({name!r}, scale={scale}): use a finite factor that is not negative")
        if us is not None and outer is not None and outer.fixes_time:
            raise RuntimeError(
                f"cost({name!r}, us={us}) inside cost({outer.name!r}): one of the two may state a time, "
                "so give the inner one a scale"
            )
        self._us, self._scale, self._outer = us, scale, outer
        self._ops: list[Op] = []
        self.empty = True

    @property
    def fixes_time(self) -> bool:
        """This region, or one around it, states a time."""
        return self._us is not None or (self._outer is not None and self._outer.fixes_time)

    @property
    def pending(self) -> bool:
        """It holds ops whose durations are still to be shared out."""
        return bool(self._ops) or (self._outer is not None and self._outer.pending)

    def take(self, op: Op) -> None:
        """An op was issued inside."""
        self.empty = False
        if op.region is None:
            op.region = self
        if self._us is None:
            op.us *= self._scale
        elif op.kind in (Kind.LAUNCH, Kind.COPY):
            self._ops.append(op)
        if self._outer is not None:
            self._outer.take(op)

    def settle(self) -> None:
        """Gives what was issued so far the cost model's durations."""
        if self._us is not None:
            self._us = max(0.0, self._us - sum(op.us for op in self._ops))
            self._ops.clear()
        if self._outer is not None:
            self._outer.settle()

    def close(self) -> float:
        """Shares the time out over the ops, and returns what no op can take."""
        if self._us is None:
            return 0.0
        total = sum(op.us for op in self._ops)
        if total == 0.0:
            return self._us
        for op in self._ops:
            op.us *= self._us / total
        self._ops.clear()
        return 0.0
