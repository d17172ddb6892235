"""The history of the fences, run: each preset and experiment decodes loads that show what is at stake, and is judged.

``subject`` says what is run, and builds it; ``loads`` draws its requests; ``watched`` looks at every token that comes
out of a forward, dropped ones too, and ``runner`` judges a run. ``recorded`` has the checker look at one, ``timed`` tells
what a step costs. ``tasks`` deals all of this out to ``apart``, processes of their own, since a racy run may bring its
process down; ``outcome`` says what came of a preset, and whether the history's table says the same.
"""
