"""What to predict before the chapter "Wait or synchronize" is run. G is the step's time on the GPU, H the host's
part."""

from refimpl.lessons.predict import Question

step_under_synchronize = Question(
    name="step_under_synchronize",
    text="Under `synchronize`, how long is one step of the loop?",
    options={
        "max(G, H)": "That is a loop whose host and GPU work at the same time. Here the host stands still meanwhile.",
        "G + H": "First the GPU works and the host stands still, then the host works and the GPU has nothing to do.",
        "G": "Only if building the next batch cost nothing.",
    },
    answer="G + H",
    why="The read is submitted only after the forward has executed, and the next forward comes after that read.",
)

step_under_wait = Question(
    name="step_under_wait",
    text="And under `wait`, when H is smaller than G?",
    options={
        "G": "The host is done building before the GPU is done, so the next step is queued when this one ends.",
        "G + H": "That would be so if the host stood still. A wait is queued on a stream; the call returns at once.",
        "G + H / 2": "Nothing here shares a resource by halves: either the two overlap or they do not.",
    },
    answer="G",
    why="The longer of the two parts sets the pace: max(G, H).",
)

stale_without_a_fence = Question(
    name="stale_without_a_fence",
    text="With neither line, how many steps start from the lengths of the wrong step?",
    options={
        "none in practice": "It is a small read, but nothing delays it: an idle schedule stream reads at once.",
        "a few, now and then": "Races are often rare. This one is not: the early reader has nothing to wait for.",
        "all but the first": "On an idle stream the early reader always wins.",
    },
    answer="all but the first",
    why="The forward takes milliseconds and writes at its end; the read is queued microseconds after its launch.",
)

where_it_loses_more = Question(
    name="where_it_loses_more",
    text="EAGLE records `verify_done` behind the verify, and drafts on behind it; DFLASH records it at the end of its "
    "step. The GPU is the slower part. In which engine does `synchronize` lose more of what overlapping gains?",
    options={
        "EAGLE": "Its GPU still works while the host, let go, builds the next batch.",
        "DFLASH": "When the host is let go, its GPU has nothing left to do.",
        "the same in both": "It is one line in both, but it stands at different places of the step.",
    },
    answer="DFLASH",
    why="A host that is let go early has the rest of the step to catch up.",
)
