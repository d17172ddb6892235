"""What to predict before the chapter "read_done in CUDA graphs" is run."""

from refimpl.lessons.predict import Question

what_the_graph_reads = Question(
    name="what_the_graph_reads",
    text="A graph holds two copies: one from `snapshot`, one from `table`. `snapshot` was filled from `table` before "
    "the replay, and `table` is overwritten before the replay. What does the replay copy?",
    options={
        "the old row twice": "That would be so if a graph kept values. It keeps addresses.",
        "the new row twice": "`snapshot` is another piece of memory, and nobody has overwritten it.",
        "the old row from `snapshot`, the new one from `table`": "A replay reads, at the addresses of the capture, "
        "what lies there when it runs.",
    },
    answer="the old row from `snapshot`, the new one from `table`",
    why="A captured kernel keeps its addresses. What a replay reads is old or new by the place it reads from.",
)

text_under_the_race = Question(
    name="text_under_the_race",
    text="The kernel that builds the page table moves into the graph, and reads the live table there. The event stays "
    "behind `load_batch`, so a row can go to its next owner before the replay reads it. What does the engine emit?",
    options={
        "garbage in most runs": "The row must change hands between the event and the replay, and that is seldom.",
        "a wrong token now and then": "The tokens that come out wrong belong to nobody who still wants them.",
        "the right text": "The one forward that can meet a row with a new owner is that of a request that has ended.",
    },
    answer="the right text",
    why="Its tokens are dropped. So no test of the text finds this race.",
)

which_replay = Question(
    name="which_replay",
    text="A graph has a node that records `read_done`. The host launches replay N, launches replay N+1, and then calls "
    "`schedule.wait_event(read_done)`. What does schedule wait for?",
    options={
        "the node in replay N": "The launch of replay N+1 has armed the event anew, and what it held is gone.",
        "the node in replay N+1": "A wait takes what the event holds at the call.",
        "the end of replay N+1": "The event stands where its node stands, not where the graph ends.",
    },
    answer="the node in replay N+1",
    why="Each launch arms the event again, when the host calls it, long before the node runs.",
)

what_the_event_gains = Question(
    name="what_the_event_gains",
    text="The barrier waits for `read_done` instead of the whole forward. The host works for H in a step, and the "
    "device work that schedule queues takes S. Both are shorter than the forward. By how much is a step shorter?",
    options={
        "about the forward": "The next forward still waits for this one: they share a stream.",
        "about H": "A wait is queued on a stream. The host never stood still for it, whichever event it names.",
        "about S": "Behind the coarse barrier schedule's kernels run while forward is idle; now they run beside it.",
    },
    answer="about S",
    why="The event moves S, and nothing else, from behind the forward to beside it.",
)
