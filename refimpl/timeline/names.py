"""Families of names: ``verify 0``, ``verify 1``, … are steps of one op."""

import re

_NUMBER = re.compile(r"[ _#-]?\d+(?=\)?$)")


def stem(name: str) -> str:
    """The name without the number of its step.

    Example:
        >>> stem("verify 3"), stem("synchronize(verify_done 3)"), stem("7")
        ('verify', 'synchronize(verify_done)', '7')
    """
    return _NUMBER.sub("", name) or name
