"""What to predict before the page "The simulated device" is run."""

from refimpl.lessons.predict import Question

without_a_fence = Question(
    name="without_a_fence",
    text="`step()` has no fence. What does it print when it runs once, with nothing else going on?",
    options={
        "[0, 0, 0, 0]": "The read would have to overtake the write. The host calls the write first.",
        "[7, 7, 7, 7]": "The write is over before the host has even called the read. That is luck, not order.",
        "another value in each run": "Some of the tools below do that on purpose. By default `sim` follows a clock.",
    },
    answer="[7, 7, 7, 7]",
    why="By default `sim` follows a clock, on which a small write takes less time than the host's next call.",
)

how_often = Question(
    name="how_often",
    text="Of 200 legal orders drawn at random, how many of the step with the fence give a wrong value?",
    options={
        "a few": "A legal order keeps every fence. Then the write always comes first.",
        "none": "No order that the rules allow puts the read before the write.",
        "as many as without": "The wait would have to order nothing.",
    },
    answer="none",
    why="The wait comes after the record, and the read after the wait: no legal order breaks this chain.",
)
