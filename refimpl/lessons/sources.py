"""What a notebook's outputs depend on: its code cells, and the refimpl modules that they import.

Both are hashed so that a page can say whether its outputs still belong to the code that it shows. A module's hash is of
its syntax tree without docstrings: a reworded docstring outdates nothing, a changed line does, and Python 3.11 and 3.12
agree.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = "refimpl"
ROOT = Path(__file__).parents[2]
# The static page draws with the current timeline, whatever drew when the notebook ran.
EXCEPTED = f"{PACKAGE}.view"


def cells_sha256(code: Iterable[str]) -> str:
    """Hash of the code cells in order; trailing blanks do not count, everything else does."""
    digest = hashlib.sha256()
    for source in code:
        digest.update(source.rstrip().encode() + b"\0")
    return digest.hexdigest()


def module_hashes(code: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """Hash of each refimpl module that the cells import, directly or through another one, by dotted name.

    Args:
        code: the sources of the code cells.
        root: the folder that holds `refimpl/`.
    Returns:
        The first 16 hex digits of a sha256 for each module, sorted by name; `refimpl.view` is left out.
    """
    trees: dict[str, ast.Module] = {}
    waiting = [name for source in code for name in _imports(ast.parse(without_magics(source)), "", root)]
    while waiting:
        name = waiting.pop()
        if name not in trees and not f"{name}.".startswith(f"{EXCEPTED}."):
            file = _file(name, root)
            assert file is not None  # _imports yields only modules that have a file
            trees[name] = ast.parse(file.read_bytes())
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            waiting += _imports(trees[name], package, root)
    return {name: hashlib.sha256(_canonical(trees[name]).encode()).hexdigest()[:16] for name in sorted(trees)}


def without_magics(source: str) -> str:
    """The cell as plain Python: a line of IPython's own (`%matplotlib`, `!ls`) becomes `pass`."""
    return "\n".join("pass" if line.startswith(("%", "!")) else line for line in source.splitlines())


def _imports(tree: ast.Module, package: str, root: Path) -> Iterator[str]:
    """Modules of refimpl that a tree imports, anywhere in it, with the packages that hold them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            stem = ".".join(part for part in (base, node.module) if part)
            wanted = [stem] + [f"{stem}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in wanted:
            parts = name.split(".")
            if parts[0] == PACKAGE:
                prefixes = (".".join(parts[: n + 1]) for n in range(len(parts)))
                yield from (prefix for prefix in prefixes if _file(prefix, root))


def _file(module: str, root: Path) -> Path | None:
    path = root.joinpath(*module.split("."))
    for file in (path / "__init__.py", path.with_name(path.name + ".py")):
        if file.is_file():
            return file
    return None


def _canonical(node: object) -> str:
    """Like `ast.dump`, without docstrings and without the empty fields in which Python's versions differ."""
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if value is not None and value != []}
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _docstring(node):
            fields["body"] = node.body[1:]
        if isinstance(node, ast.JoinedStr):  # Python 3.12 may end an f-string with an empty piece
            fields["values"] = [piece for piece in node.values if not _is_empty(piece)]
        return f"{type(node).__name__}({','.join(f'{name}={_canonical(value)}' for name, value in fields.items())})"
    if isinstance(node, list):
        return f"[{','.join(map(_canonical, node))}]"
    return repr(node)


def _is_empty(piece: ast.expr) -> bool:
    return isinstance(piece, ast.Constant) and piece.value == ""


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
