"""The canonical form of a notebook: the same code with the same results is the same bytes.

What differs between two runs without meaning anything goes: timings, addresses, the random ids of widgets, the order of
their state, and the copy of the timeline that each widget saves of itself.
"""

import hashlib
import json
import re
from typing import Any

import nbformat

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
OUR_WIDGETS = "refimpl.view"
# What JupyterLab shows of a saved timeline until its cell runs.
UNTIL_RUN = 'export default { render({ el }) { el.textContent = "Run this cell to bring the timeline to life."; } };'
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,16}")
_LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python", "pygments_lexer": "ipython3"}
_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def canonical(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook in canonical form; the one given is left as it is."""
    plain = json.loads(_ADDRESS.sub("", nbformat.writes(notebook)))
    plain["metadata"] = {**plain["metadata"], "language_info": _LANGUAGE, "kernelspec": _KERNEL}
    for cell in plain["cells"]:
        cell["metadata"].pop("execution", None)
        if "outputs" in cell:
            cell["outputs"] = _streams_joined(cell["outputs"])
    if saved := plain["metadata"].get("widgets", {}).get(STATE):
        for model in saved["state"].values():
            _forget_source(model["state"])
        plain = _renumbered(plain, _in_order_of_use(plain["cells"], saved["state"]))
        saved = plain["metadata"]["widgets"][STATE]
        saved["state"] = dict(sorted(saved["state"].items()))
    result: nbformat.NotebookNode = nbformat.reads(json.dumps(plain), as_version=4)
    return result


def _streams_joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a cell wrote, as one output for stdout and one for stderr, each where its first words were.

    How a kernel cuts its words into messages, and which of the two streams is heard first, differs from run to run.
    nbclient can join them too, but takes quadratic time for a long line.
    """
    joined: list[dict[str, Any]] = []
    texts: dict[str, list[str]] = {}
    for output in outputs:
        if output["output_type"] != "stream":
            joined.append(output)
            continue
        if output["name"] not in texts:
            joined.append(output)
        texts.setdefault(output["name"], []).append("".join(output["text"]))
    for k, output in enumerate(joined):
        if output["output_type"] == "stream":
            output["text"] = _as_shown("".join(texts[output["name"]]))
            if k and output["name"] == "stdout" and joined[k - 1].get("name") == "stderr":
                joined[k - 1 : k + 1] = [output, joined[k - 1]]
    return joined


def _as_shown(text: str) -> str:
    """Without what a carriage return let a terminal write over."""
    return "\n".join(line[line.rfind("\r", 0, max(len(line) - 1, 0)) + 1 :] for line in text.split("\n"))


def _forget_source(state: dict[str, Any]) -> None:
    """Our own timeline is drawn by the page's current `timeline.js`; another's widget keeps its source."""
    if str(state.get("_anywidget_id", "")).startswith(OUR_WIDGETS):
        state.update(_esm=UNTIL_RUN, _css="")


def _in_order_of_use(cells: list[dict[str, Any]], state: dict[str, Any]) -> list[str]:
    """Widget ids as the outputs show them, each followed by the widgets that it refers to; unused ones last."""
    shown = _ID.findall(json.dumps([cell.get("outputs", []) for cell in cells]))
    order: dict[str, None] = {}
    for start in [*shown, *state]:
        waiting = [start]
        while waiting:
            name = waiting.pop(0)
            if name in state and name not in order:
                order[name] = None
                waiting += _ID.findall(json.dumps(state[name], sort_keys=True))
    return list(order)


def _renumbered(plain: dict[str, Any], order: list[str]) -> dict[str, Any]:
    new = {old: hashlib.sha256(f"widget {n}".encode()).hexdigest()[:32] for n, old in enumerate(order)}
    text = _ID.sub(lambda found: new.get(found.group(), found.group()), json.dumps(plain))
    renumbered: dict[str, Any] = json.loads(text)
    return renumbered
