"""What to predict before the chapter "Chained publish" is run."""

from refimpl.lessons.predict import Question

what_the_record_holds = Question(
    name="what_the_record_holds",
    text="Forward publishes request A's length and records `publish_ready`. Before anybody waits for it, schedule "
    "publishes B's length and records the same event. Then schedule waits for `publish_ready` and reads both lengths. "
    "Which of them does the wait cover?",
    options={
        "A's and B's": "That would be so if an event collected what is recorded in it. It holds one capture.",
        "B's alone": "The second record replaced the first capture by one of the schedule stream.",
        "A's alone": "A wait takes what the event holds at the call, and that is the later record.",
    },
    answer="B's alone",
    why="A record takes the clock of the stream that it is recorded on, and what the event held before is gone.",
)

what_the_chain_covers = Question(
    name="what_the_chain_covers",
    text="Now schedule waits for `publish_ready` between its write of B's length and its record. B has the row of a "
    "request that ended, and a redundant forward in flight still publishes and stashes into that row. What of B's is "
    "safe?",
    options={
        "its length and its token": "The wait stands behind the write of the length, and the stash behind the record.",
        "its length alone": "The wait would have to stand in front of the write. It stands behind it.",
        "neither": "The chain orders readers of the event. B's rows are written, and nobody reads them in between.",
    },
    answer="neither",
    why="Both are written before the chained wait or beside it, so the redundant forward may come last and overwrite "
    "them.",
)

what_the_chain_costs = Question(
    name="what_the_chain_costs",
    text="In steady state nobody seeds: forward alone publishes, and it waits for its own last record in front of each "
    "new one. By how much is a step longer?",
    options={
        "not measurably": "Work of one stream is in order already: the wait is over when the stream gets there.",
        "by the time of a forward": "That would be a wait for a later point of another stream.",
        "by a synchronization of the host": "A wait is queued. The host goes on.",
    },
    answer="not measurably",
    why="A stream that waits for its own past waits for nothing.",
)
