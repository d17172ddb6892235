"""What a forward does, by SGLang's names."""

from enum import StrEnum


class ForwardMode(StrEnum):
    """``EXTEND`` is a prefill; ``DECODE`` runs one row a request, ``TARGET_VERIFY`` a block of them; ``DRAFT_EXTEND``
    writes the draft's cache for accepted tokens. ``PREBUILT`` never enters a model: its prefill ran elsewhere.
    """

    EXTEND = "extend"
    DECODE = "decode"
    TARGET_VERIFY = "target_verify"
    DRAFT_EXTEND = "draft_extend"
    PREBUILT = "prebuilt"

    def is_extend(self) -> bool:
        return self is ForwardMode.EXTEND
