"""One HTML file that holds a timeline and all it needs: opens from disk, asks nothing of the network."""

import json
from html import escape
from pathlib import Path
from typing import Any

from refimpl.program import UserError
from refimpl.view.bundle import classic, inert
from refimpl.view.spec import Shown, spec_of
from refimpl.view.svg import first_frame
from refimpl.view.write import write_whole

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ margin: 0; background: light-dark(#fff, #14181d); color: light-dark(#1c2127, #dfe4ea) }}
body {{ font: 16px/1.6 system-ui, sans-serif }}
main {{ max-width: 1180px; margin: 0 auto; padding: 32px 24px 56px }}
h1 {{ font-size: 24px; line-height: 1.25; margin: 0 0 6px }}
@media (max-width: 620px) {{ main {{ padding: 20px 16px 40px }} }}
</style>
</head>"""

_PAGE = """{head}
<body>
<main>
<h1>{title}</h1>
<p>{words}</p>
<div id="timeline"></div>
<noscript>{fallback}</noscript>
</main>
<script type="application/json" id="spec">{spec}</script>
<script>
{script}
const style = document.createElement("style");
style.textContent = streamOrderTimeline.css;
document.head.append(style);
const spec = JSON.parse(document.getElementById("spec").textContent);
streamOrderTimeline.mount(document.getElementById("timeline"), spec);
document.documentElement.dataset.widgets = "live";
</script>
</body>
</html>
"""


def page(shown: Shown) -> str:
    """A self-contained HTML page with the timeline of an Explorable or a Program.

    Raises:
        UserError: what is shown is malformed, or a number in it is none.

    Example:
        >>> from refimpl.program import Launch, Program, Stream
        >>> ops = (Launch(stream="forward", name="verify"),)
        >>> "<title>tiny</title>" in page(Program(id="tiny", streams={"forward": Stream()}, ops=ops))
        True
    """
    spec = spec_of(shown)
    title = escape(str(spec.get("title") or spec.get("id") or "Stream program"))
    return _PAGE.format(
        head=HEAD.format(title=title),
        title=title,
        words="" if "predict" in spec else escape(str(spec.get("words", ""))),
        fallback=first_frame(shown),
        spec=inert(_json(spec)),
        script=classic().replace("</script", "<\\/script"),
    )


def _json(spec: dict[str, Any]) -> str:
    try:
        return json.dumps(spec, allow_nan=False)
    except ValueError as error:
        raise UserError(f"the timeline {spec.get('id', '')!r} cannot be written as JSON: {error}") from None


def write_page(shown: Shown, path: str | Path) -> Path:
    """Write ``page(shown)`` to a file; returns its path."""
    return write_whole(page(shown).encode("utf-8", "xmlcharrefreplace"), path)
