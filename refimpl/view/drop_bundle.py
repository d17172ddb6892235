"""The page that readers drop a trace on, as scripts: one that does the work, one that holds the examples."""

import base64
import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path

from refimpl.view.bundle import RUN, css, esm, source

ENTRY = "drop/drop.js"
SCRIPT, EXAMPLES = "drop.bundle.js", "trace-examples.js"
_EXPORTED = re.compile(
    r"^export (?:\{ (?P<names>[^}]+) \};$|(?=(?:async )?(?:function|const|let|class) (?P<name>\w+)))", re.M
)


def drop_script() -> str:
    """One classic script, live under ``http://`` and ``file://``: it makes each ``.trace-drop`` of its page live.

    A worker has to be given its code as text, since a page opened from disk may not load any: the script is a function
    whose own text the worker runs again.
    """
    text = esm(ENTRY)
    names = [name.strip() for m in _EXPORTED.finditer(text) for name in (m["names"] or m["name"]).split(",")]
    body = _EXPORTED.sub("", text)
    style = json.dumps(f"{css(RUN)}\n{source('drop/drop.css')}")
    return _SCRIPT.replace("BODY", body).replace("NAMES", ", ".join(names)).replace("STYLE", style)


_SCRIPT = """(() => {
function whole() {
BODY
return { NAMES };
}
const style = STYLE, here = document.currentScript.src.replace(/[^/]*$/, "");
const source = `(${whole})().serve(self);`, { mountDrop } = whole();
window.streamOrderDrop = { mount: (root, options) => mountDrop(root, { source, ...options }), css: style };
function start() {
  const places = document.querySelectorAll(".trace-drop");
  if (places.length) document.head.appendChild(document.createElement("style")).textContent = style;
  for (const place of places) window.streamOrderDrop.mount(place, { examples: here + "trace-examples.js" });
}
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
"""


def examples_script(examples: Mapping[Path, str]) -> str:
    """The examples as a script: a page opened from disk may load no other kind of file.

    Args:
        examples: files, ``.json`` or ``.json.gz``, and what each shows; of two, the first is the one before.
    """
    made = [{"name": file.name, "words": words, "gz": _packed(file)} for file, words in examples.items()]
    return f"window.streamOrderExamples = {json.dumps(made)};\n"


def write_drop(folder: Path, examples: Mapping[Path, str]) -> None:
    """Write both scripts into a folder, made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SCRIPT).write_text(drop_script(), encoding="utf-8")
    (folder / EXAMPLES).write_text(examples_script(examples), encoding="utf-8")


def _packed(file: Path) -> str:
    raw = file.read_bytes()
    return base64.b64encode(raw if file.suffix == ".gz" else gzip.compress(raw, mtime=0)).decode("ascii")
