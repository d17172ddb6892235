"""How smooth the view of a recorded run is in a browser, how soon it opens, and what reading a large profile costs.

Frames are counted while wheel events arrive one a frame, as from a hand that never rests: panning where single spans
are seen, zooming between the whole run and a thousandth of it. A browser draws no more than 60 frames a second. The
time to open is from the request for a file on disk to the first picture, in a fresh tab. Reading is the browser's own
reader in Node: the profiler's file to columns and report.
"""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from refimpl.lessons.bench_view_runs import loop, write_profile
from refimpl.program import UserError
from refimpl.timeline.writing.columns import columns
from refimpl.view.trace_page import trace_page

SIZES = (10_000, 100_000)
PROFILE_MB = 100
REPEATS = 5
FRAMES = 150
FLAGS = ["--no-sandbox", "--disable-gpu"]
VIEW = Path(__file__).parents[1] / "view"
_BROWSERS = "chromium chromium-browser google-chrome google-chrome-stable"

_SPIN = """async ([kind, frames]) => {
  const canvas = document.querySelector(".rn-fig canvas"), box = canvas.getBoundingClientRect();
  const at = { bubbles: true, cancelable: true, clientX: box.left + box.width * 0.6, clientY: box.top + 60 };
  const turn = (more) => canvas.dispatchEvent(new WheelEvent("wheel", { ...at, ...more }));
  const next = () => new Promise(requestAnimationFrame);
  const press = (key) => document.querySelector(".rn-fig").dispatchEvent(new KeyboardEvent("keydown", { ...at, key }));
  press("0");
  if (kind === "pan") for (let k = 0; k < 14; k++) turn({ ctrlKey: true, deltaY: -100 });
  for (let k = 0; k < 20; k++) await next();
  const begin = performance.now();
  for (let k = 0; k < frames; k++) {
    const back = Math.floor(k / 50) % 2;
    turn(kind === "pan" ? { shiftKey: true, deltaX: back ? -30 : 30 } : { ctrlKey: true, deltaY: back ? 28 : -28 });
    await next();
  }
  return (1000 * frames) / (performance.now() - begin);
}"""
_LIVE = "document.documentElement.dataset.widgets === 'live'"
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
_READ = """
import { openAsBlob } from "node:fs";
import { readTrace } from "./trace/read_trace.js";
const file = await openAsBlob(process.argv[1]);
file.name = "profile.json";
const begin = performance.now(), { columns } = await readTrace(file), seconds = (performance.now() - begin) / 1000;
const megabytes = process.resourceUsage().maxRSS / 1000, spans = columns.spans.start.length;
console.log(JSON.stringify({ seconds, megabytes, spans }));
"""


@dataclass(frozen=True)
class Row:
    """One figure over ``n`` repeats, and what it must reach: at least ``bar`` frames, at most ``bar`` of all else."""

    name: str
    spans: int
    unit: str
    median: float
    p10: float
    p90: float
    n: int
    bar: float

    @property
    def met(self) -> bool:
        """Whether the median reaches what it must."""
        return self.median >= self.bar if self.unit == "frames/s" else self.median <= self.bar


def measure(
    sizes: Sequence[int] = SIZES,
    repeats: int = REPEATS,
    megabytes: float = PROFILE_MB,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Frames and opening of a run of each size, then the reading of one large profile.

    Raises:
        UserError: Chromium, playwright or Node is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        pages = {size: _page(Path(folder), size, progress) for size in sizes}
        rows = list(_in_browser(pages, repeats, progress))
        progress(f"a profile of {megabytes:g} MB")
        profile = Path(folder) / "profile.json"
        write_profile(profile, megabytes)
        return [*rows, *_reading(profile, megabytes, repeats, progress)]


def _page(folder: Path, size: int, progress: Callable[[str], None]) -> Path:
    progress(f"a run of {size:,} spans")
    trace, file = loop(size), folder / f"{size}.html"
    file.write_text(trace_page(trace, columns(trace, title=f"{size:,} spans", step_op="rms_norm")), encoding="utf-8")
    return file


def _in_browser(pages: dict[int, Path], repeats: int, progress: Callable[[str], None]) -> Iterator[Row]:
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise UserError("bench view needs playwright: run `pip install playwright`") from error
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
        for size, file in pages.items():
            opened, frames = list[float](), dict[str, list[float]]()
            for repeat in range(repeats):
                progress(f"{size:,} spans, repeat {repeat + 1} of {repeats}")
                page = browser.new_page(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
                page.goto(file.as_uri(), wait_until="commit")
                page.wait_for_function(_LIVE, polling="raf")
                opened.append(page.evaluate(_DRAWN) / 1000)
                for kind in ("pan", "zoom"):
                    frames.setdefault(kind, []).append(page.evaluate(_SPIN, [kind, FRAMES]))
                page.close()
            yield from (_row(kind, size, "frames/s", found, 50) for kind, found in frames.items())
            yield _row("open from disk", size, "s", opened, 3)
        browser.close()


def _chromium() -> str:
    names = os.environ.get("CHROMIUM", _BROWSERS).split()
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        raise UserError(f"bench view needs a browser: none of {', '.join(names)} is installed")
    return found


def _reading(profile: Path, megabytes: float, repeats: int, progress: Callable[[str], None]) -> Iterator[Row]:
    node = shutil.which("node")
    if node is None:
        raise UserError("bench view needs Node to read a profile outside a browser: `node` is not installed")
    found = []
    for repeat in range(repeats):
        progress(f"reading, repeat {repeat + 1} of {repeats}")
        command = [node, "--input-type=module", "-e", _READ, str(profile)]
        made = subprocess.run(command, capture_output=True, text=True, cwd=VIEW)
        if made.returncode:
            last = (made.stderr.strip().splitlines() or ["no word"])[-1]
            raise UserError(f"reading the made-up profile failed in Node: {last}")
        found.append(json.loads(made.stdout))
    spans, name = found[0]["spans"], f"read {megabytes:g} MB"
    yield _row(name, spans, "s", [one["seconds"] for one in found], 15)
    yield _row(f"{name}: memory", spans, "MB", [one["megabytes"] for one in found], 2000)


def _row(name: str, spans: int, unit: str, samples: Sequence[float], bar: float) -> Row:
    ordered = sorted(samples)
    return Row(
        name=name,
        spans=spans,
        unit=unit,
        median=round(statistics.median(ordered), 2),
        p10=round(ordered[len(ordered) // 10], 2),
        p90=round(ordered[-1 - len(ordered) // 10], 2),
        n=len(ordered),
        bar=bar,
    )


def table(rows: Sequence[Row]) -> str:
    """The rows for a terminal: median and, in brackets, p10 and p90; then what must be reached."""
    lines = [f"{'':24}{'spans':>10}{'median (p10 to p90)':>36}   must be"]
    for row in rows:
        cell = f"{row.median:,.4g} ({row.p10:,.4g} to {row.p90:,.4g}) {row.unit}"
        bound = f"{'≥' if row.unit == 'frames/s' else '≤'} {row.bar:g}, {'met' if row.met else 'MISSED'}"
        lines.append(f"{row.name:24}{row.spans:>10,}{cell:>36}   {bound}")
    return "\n".join(lines)


def rows_json(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The rows as JSON values."""
    return ({**asdict(row), "met": row.met} for row in rows)
