"""Code as a reader meets it in a chapter: the source of functions, without their docstrings."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def source(*functions: Callable[..., Any]) -> Any:
    """The source of functions or methods, for the end of a notebook cell.

    Example:
        >>> print(stripped(textwrap.dedent).splitlines()[0])
        def dedent(text):
    """
    from IPython.display import Code

    return Code(  # type: ignore[no-untyped-call]
        "\n\n".join(stripped(function) for function in functions), language="python"
    )


def stripped(function: Callable[..., Any]) -> str:
    """The source of one function, dedented, its docstring left out."""
    text = textwrap.dedent(inspect.getsource(function))
    body = ast.parse(text).body[0]
    assert isinstance(body, ast.FunctionDef)
    lines = text.splitlines()
    if ast.get_docstring(body) is not None:
        docstring = body.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return "\n".join(lines)
