"""A CI gate as a stream program: a label list, a copy of it made at an event, and a job that is run again.

The lanes are GitHub, which keeps labels and payloads, and the runner, which runs the gate; the host is the person who
adds a label and presses the button. Durations are made up: read a millisecond as a minute.
"""

from dataclasses import dataclass
from enum import StrEnum

from refimpl.program import (
    Buffer,
    EventRecord,
    EventSync,
    Explorable,
    HostWork,
    Launch,
    Op,
    Param,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
    Variant,
)

WIDTH = 8
"""Bytes that stand for a label list, and for what the gate says."""
LABELS, PAYLOAD = Range("labels", 0, WIDTH), Range("payload", 0, WIDTH)
MINUTE_US = 1000.0
BEFORE, ADDED = "label the pull request", "add run-gpu"
COPY = "copy labels to payload"
FIRST, SECOND = "gate 1", "gate 2"


class Gate(StrEnum):
    """What the gate reads, a frozen payload or the labels themselves, and when the button is pressed."""

    FROZEN = "frozen"
    AT_ONCE = "at once"
    PAUSE = "after a pause"
    SEEN = "once seen"


@dataclass(frozen=True)
class _Told:
    """How a variant differs, and what its picture says."""

    reads: Range
    words: str
    pauses: bool = False
    sees: bool = False


_TOLD = {
    Gate.FROZEN: _Told(
        PAYLOAD,
        "Both runs read the copy made at the event. The label comes before gate 2, which does not see it.",
        sees=True,
    ),
    Gate.AT_ONCE: _Told(
        LABELS, "The gate asks for the labels, but the button is pressed while the label is still on its way."
    ),
    Gate.PAUSE: _Told(
        LABELS, "Somebody waits a while between the label and the button. No edge comes of it.", pauses=True
    ),
    Gate.SEEN: _Told(
        LABELS,
        "The person sees the label on the page, then presses the button: gate 2 reads what was written.",
        sees=True,
    ),
}


def gate_program(gate: Gate) -> Program:
    """An event, a first run that refuses, the label, and a second run.

    Args:
        gate: what is read, and what orders the second run after the label.
    """
    told = _TOLD[gate]
    ops = (*_event(), *_first_run(told.reads), *_label(told), _run(SECOND, told.reads, 1))
    return Program(
        id=f"label-gate/{gate}",
        words=told.words,
        streams={"github": Stream(), "runner": Stream()},
        buffers={"labels": Buffer(WIDTH), "payload": Buffer(WIDTH), "answers": Buffer(2 * WIDTH)},
        ops=ops,
    )


def explorable() -> Explorable:
    """The variants side by side, for the chapter."""
    return Explorable(
        id="label-gate",
        title="A gate that is run again",
        words="What a gate reads decides what a re-run can see.",
        variants=tuple(Variant(gate.name.lower(), str(gate), _TOLD[gate].words, gate_program(gate)) for gate in Gate),
        params={
            "landing": Param("the label's way", 2 * MINUTE_US, 0.0, 6 * MINUTE_US, 100.0),
            "pause": Param("the pause", 3 * MINUTE_US, 0.0, 6 * MINUTE_US, 100.0),
        },
        initial=Gate.FROZEN.name.lower(),
        before=Gate.FROZEN.name.lower(),
        topic=("triggered", "label seen"),
        hero="runner",
        ask=(ADDED, SECOND),
    )


def _event() -> tuple[Op, ...]:
    value = "the labels without run-gpu"
    return (
        Launch(stream="github", name=BEFORE, writes=(LABELS,), us=MINUTE_US, value=value),
        # A Memcpy has no name of its own: it would be drawn as D2D.
        Launch(stream="github", name=COPY, reads=(LABELS,), writes=(PAYLOAD,), us=MINUTE_US / 2, value=value),
        EventRecord(event="triggered", stream="github"),
    )


def _first_run(reads: Range) -> tuple[Op, ...]:
    return (
        # Safe because: the copy is made before triggered is recorded, and gate 1 runs after it.
        StreamWaitEvent(event="triggered", stream="runner"),
        _run(FIRST, reads, 0),
        EventRecord(event="refused", stream="runner"),
        # Safe because: the person reads the refusal, and so gate 1 has read the labels, before add run-gpu writes them.
        EventSync(event="refused"),
        HostWork(name="read the refusal", us=MINUTE_US),
    )


def _label(told: _Told) -> tuple[Op, ...]:
    value = "the labels with run-gpu"
    added = Launch(stream="github", name=ADDED, writes=(LABELS,), us=2 * MINUTE_US, param="landing", value=value)
    if told.sees:
        # Safe because: gate 2 is submitted after the person has seen what add run-gpu wrote.
        return added, EventRecord(event="label seen", stream="github"), EventSync(event="label seen")
    # Hazard: RAW on labels; nothing orders gate 2 after the write. A pause makes the bad order rare, and no edge.
    return (added, HostWork(name="count", us=3 * MINUTE_US, param="pause")) if told.pauses else (added,)


def _run(name: str, reads: Range, number: int) -> Op:
    answer = Range("answers", number * WIDTH, WIDTH)
    return Launch(stream="runner", name=name, reads=(reads,), writes=(answer,), us=MINUTE_US)
