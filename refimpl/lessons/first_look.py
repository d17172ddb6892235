"""The first timeline that a reader meets: a fence that looks right, and a guess before the answer."""

from refimpl.program import (
    Buffer,
    EventRecord,
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

STEPS = 3
LENS = (Range("lens", 0, 128),)
WORDS = {
    "none": ("no fence", "Nothing stands between the two streams."),
    "early": ("record, launch, wait", "The event is recorded in front of the launch, and waited for behind it."),
    "behind": ("launch, record, wait", "The event is recorded behind the launch, and waited for."),
    "both": ("one each way", "As before; and forward waits until schedule has read."),
}


def explorable() -> Explorable:
    """Two streams, a buffer, and four ways to write the fence; the reader is asked about the second."""
    return Explorable(
        id="first_look",
        title="Is this fence one?",
        words="In each step forward writes lengths, and schedule reads them.",
        variants=tuple(Variant(name, *words, _program(name)) for name, words in WORDS.items()),
        params={"verify": Param("verify", us=60, min=10, max=200, step=5)},
        initial="early",
        before="none",
        topic=("lens_ready", "lens_read"),
        step_op="verify",
        predict=True,
    )


def _program(name: str) -> Program:
    ops: list[Op] = []
    for step in range(STEPS):
        record = EventRecord(event="lens_ready", stream="forward", step=step)
        ops.append(HostWork(name="prepare", us=30, step=step))
        if name == "both" and step:
            ops.append(StreamWaitEvent(event="lens_read", stream="forward", step=step))
        ops += [record] if name == "early" else []
        ops.append(Launch(stream="forward", name="verify", writes=LENS, param="verify", us=60, step=step))
        ops += [record] if name in ("behind", "both") else []
        ops += [] if name == "none" else [StreamWaitEvent(event="lens_ready", stream="schedule", step=step)]
        ops.append(Launch(stream="schedule", name="gather", reads=LENS, us=15, step=step))
        ops += [EventRecord(event="lens_read", stream="schedule", step=step)] if name == "both" else []
    streams = {"forward": Stream(), "schedule": Stream()}
    return Program(id=f"first_look/{name}", streams=streams, buffers={"lens": Buffer(bytes=128)}, ops=tuple(ops))
