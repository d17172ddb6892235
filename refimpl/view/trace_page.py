"""One HTML file that holds a whole recorded run and all it needs: opens from disk, asks nothing of the network."""

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from typing import Any

from refimpl.program import Trace
from refimpl.view.bundle import RUN, classic, inert
from refimpl.view.html import HEAD
from refimpl.view.plot.words import alt_text
from refimpl.view.run_frame import run_frame

PLAIN_BYTES = 64_000
"""Below this the numbers stand in the page as they are."""

_PAGE = """{head}
<body>
<main>
<h1>{title}</h1>
{words}
<div id="run"><p role="status">Opening {count} spans…</p></div>
<noscript>{frame}<p>{told}</p></noscript>
</main>
<script type="{kind}" id="columns">{data}</script>
<script>
{script}
</script>
<script>
(() => {{
const root = document.getElementById("run"), held = document.getElementById("columns");
const style = document.createElement("style");
style.textContent = streamOrderRun.css;
document.head.append(style);
async function columns() {{
  if (held.type === "application/json") return JSON.parse(held.textContent);
  const text = atob(held.textContent), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k += 1) bytes[k] = text.charCodeAt(k);
  const opened = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(opened).json();
}}
function say(words) {{
  const note = document.createElement("p");
  note.setAttribute("role", "alert");
  note.textContent = words;
  root.replaceChildren(note);
}}
if (held.type !== "application/json" && typeof DecompressionStream === "undefined") {{
  say("This browser is too old to open the run: it has no DecompressionStream.");
}} else {{
  columns().then((table) => {{
    held.remove();
    root.replaceChildren();
    streamOrderRun.mount(root, table);
    document.documentElement.dataset.widgets = "live";
  }}).catch((error) => {{ say(`The run cannot be opened: ${{error.message}}.`); throw error; }});
}}
}})();
</script>
</body>
</html>
"""


def trace_page(trace: Trace, table: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """A self-contained HTML page with the view of a whole run, or of two on one axis.

    Args:
        trace: what ran, for those who have no scripts.
        table: its columns, from ``refimpl.timeline.writing.columns``.
        before: columns of the run that it is compared with.

    Example:
        >>> from refimpl.program import Span, SpanKind, TraceSource
        >>> from refimpl.timeline import columns
        >>> trace = Trace(("host",), (Span("host", "build", SpanKind.HOST, 0, 5),), TraceSource.MEASURED)
        >>> "<title>tiny</title>" in trace_page(trace, columns(trace, title="tiny"))
        True
    """
    shown = table if before is None else {"before": before, "after": table}
    text = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    small = len(text) <= PLAIN_BYTES
    packed = "" if small else b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")
    title, told = str(table.get("title") or table.get("id") or "Recorded run"), alt_text(trace)
    return _PAGE.format(
        head=HEAD.format(title=escape(title)),
        title=escape(title),
        words=f"<p>{escape(str(table['words']))}</p>" if table.get("words") else "",
        count=f"{len(trace.spans):,}",
        frame=run_frame(trace, title, told),
        told=escape(told),
        kind="application/json" if small else "application/gzip",
        data=inert(text) if small else packed,
        script=classic(RUN).replace("</script", "<\\/script"),
    )
