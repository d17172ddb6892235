"""What to predict before the chapter "What broke next" is run."""

from refimpl.lessons.predict import Question

what_failed = Question(
    name="what_failed",
    text="Five changes, five arguments, each sound where it was made. What made most of them fail later?",
    options={
        "a mistake in the argument": "Each of them holds, for the program that its author had in mind.",
        "a rule of CUDA that changed": "The rules of streams and events have been the same for many years.",
        "another change, to a reader or to a fence that it stood on": "It was right by something that it did not name.",
    },
    answer="another change, to a reader or to a fence that it stood on",
    why="An argument about an order is about all who touch the buffer, named or not.",
)

what_finer_lost = Question(
    name="what_finer_lost",
    text="For seeds of the relay nobody had made a fence; the scheduler's barrier, made for another table, waited for "
    "the whole forward and so for its stash. Then the barrier got an event behind the last read of that table. No line "
    "about seeds changed. What became of them?",
    options={
        "nothing": "Then something else would have to come between the stash and the seed.",
        "they race": "What stands behind the new event was ordered by the coarse barrier alone.",
        "they deadlock": "Nobody waits for a thing that comes later.",
    },
    answer="they race",
    why="The stash comes behind the event, and seeds may now come before it.",
)

one_item = Question(
    name="one_item",
    text="Somebody adds one `.item()` on the schedule stream, behind a coarse barrier. What does the checker say?",
    options={
        "a race": "The host reads behind the copy that it waits for.",
        "a deadlock": "The host waits for work that is queued already.",
        "nothing": "No order is wrong. The host stands still for a whole forward all the same.",
    },
    answer="nothing",
    why="It is as safe as it is slow: a question for the clock, and not for the checker.",
)
