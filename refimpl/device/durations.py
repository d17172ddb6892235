"""Times that a program states."""

from __future__ import annotations

import math


def refuse_no_time(what: str, us: float) -> None:
    """Raises unless `us` is a finite number of microseconds that is not negative; `what` names the call.

    Raises:
        ValueError: It is none.
    """
    if not 0 <= us < math.inf:
        raise ValueError(f"{what}(us={us}): use a finite number of microseconds that is not negative")
