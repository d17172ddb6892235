"""What to predict before the chapter "All of history in one table" is read."""

from refimpl.lessons.predict import Question

how_many_are_right = Question(
    name="how_many_are_right",
    text="Each moment of this history was argued, reviewed, and tested. Of all of them, how many leave no two accesses "
    "of the recorded steps without an order?",
    options={
        "nearly all": "Then most of these pull requests would have been about speed alone.",
        "fewer than half": "Many of the others are right in every token that they emit, all the same.",
        "none before the last": "Some were right for months, by a fence that was about something else.",
    },
    answer="fewer than half",
    why="The rest have a race; more often than not something hides it.",
)

what_tests_see = Question(
    name="what_tests_see",
    text="A moment has a race. A thousand runs in unkind orders emit no wrong token, and accept as many drafts as the "
    "control. What do you know?",
    options={
        "the race is a false alarm": "The checker speaks of orders that the rules allow; some of them were run.",
        "something hides it from emitted tokens": "Whether it computed anything wrong you have not looked at yet.",
        "it is too rare to matter": "In about half of these runs a forward may have computed wrong tokens.",
    },
    answer="something hides it from emitted tokens",
    why="Read the tokens that were dropped as well, and the mask is off.",
)

what_can_go = Question(
    name="what_can_go",
    text="Of the fences of the most recent engine, DFLASH's, how many may be left out, one at a time, with no race?",
    options={
        "none": "Each fence that was one too many has been found, or so it seems.",
        "one": "It would be the one that an event made finer, if the coarse one were still there.",
        "about half": "So it was in June, when the coarse barrier ordered all that two other fences ordered.",
    },
    answer="none",
    why="Each of them lets a race in when it goes: the cell of section 7 tries every one.",
)
