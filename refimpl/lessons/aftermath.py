"""What broke next: five changes of the history, what the argument for each left unsaid, and who said it later.

A ``Story`` names presets; what is true of them is computed from their recorded programs: who touches the buffer, which
fences stand, what the checker finds. The words are ours, after the pull requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refimpl.fences import preset
from refimpl.lessons.markdown import table
from refimpl.lessons.stated import with_private_reader
from refimpl.lessons.timelines.naming import base
from refimpl.lessons.timelines.proofs import fences_by_name, races
from refimpl.program import Program, accesses, label

PULL = "https://github.com/sgl-project/sglang/pull"


@dataclass(frozen=True)
class Story:
    """A change, and what came after it.

    Args:
        pr: upstream's pull request.
        became: of it, and by which pull request.
        argument: why it was right.
        unsaid: what the argument stood on without naming it.
        before: the preset that is right about ``buffer``; it has the change, except in `FINER`, where it had none yet.
        after: the preset with the later change, or the first one with what is stated besides (`STATED`).
        mended: the one in which an order is made again; None where nobody made one.
        buffer: that both use.
        inference: whether no text of upstream says that it broke so.
    """

    pr: int
    became: str
    argument: str
    unsaid: str
    before: str
    after: str
    mended: str | None
    buffer: str
    inference: bool = False

    @property
    def programs(self) -> tuple[str, ...]:
        """Which it is about, oldest first."""
        return tuple(name for name in (self.before, self.after, self.mended) if name is not None)

    @property
    def date(self) -> str:
        """Of the change itself, and not of the program before it."""
        return preset(f"{self.pr}").date


PRIVATE_READ, PRIVATE_WAIT = "25465, read by a private stream too", "25465, with a wait on that stream"
STATED: Mapping[str, Callable[[Mapping[str, Program]], Program]] = {
    PRIVATE_READ: lambda recorded: with_private_reader(recorded["25465"], waits=False),
    PRIVATE_WAIT: lambda recorded: with_private_reader(recorded["25465"], waits=True),
}
"""Programs that no preset records: made from those that are."""

STORIES = (
    Story(
        pr=21940,
        became="reverted by 25917",
        argument="the plan comes behind the draft, whose tokens it copies",
        unsaid="that nothing is left to overlap behind that event; and, of its revert, that nobody turns the plan "
        "stream on",
        before="21940",
        after="25917-revert",
        mended="latest-plan",
        buffer="draft.draft_tokens",
    ),
    Story(
        pr=25465,
        became="superseded within days: 25879 gave the lengths a relay, and 26380 has a private stream read it",
        argument="the stream waits where the host did, so the same read comes behind the same write",
        unsaid="that the reader is on the stream that waits: the host stood in front of all streams, a wait before one",
        before="25465",
        after=PRIVATE_READ,
        mended=PRIVATE_WAIT,
        buffer="new_seq_lens",
        inference=True,
    ),
    Story(
        pr=29556,
        became="sound on CUDA alone: elsewhere the barrier is off by default (26646); 27967 made it a switch",
        argument="DFLASH's own fence orders what the barrier orders too, so one of them may go",
        unsaid="that the barrier is there: the fence that went stood on every platform",
        before="29556",
        after="29556-hip",
        mended=None,
        buffer="req_to_token",
        inference=True,
    ),
    Story(
        pr=29541,
        became="sound for one kind of backend: 29843 moved a read behind the event, and 34052 has backends declare it",
        argument="the replay reads the snapshot that load_batch made, so the table is free before it",
        unsaid="that no kernel of the graph reads the table itself: that is the backend's to say",
        before="29541",
        after="29843",
        mended="34052",
        buffer="req_to_token",
    ),
    Story(
        pr=30435,
        became="replaced after six weeks: 35748 took it out, and waits for the whole forward",
        argument="a wait in front of the record keeps what the event held; where there is a barrier, its event comes "
        "behind the publish",
        unsaid="that the stash comes behind that event, and was open all the while; and that every worker records the "
        "event there: 34816 records it in front of its publish, as DFLASH does here",
        before="30435",
        after="seed-chain-barrier-dflash",
        mended="seed-wait-stream-barrier-dflash",
        buffer="new_seq_lens_buf",
    ),
)
"""The five changes, in the order of their dates."""

FINER = Story(
    pr=28363,
    became="open until 35748 waited for the whole forward before it seeds",
    argument="the barrier is about the table, so it may wait for an event behind the last read of it",
    unsaid="that the coarse wait ordered the stash before the seeds of a row, in passing",
    before="before-28363",
    after="before-30435",
    mended="35748",
    buffer="output_tokens_buf",
    inference=True,
)
"""None of the five: the fence beside them that became better, and with it one that nobody had named went."""
ALL = (*STORIES, FINER)


def presets_of(stories: Sequence[Story] = ALL) -> tuple[str, ...]:
    """All presets that are to be recorded for them, each once."""
    return tuple(dict.fromkeys(name for story in stories for name in story.programs if name not in STATED))


def with_stated(recorded: Mapping[str, Program]) -> dict[str, Program]:
    """The recorded programs by preset, and those that are stated besides."""
    return {**recorded, **{name: make(recorded) for name, make in STATED.items()}}


def told(stories: Sequence[Story] = ALL) -> str:
    """The stories as a Markdown table: what was argued, what was not, and what became of it."""
    return table(("pull request", "date", "argument", "left unsaid", "became"), map(_cells, stories))


def touching(program: Program, buffer: str) -> tuple[str, ...]:
    """Who uses a buffer, in the order of issue, each once: ``"forward: load_batch verify reads req_to_token"``.

    Args:
        program: folded.
        buffer: its name with or without a number.
    """
    return tuple(dict.fromkeys(_touches(program, buffer)))


def changes(before: Program, after: Program, buffer: str) -> tuple[str, ...]:
    """What the later program does otherwise: a line with ``-`` for what it lacks, with ``+`` for what is new.

    Args:
        before, after: folded.
        buffer: whose uses are compared; fences are compared too.
    """
    old, new = (dict.fromkeys((*touching(program, buffer), *fences_by_name(program))) for program in (before, after))
    return (*(f"- {line}" for line in old if line not in new), *(f"+ {line}" for line in new if line not in old))


def found(story: Story, programs: Mapping[str, Program]) -> dict[str, int]:
    """How many races on the story's buffer the checker finds in each of its programs.

    Args:
        story: which.
        programs: by name, folded.
    """
    return {name: len(races(programs[name], story.buffer)) for name in story.programs}


def verdicts(programs: Mapping[str, Program], stories: Sequence[Story] = ALL) -> str:
    """The same of each story as a Markdown table.

    Args:
        programs: by name, folded.
        stories: which.
    """
    rows = []
    for story in stories:
        counts = [f"`{name}`: {_count(number)}" for name, number in found(story, programs).items()]
        rows.append((f"{story.pr}", f"`{story.buffer}`", *counts, *["–"] * (3 - len(counts))))
    return table(("pull request", "buffer", "at first", "then", "mended"), rows)


def _cells(story: Story) -> tuple[str, ...]:
    became = f"{story.became} (our inference)" if story.inference else story.became
    return f"[{story.pr}]({PULL}/{story.pr})", story.date, story.argument, story.unsaid, became


def _count(number: int) -> str:
    return "no race" if not number else "a race" if number == 1 else f"{number} races"


def _touches(program: Program, buffer: str) -> Iterator[str]:
    for op in program.ops:
        reads, writes = accesses(op)
        for verb, ranges in (("reads", reads), ("writes", writes)):
            if any(_is(one.buf, buffer) for one in ranges):
                yield f"{getattr(op, 'stream', 'host')}: {base(label(op))} {verb} {buffer}"


def _is(name: str, buffer: str) -> bool:
    return buffer in (name, *map(base, name.split(" / ")))
