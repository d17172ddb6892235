"""What to predict before the chapter "verify_done removed" is run."""

from refimpl.lessons.predict import Question

which_hazard = Question(
    name="which_hazard",
    text="The forward in flight reads a request's row of `req_to_token`. The host is about to have cells of that row "
    "written for the next step. Which hazard does a fence between the two remove?",
    options={
        "RAW": "A read that comes before the write that it needs. Here the read is the earlier one.",
        "WAR": "A write that must not come before the read of what it overwrites.",
        "WAW": "Two writes in the wrong order. The forward only reads the table.",
    },
    answer="WAR",
    why="Write after read: the table may be overwritten once the forward has read it.",
)

which_may_go = Question(
    name="which_may_go",
    text="Two fences stand for this hazard: DFLASH's own, in front of each append, and the scheduler's barrier, at the "
    "top of each turn. Which of them may be left out, so that still no order is wrong?",
    options={
        "either one, but not both": "If they ordered the same pairs. One of them orders more than the other.",
        "DFLASH's own, and not the barrier": "The barrier stands in front of every write of the turn.",
        "the barrier, and not DFLASH's own": "Then some writes of the schedule stream have no fence in front of them.",
        "neither": "Two fences with one job are one too many, somewhere.",
    },
    answer="DFLASH's own, and not the barrier",
    why="An append stands behind both. A prefill into a row that changed hands stands behind the barrier alone.",
)

where_it_stands = Question(
    name="where_it_stands",
    text="The host no longer stands still in front of the launch. The GPU is the slower of the two. Where does the "
    "host stand still now?",
    options={
        "nowhere": "Then it would run ahead of the GPU without end; it needs each step's tokens to go on.",
        "at the barrier": "The barrier is a wait: the schedule stream is held, the call returns at once.",
        "behind the launch, for results": "It has launched step N+1, and wants the tokens of step N.",
    },
    answer="behind the launch, for results",
    why="At `copy_done`, with a forward queued: the GPU has work meanwhile.",
)

without_any = Question(
    name="without_any",
    text="Leave out both fences. In how many of the runs below, in unkind orders or with streams that stand still, is "
    "a token of the emitted text wrong?",
    options={
        "none": "The race is there, and something hides it.",
        "a few": "It takes a rare order to go wrong, but an adversary looks for it.",
        "about half": "So many runs compute wrong tokens. What becomes of these tokens is the point.",
    },
    answer="none",
    why="The only forward that meets a row with a new owner is a redundant one, and its tokens are dropped.",
)
