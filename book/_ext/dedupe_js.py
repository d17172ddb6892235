"""Drop inline scripts that a page registers twice: sphinx-thebe's second `const` is a SyntaxError in every console."""

from typing import Any

from sphinx.application import Sphinx


def _dedupe(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object) -> None:
    seen: set[str] = set()
    kept = []
    for script in context.get("script_files", []):
        body = getattr(script, "attributes", {}).get("body")
        if body is None or body not in seen:
            kept.append(script)
            seen |= {body} - {None}
    if "script_files" in context:
        context["script_files"][:] = kept


def setup(app: Sphinx) -> dict[str, bool]:
    """Runs after the extensions that add scripts."""
    app.connect("html-page-context", _dedupe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
