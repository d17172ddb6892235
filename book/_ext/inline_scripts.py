"""Mend the inline scripts that other extensions give a page.

One that is registered twice is dropped: sphinx-thebe's second `const` is a SyntaxError in every console. In the saved
state of widgets a name such as `<!--<script>` would hide the rest of the page: myst-nb escapes `</script>` alone.
"""

from typing import Any

from sphinx.application import Sphinx

from refimpl.view.bundle import inert


def _mend(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object) -> None:
    seen: set[str] = set()
    kept = []
    for script in context.get("script_files", []):
        attributes = getattr(script, "attributes", {})
        body = attributes.get("body")
        if body is None or body not in seen:
            kept.append(script)
            seen |= {body} - {None}
        if body is not None and (attributes.get("type") or "").endswith("json"):
            attributes["body"] = inert(body)
    if "script_files" in context:
        context["script_files"][:] = kept


def setup(app: Sphinx) -> dict[str, bool]:
    """Runs after the extensions that add scripts."""
    app.connect("html-page-context", _mend, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
