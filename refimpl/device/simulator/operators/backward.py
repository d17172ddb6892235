"""How an error leaves the backward pass: PyTorch's engine cannot be left by a Python exception.

The engine keeps a stream guard while it runs a node, and the guard of a device written in Python calls Python when it
is given up. With an exception under way that call fails, in C++ that may not fail, and the process ends. So an operator
that the engine itself called hands back something that is no tensor; PyTorch then raises in C++, in words that quote
it. The backward of an `autograd.Function` may raise as it likes. A hook of a tensor that raises is called by the engine
alone, and ends the process.
"""

from __future__ import annotations

from types import FrameType

from torch.autograd import graph


class Unraised:
    """Stands for a result that there is not, and says why where it is printed.

    Args:
        error: What went wrong.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __str__(self) -> str:
        return f"({self._error})"

    __repr__ = __str__


def called_by_autograd(frame: FrameType) -> bool:
    """Whether the engine called `frame`, with no other Python code in between that could catch an exception."""
    caller = frame.f_back
    return caller is None or caller.f_code is graph._engine_run_backward.__code__
