"""Which fix of ``publish`` orders what, by where the forward says that it has read the shared tables: a table of nine.

Every cell is found in programs recorded from the engine. Two rows of the relay are at stake: one whose request goes on,
and one that changes hands while the redundant forward of its last owner is in flight; the next owner's prefill ran
elsewhere, and its rows of the relay are seeded on ``schedule_stream``.

Source: sgl-project/sglang, pull requests 30435, 34077 and 35748, July and August 2026.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from refimpl.engine.request import SamplingParams
from refimpl.fences import preset
from refimpl.lessons.history.subject import build, subject_of
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.timelines.naming import base
from refimpl.lessons.timelines.record import record_load
from refimpl.order import Race, check
from refimpl.program import Program, accesses, overlap

LENGTHS, STASHED = "new_seq_lens_buf", ("output_tokens_buf", "hidden_states")
"""The relay's rows: what ``publish`` writes, and what ``stash`` writes."""
RAW_LENGTHS, WAW_LENGTHS, WAW_STASH = f"RAW {LENGTHS}", f"WAW {LENGTHS}", "WAW stash"
FIXES = {"overwrite": "no fix", "chain": "chain, 30435", "wait-stream": "wait_stream, 35748"}
"""Columns, by the names in presets."""
PLACES = {
    "read_done behind publish, barrier": ("barrier-eagle",),
    "read_done before publish, barrier": ("barrier-dflash",),
    "no barrier": ("bare-eagle", "bare-dflash"),
}
"""Rows, with the engines that are such."""
Matrix = Mapping[tuple[str, str], frozenset[str]]
"""By place and fix: hazards with their buffers."""

_ALL = frozenset({RAW_LENGTHS, WAW_LENGTHS, WAW_STASH})
_CHAINED = _ALL - {RAW_LENGTHS}
_STASH_ALONE = frozenset({WAW_STASH})
_RIGHT = frozenset[str]()
EXPECTED: Matrix = {
    (place, fix): found
    for place, row in zip(
        PLACES, ((_STASH_ALONE, _STASH_ALONE, _RIGHT), (_ALL, _CHAINED, _RIGHT), (_ALL, _CHAINED, _RIGHT)), strict=True
    )
    for fix, found in zip(FIXES, row, strict=True)
}
"""What the pull requests' arguments come to, worked out on paper before the engine could run any of it."""
RECORDERS = 2
"""Processes that record side by side."""


def preset_names(place: str, fix: str) -> list[str]:
    """The rows of the history that stand for a cell."""
    return [f"seed-{fix}-{engine}" for engine in PLACES[place]]


def matrix() -> Matrix:
    """The table, from engines that are recorded in processes of their own: one that uses a GPU cannot hold ``sim``.

    Raises:
        RuntimeError: a recording failed; or two engines of one cell differ, and which.
    """
    names = [name for place in PLACES for fix in FIXES for name in preset_names(place, fix)]
    with ThreadPoolExecutor(RECORDERS) as pool:
        parts = pool.map(_recorded_apart, [names[at::RECORDERS] for at in range(RECORDERS)])
    found = {name: frozenset(hazards) for part in parts for name, hazards in part.items()}
    return {(place, fix): _agreed(preset_names(place, fix), found) for place in PLACES for fix in FIXES}


def relay_hazards(program: Program, races: Iterable[Race]) -> set[str]:
    """Races on the relay's rows, such as ``"WAW stash"``: each pair of ops with every buffer that both of them use."""
    return {
        f"{race.kind} {LENGTHS if buffer == LENGTHS else 'stash'}"
        for race in races
        for buffer in _met(program, race)
        if buffer == LENGTHS or buffer in STASHED
    }


def as_markdown(found: Matrix) -> str:
    """The table for a page."""
    lines = ["| read_done | " + " | ".join(FIXES.values()) + " |", "|---" * (len(FIXES) + 1) + "|"]
    lines += [f"| {place} | " + " | ".join(_words(found[place, fix]) for fix in FIXES) + " |" for place in PLACES]
    return "\n".join(lines)


def _words(hazards: frozenset[str]) -> str:
    """``RAW + WAW new_seq_lens_buf, WAW stash``."""
    buffers = dict.fromkeys(one.split(" ", 1)[1] for one in sorted(hazards))
    parts = [
        f"{' + '.join(sorted(one.split(' ', 1)[0] for one in hazards if one.endswith(f' {buffer}')))} `{buffer}`"
        for buffer in buffers
    ]
    return ", ".join(parts) or "none"


def _agreed(names: Sequence[str], found: Mapping[str, frozenset[str]]) -> frozenset[str]:
    if len({found[name] for name in names}) != 1:
        told = "; ".join(f"{name}: {', '.join(sorted(found[name])) or 'none'}" for name in names)
        raise RuntimeError(f"engines of one cell race in different ways: {told}")
    return found[names[0]]


def _met(program: Program, race: Race) -> set[str]:
    """Buffers of which both ops use the same bytes, one of them writing."""
    (reads, writes), (others_reads, others_writes) = (
        accesses(program.ops[op]) for op in (race.first.op, race.second.op)
    )
    return {
        base(one.buf)
        for mine, theirs in ((writes, (*others_reads, *others_writes)), (reads, others_writes))
        for one in mine
        for other in theirs
        if one.buf == other.buf and overlap(one, other)
    }


def _recorded_apart(names: Sequence[str]) -> dict[str, list[str]]:
    command = [sys.executable, "-m", "refimpl.lessons.publish_matrix", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"recording the engine failed: {(done.stderr.strip().splitlines() or ['no words'])[-1]}")
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def _arrival(turn: int, prompt: Sequence[int], tokens: int, prebuilt: bool = False) -> Arrival:
    return Arrival(turn, tuple(prompt), SamplingParams(max_new_tokens=tokens, ignore_eos=True), prebuilt=prebuilt)


LOAD = (
    _arrival(0, (3, 1, 4, 1, 5), 4),
    _arrival(0, (9, 2, 6), 9),
    _arrival(1, (5, 3, 8, 9, 7, 9, 3, 2), 6, prebuilt=True),
)
"""Two rows: the third request, whose prefill runs elsewhere, takes over the first one's; the second goes on."""


def _main(names: Sequence[str]) -> None:
    """Prints the hazards by preset."""
    torch.set_num_threads(1)
    found = {}
    for name in names:
        program = record_load(build(subject_of(preset(name))).scheduler, LOAD).recording.program(id=name)
        found[name] = sorted(relay_hazards(program, check(program).races))
    print(json.dumps(found))


if __name__ == "__main__":
    _main(sys.argv[1:])
