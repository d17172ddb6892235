"""Wrong answers to this chapter's exercises: each looks right to somebody, and must be rejected for its reason."""

from refimpl.lessons.exercise import Wrong
from refimpl.lessons.exercise_order import inserted
from refimpl.lessons.exercises.chained_publish_programs import record, wait
from refimpl.program import EventSync, Op, StreamSync, StreamWaitStream, label

_CHAIN = wait("schedule")
_SEED, _SEED_STASH, _PULL = "seed publish", "seed stash", "pull"
_WHOLE_FORWARD = StreamWaitStream(stream="schedule", on="forward")
_PULL_RACES = "pull 2 on copy of lengths may read before publish 1 on forward"
_SEED_LOSES = "publish 1 on forward and seed publish 2 on schedule may come in either order"
_STASH_LOSES = "stash 1 on forward and seed stash 2 on schedule may come in either order"
_HOST_STANDS = "makes build 2 come after publish 1: the host stands still"


def _chained(ops: list[Op]) -> list[Op]:
    """The chain: in front of schedule's record, behind its write."""
    out: list[Op] = []
    for op in ops:
        if label(op).startswith("record") and getattr(op, "stream", "") == "schedule":
            out.append(_CHAIN)
        out.append(op)
    return out


def _recorded_again(ops: list[Op]) -> list[Op]:
    """Forward's capture once more, behind the seed's: now that one is lost."""
    return inserted("wait(publish_ready)", record("forward"))(ops)


def _event_in_front_of_the_stash(ops: list[Op]) -> list[Op]:
    return inserted(_SEED, wait("schedule", "late"), last=99)(inserted("stash 1", record("forward", "late"))(ops))


WHAT_IS_SURE = {
    "an event collects": Wrong({5: {0, 2}, 9: {0, 2, 6}, 16: {0, 2, 6, 10, 12}}, "publish 1 may still come after it"),
    "a stream knows its last wait alone": Wrong(
        {5: {2}, 9: {6}, 16: {10, 12}}, "op 9, resolve 2: publish 1 comes before it in every order"
    ),
    "a stream needs a wait for its own past": Wrong(
        {5: {2}, 9: {0, 6}, 16: {0, 2, 6, 10, 12}}, "op 9, resolve 2: seed 1 comes before it in every order"
    ),
    "the chain is forgotten too": Wrong(
        {5: {2}, 9: {0, 2, 6}, 16: {0, 2, 6, 12}}, "op 16, pull 3: publish 3 comes before it in every order"
    ),
}

KEEP_THE_CAPTURE = {
    "a wait behind the record": Wrong(inserted("wait(publish_ready)", _CHAIN), _PULL_RACES),
    "forward waits for the seed": Wrong(
        inserted("wait(publish_ready)", StreamWaitStream(stream="forward", on="schedule")), _PULL_RACES
    ),
    "the pull waits twice for one capture": Wrong(inserted(_PULL, wait("copy of lengths")), _PULL_RACES),
    "forward records again": Wrong(_recorded_again, "pull 2 on copy of lengths may read before seed 2 on schedule"),
    "schedule waits for the whole forward": Wrong(inserted("seed", _WHOLE_FORWARD), "makes pull 2 come after"),
    "the host synchronizes with the event": Wrong(inserted("seed", EventSync(event="publish_ready")), _HOST_STANDS),
    "two edges": Wrong(
        lambda ops: inserted("seed", _CHAIN)(_chained(ops)), "adds nothing: the program is as safe without it"
    ),
}

SEED_A_USED_ROW = {
    "the chain": Wrong(_chained, _SEED_LOSES),
    "the chain in front of the write": Wrong(inserted(_SEED, _CHAIN), _STASH_LOSES),
    "a wait for forward behind the first seed": Wrong(inserted(_SEED_STASH, _WHOLE_FORWARD), _SEED_LOSES),
    "a wait behind both seeds": Wrong(inserted("wait(publish_ready)", _WHOLE_FORWARD), _SEED_LOSES),
    "an event in front of the stash": Wrong(_event_in_front_of_the_stash, _STASH_LOSES),
    "the host synchronizes with forward": Wrong(inserted(_SEED, StreamSync(stream="forward")), _HOST_STANDS),
    "the wait and the chain": Wrong(
        lambda ops: inserted(_SEED, _WHOLE_FORWARD)(_chained(ops)), "adds nothing: the program is as safe without it"
    ),
}

_RAW, _WAW, _STASH = "RAW new_seq_lens_buf", "WAW new_seq_lens_buf", "WAW output_tokens_buf"

ANOTHER_ROW = {
    "as if it published first": Wrong(
        {"overwrite": {_STASH}, "chain": {_STASH}, "wait_stream": set()}, f"overwrite: {_RAW} is missing"
    ),
    "as if there were no barrier": Wrong(
        {"overwrite": {_RAW, _WAW, _STASH}, "chain": {_WAW, _STASH}, "wait_stream": set()},
        f"overwrite: {_STASH} is no race here",
    ),
    "the chain closes everything": Wrong(
        {"overwrite": {_RAW, _WAW}, "chain": set(), "wait_stream": set()}, f"chain: {_WAW} is missing"
    ),
    "the chain closes nothing": Wrong(
        {"overwrite": {_RAW, _WAW}, "chain": {_RAW, _WAW}, "wait_stream": set()}, f"chain: {_RAW} is no race here"
    ),
}
