"""The views' modules put together: one ES module for anywidget, one classic script for a page.

No second copy is kept: anywidget takes one string, and a page opened from disk may not import modules (Chromium treats
``file://`` as a foreign origin), so for both the modules are joined when they are asked for. Each becomes a function
that returns its exports, without comments and indents, which a page would carry for nobody; nothing else is changed.
"""

import posixpath
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

ENTRY = "explorable/timeline.js"
RUN = "run/run.js"
LOOK = "shared/timeline.css"


@dataclass(frozen=True)
class Component:
    """A view that a page can show.

    Args:
        name: what its classic script leaves in ``window``.
        styles: its style sheets, in order.
        file: the script's name on a static page.
    """

    name: str
    styles: tuple[str, ...]
    file: str


COMPONENTS = {
    ENTRY: Component("streamOrderTimeline", (LOOK,), "timeline.bundle.js"),
    RUN: Component("streamOrderRun", (LOOK, "run/run.css"), "run.bundle.js"),
}
"""The views by their entry: the explorable of a Program, and a whole recorded run."""

_FROM = r'from "(?P<path>\.{1,2}/[\w./]+\.js)";$'
_IMPORT = re.compile(rf"^import \{{ (?P<names>[^}}]+) \}} {_FROM}", re.MULTILINE)
_ALL = re.compile(rf"^export \* {_FROM}", re.MULTILINE)
_NAMED = re.compile(r"^export (?=(?:async )?(?:function|const|let|class) (?P<name>\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?:/\*(?:(?!\*/)[\s\S])*\*/[ \t]*|//.*)\n|^[ \t]+", re.MULTILINE)
"""Comments that have lines of their own, and indents."""


@cache
def source(name: str) -> str:
    """The text of one file of this room, named from its top, such as ``"shared/timeline.css"``."""
    return files("refimpl.view").joinpath(name).read_text(encoding="utf-8")


def modules(entry: str = ENTRY) -> tuple[str, ...]:
    """The entry and all that it imports, each after what it imports itself.

    Raises:
        ValueError: two modules import each other, or one imports what the other does not export.

    Example:
        >>> modules("model/order.js")
        ('model/ranges.js', 'model/order.js')
    """
    done: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            circle = " → ".join([*above, name])
            raise ValueError(f"modules import each other in a circle: {circle}; move what they share into a third file")
        if name in done:
            return
        for match in [*_IMPORT.finditer(source(name)), *_ALL.finditer(source(name))]:
            visit(_file(name, match), (*above, name))
        _check_imports(name)
        done.append(name)

    visit(entry, ())
    return tuple(done)


def esm(entry: str = ENTRY) -> str:
    """One ES module with the entry's exports as they are: what anywidget takes as ``_esm``."""
    *parts, last = modules(entry)
    return "\n".join([*(_scoped(name) for name in parts), _linked(last)])


def css(entry: str = ENTRY) -> str:
    """The style sheets of a view, as one text."""
    return "\n".join(source(name) for name in COMPONENTS[entry].styles)


def classic(entry: str = ENTRY) -> str:
    """One classic script, live under ``http://`` and ``file://``.

    Returns:
        Text that leaves ``mount(element, spec)``, ``render`` and ``css`` in ``window.streamOrderTimeline``, or in
        ``window.streamOrderRun`` for the entry ``RUN``.
    """
    parts = "".join(_scoped(name) for name in modules(entry))
    own, text = _variable(entry), _template(css(entry))
    public = f"{{ mount: {own}.mount, render: {own}.default.render, css: {text} }}"
    return f"(() => {{\n{parts}\nwindow.{COMPONENTS[entry].name} = {public};\n}})();\n"


def inert(json_text: str) -> str:
    """JSON for a ``<script>`` element: no name in it can end the element or open a comment.

    Example:
        >>> inert('{"id": "<!--<script>"}')
        '{"id": "\\\\u003c!--\\\\u003cscript>"}'
    """
    return json_text.replace("<", "\\u003c")  # in JSON that sign stands in strings alone


def write_static(folder: Path) -> Path:
    """Write the views' scripts for a static page, such as ``timeline.bundle.js``, into a folder, made if need be.

    Returns:
        The timeline's file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for entry, component in COMPONENTS.items():
        (folder / component.file).write_text(classic(entry), encoding="utf-8")
    return folder / COMPONENTS[ENTRY].file


def _check_imports(name: str) -> None:
    """A name that is not exported would be undefined on the page, and nowhere else."""
    for match in _IMPORT.finditer(source(name)):
        for asked in match["names"].split(","):
            if asked.strip() not in _exports(file := _file(name, match)):
                raise ValueError(f"{name} imports {asked.strip()} from {file}, which has no line that exports it")


def _exports(name: str) -> list[str]:
    """The names that a module exports, those of the modules that it passes on included."""
    passed = [found for match in _ALL.finditer(source(name)) for found in _exports(_file(name, match))]
    return [*(match["name"] for match in _NAMED.finditer(source(name))), *passed]


def _scoped(name: str) -> str:
    """A module as a function that returns its exports, so that private names of two files never meet."""
    text = source(name)
    exports = [match["name"] for match in _NAMED.finditer(text)]
    exports += [f"...{_variable(_file(name, match))}" for match in _ALL.finditer(text)]
    body = _NAMED.sub("", _ALL.sub("", _linked(name)))
    if _DEFAULT.search(body):
        body = _DEFAULT.sub("const standard = ", body)
        exports.append("default: standard")
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exports)} }};\n}})();\n"


def _linked(name: str) -> str:
    """A module's imports turned into look-ups in the functions' results; comments and indents left out."""
    text = _COMMENT.sub("", source(name))
    return _IMPORT.sub(lambda m: f"const {{ {m['names']} }} = {_variable(_file(name, m))};", text)


def _file(name: str, match: re.Match[str]) -> str:
    """The module that an import in ``name`` asks for, named from the top of this room."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), match["path"]))


def _variable(name: str) -> str:
    """A name of its own for each module: a dollar sign stands in no file's name."""
    return f"from_{name.removesuffix('.js').replace('/', '$')}"


def _template(text: str) -> str:
    """A JavaScript string with this text."""
    escaped = text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
    return f"`{escaped}`"
