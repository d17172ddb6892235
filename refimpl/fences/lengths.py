"""Who carries a step's new lengths to the next one."""

from enum import StrEnum


class Lengths(StrEnum):
    """``DRAFT_INPUT``: a tensor that each step's draft input brings along, with an event of its own, ``verify_done``.
    ``FUTURE_MAP``: rows of the relay, with one event for all of them, ``publish_ready``.

    Source: sgl-project/sglang, pull request 25879 (May 2026), which went from the one to the other for EAGLE; pull
    request 29232 (June 2026) for DFLASH.
    """

    DRAFT_INPUT = "draft_input"
    FUTURE_MAP = "future_map"
