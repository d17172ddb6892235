"""What to predict before the chapter "draft_done" is run."""

from refimpl.lessons.predict import Question

who_is_covered = Question(
    name="who_is_covered",
    text="The plan stream copies what the verify needs. Then the forward stream waits for plan, and replays the "
    "verify. With this wait alone, what can go wrong?",
    options={
        "nothing": "The wait holds forward until plan is done. Who holds plan until the draft is done?",
        "the plan copies tokens that are not drafted yet": "The wait makes forward come behind plan. Plan comes behind "
        "nobody.",
        "the verify starts before its inputs are copied": "That is what the wait is there for.",
    },
    answer="the plan copies tokens that are not drafted yet",
    why="A join orders what comes behind it. What plan read before is read.",
)

which_is_finer = Question(
    name="which_is_finer",
    text="The host queues the draft on `forward`, records `draft_done` there, and calls `plan.wait_event(draft_done)`. "
    "Or it queues the draft and calls `plan.wait_stream(forward)`. Which of the two holds plan for less?",
    options={
        "the event": "It was recorded behind the draft. What else is in the stream's queue at that moment?",
        "wait_stream": "It waits for the whole queue, as it is at the call.",
        "neither": "Between the record and the wait nothing is queued on forward.",
    },
    answer="neither",
    why="`wait_stream` is a record at the tail and a wait. Here the tail is the draft, either way.",
)

what_overlaps = Question(
    name="what_overlaps",
    text="Plan waits for an event behind the draft, and the verify waits for plan. How much of the verify's "
    "preparation runs beside the draft's forward?",
    options={
        "all of it": "That is what a plan stream is for. What does the preparation wait for here?",
        "the part that reads no drafted token": "A wait holds a stream, and not one read of a kernel.",
        "none of it": "It begins when the draft ends, as it would on the forward stream.",
    },
    answer="none of it",
    why="So a second stream buys nothing there. To overlap, plan must wait for something earlier, and need nothing "
    "later.",
)

what_a_repair_hides = Question(
    name="what_a_repair_hides",
    text="Let plan copy the drafted tokens too early, on purpose, and copy them once more behind the join. In how many "
    "of the runs below, in unkind orders or with streams that stand still, is a token of the text wrong?",
    options={
        "none": "What was read too early is overwritten before the verify reads it.",
        "a few": "Only if something that was read too early is not copied again, or is used as an index before.",
        "most": "Every run copies too early in some step. What becomes of the copy is the point.",
    },
    answer="none",
    why="The race is there, and a repair hides it, as long as it reaches all that was read too early.",
)
