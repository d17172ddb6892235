"""Byte ranges with strides: a column of a table is not the table.

An overlap is found by arithmetic on offsets, so that its cost does not grow with the size of a range.
"""

from typing import NamedTuple


class Range(NamedTuple):
    """Bytes of one buffer: ``rows`` runs of ``len`` bytes, their starts ``stride`` bytes apart.

    A named tuple, not a dataclass: the checker hashes several of them per launch.

    Args:
        buf: name of the buffer.
        off: offset of the first byte, in bytes.
        len: bytes of one run.
        rows: number of runs; 1 for a contiguous range.
        stride: bytes from one run's start to the next; 0 when there is one run.

    Example:
        >>> column = Range("table", off=4, len=4, rows=3, stride=16)
        >>> column.end
        40
        >>> overlap(column, Range("table", 8, 8)) is None
        True
    """

    buf: str
    off: int
    len: int
    rows: int = 1
    stride: int = 0

    @property
    def end(self) -> int:
        """Offset in bytes of the first byte after the range."""
        return self.off + (self.rows - 1) * self.stride + self.len

    def __str__(self) -> str:
        span = f"{self.buf}[{self.off}:{self.off + self.len}]"
        return span if self.rows == 1 else f"{span} ×{self.rows} every {self.stride} bytes"


def normalized(r: Range) -> Range:
    """The same bytes in one form: runs that touch or overlap become a single run."""
    if r.rows == 1:
        return r if r.stride == 0 else r._replace(stride=0)
    if r.stride <= r.len:
        return Range(r.buf, r.off, r.end - r.off)
    return r


def overlap(a: Range, b: Range) -> Range | None:
    """The first run of bytes that two ranges share, or None; the cost does not depend on their sizes.

    Args:
        a, b: ranges of any buffers, offsets in bytes.

    Returns:
        One contiguous range, or None when no byte is shared.

    Example:
        >>> overlap(Range("kv", 0, 64), Range("kv", 48, 64))
        Range(buf='kv', off=48, len=16, rows=1, stride=0)
    """
    if a.buf != b.buf or a.off >= b.end or b.off >= a.end:
        return None
    if a.rows == 1 and b.rows == 1:
        off = max(a.off, b.off)
        return Range(a.buf, off, min(a.off + a.len, b.off + b.len) - off)
    a, b = normalized(a), normalized(b)
    if b.rows == 1:
        a, b = b, a
    if b.rows == 1:
        return overlap(a, b)
    meeting = _run_meeting_runs(a, b)
    if meeting is None:
        return None
    start, other = meeting
    off = max(start, other)
    return Range(a.buf, off, min(start + a.len, other + b.len) - off)


def contains(outer: Range, inner: Range) -> bool:
    """True when every byte of ``inner`` is surely a byte of ``outer``; False may mean "not known" for strided
    ranges."""
    if outer.buf != inner.buf:
        return False
    if outer == inner:
        return True
    outer = normalized(outer)
    if outer.rows == 1:
        return outer.off <= inner.off and inner.end <= outer.off + outer.len
    if inner.rows > 1 and inner.stride != outer.stride:
        return False
    shift = inner.off - outer.off
    row, within = divmod(shift, outer.stride)
    return row >= 0 and within + inner.len <= outer.len and row + inner.rows <= outer.rows


def _run_meeting_runs(a: Range, b: Range) -> tuple[int, int] | None:
    """Starts of the first run of ``a`` that meets a run of ``b``, and of that run; ``b`` has several runs.

    Run i of ``a`` starts at ``x = a.off + i * a.stride``. It meets run j of ``b`` when ``-a.len < x - (b.off + j *
    b.stride) < b.len``. With
    j's bounds turned into bounds on i, what is left is the first i whose ``x - b.off + a.len - 1`` falls in a window
    modulo ``b.stride``.
    """
    step = a.stride if a.rows > 1 else 1
    lowest = b.off - a.len + 1
    highest = b.off + (b.rows - 1) * b.stride + b.len - 1
    first = max(0, -(-(lowest - a.off) // step))
    last = min(a.rows - 1, (highest - a.off) // step)
    if first > last:
        return None
    window = a.len + b.len - 1
    shift = a.off + first * step - lowest
    k = 0 if window >= b.stride else _first_residue_below(shift % b.stride, step % b.stride, b.stride, window)
    if k is None or first + k > last:
        return None
    start = a.off + (first + k) * step
    row = max(0, (start - b.off - b.len) // b.stride + 1)
    return start, b.off + row * b.stride


def _first_residue_below(base: int, step: int, modulus: int, bound: int) -> int | None:
    """Smallest k >= 0 with ``(base + k * step) % modulus < bound``, in logarithmic time, or None.

    Each round replaces (step, modulus) by a smaller pair, as Euclid's algorithm does.
    """
    if base < bound:
        return 0
    if step == 0:
        return None
    return _first_in_window(step, modulus, modulus - base, modulus - base + bound - 1)


def _first_in_window(step: int, modulus: int, low: int, high: int) -> int | None:
    """Smallest k >= 0 with ``low <= (k * step) % modulus <= high``, where 0 <= low <= high < modulus, or None."""
    if low == 0:
        return 0
    if step == 0:
        return None
    k = -(-low // step)
    if k * step <= high:
        return k
    wraps = _first_in_window(modulus % step, step, -high % step, -low % step)
    return None if wraps is None else -(-(low + wraps * modulus) // step)
