"""The history of the fences, run: each preset and experiment decodes loads that show what is at stake, and is judged.

``subject`` says what is run, and builds it; ``loads`` draws its requests; ``watched`` looks at every token that comes
out of a forward, dropped ones too, ``unmasked`` judges them, and ``runner`` a whole run. ``recorded`` has the checker
look at one, ``timed`` tells what a step costs. ``tasks`` says all of this as data, which ``hands`` deals out to
processes of their own (``apart``, ``served``), since a racy run may bring its process down. ``presets`` asks for it,
and ``outcome`` says what came of a preset, and whether the history's table says the same.
"""

from refimpl.lessons.history.outcome import Outcome
from refimpl.lessons.history.presets import Plan, run_preset, run_presets

__all__ = ["Outcome", "Plan", "run_preset", "run_presets"]
