"""The timeline's modules put together: one ES module for anywidget, one classic script for a page.

No second copy is kept: anywidget takes one string, and a page opened from disk may not import modules (Chromium treats
``file://`` as a foreign origin), so for both the modules are joined when they are asked for. Each becomes a function
that returns its exports; nothing else is changed.
"""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

ENTRY = "timeline.js"
_IMPORT = re.compile(r'^import \{ (?P<names>[^}]+) \} from "\./(?P<file>\w+\.js)";$', re.MULTILINE)
_ALL = re.compile(r'^export \* from "\./(?P<file>\w+\.js)";$', re.MULTILINE)
_NAMED = re.compile(r"^export (?=(?:async )?(?:function|const|let|class) (?P<name>\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)


@cache
def source(name: str) -> str:
    """The text of one file of this room, such as ``"timeline.css"``."""
    return files("refimpl.view").joinpath(name).read_text(encoding="utf-8")


def modules(entry: str = ENTRY) -> tuple[str, ...]:
    """The entry and all that it imports, each after what it imports itself.

    Raises:
        ValueError: two modules import each other.

    Example:
        >>> modules("order.js")
        ('ranges.js', 'order.js')
    """
    done: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            circle = " → ".join([*above, name])
            raise ValueError(f"modules import each other in a circle: {circle}; move what they share into a third file")
        if name in done:
            return
        for match in [*_IMPORT.finditer(source(name)), *_ALL.finditer(source(name))]:
            visit(match["file"], (*above, name))
        done.append(name)

    visit(entry, ())
    return tuple(done)


def esm(entry: str = ENTRY) -> str:
    """One ES module with the entry's exports as they are: what anywidget takes as ``_esm``."""
    *parts, last = modules(entry)
    return "\n".join([*(_scoped(name) for name in parts), _linked(source(last))])


def classic() -> str:
    """One classic script, live under ``http://`` and ``file://``.

    Returns:
        Text that leaves ``mount(element, spec)``, ``render`` and ``css`` in ``window.streamOrderTimeline``.
    """
    parts = "".join(_scoped(name) for name in modules())
    entry, css = _variable(ENTRY), _template(source("timeline.css"))
    public = f"{{ mount: {entry}.mount, render: {entry}.default.render, css: {css} }}"
    return f"(() => {{\n{parts}\nwindow.streamOrderTimeline = {public};\n}})();\n"


def inert(json_text: str) -> str:
    """JSON for a ``<script>`` element: no name in it can end the element or open a comment.

    Example:
        >>> inert('{"id": "<!--<script>"}')
        '{"id": "\\\\u003c!--\\\\u003cscript>"}'
    """
    return json_text.replace("<", "\\u003c")  # in JSON that sign stands in strings alone


def write_static(folder: Path) -> Path:
    """Write ``timeline.bundle.js`` for a static page into a folder, made if need be.

    Returns:
        The file's path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "timeline.bundle.js"
    target.write_text(classic(), encoding="utf-8")
    return target


def _scoped(name: str) -> str:
    """A module as a function that returns its exports, so that private names of two files never meet."""
    text = source(name)
    exports = [match["name"] for match in _NAMED.finditer(text)]
    exports += [f"...{_variable(match['file'])}" for match in _ALL.finditer(text)]
    body = _NAMED.sub("", _ALL.sub("", _linked(text)))
    if _DEFAULT.search(body):
        body = _DEFAULT.sub("const standard = ", body)
        exports.append("default: standard")
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exports)} }};\n}})();\n"


def _linked(text: str) -> str:
    """Imports turned into look-ups in the functions' results."""
    return _IMPORT.sub(lambda m: f"const {{ {m['names']} }} = {_variable(m['file'])};", text)


def _variable(name: str) -> str:
    return f"from_{Path(name).stem}"


def _template(text: str) -> str:
    """A JavaScript string with this text."""
    escaped = text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
    return f"`{escaped}`"
