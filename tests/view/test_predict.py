"""A timeline that asks first: what may be asked, and that nothing made in Python gives the answer away."""

import json
from typing import Any

import pytest

from refimpl.program import Explorable, UserError
from refimpl.view import Timeline, first_frame, page
from refimpl.view.predict import BUILT_IN, question_of
from refimpl.view.spec import spec_of
from tests.view.test_widget import BOTH, RACY, STUCK

CHOICES = {"They race": {"races": True}, "They are ordered": {"races": False}}
SPOILERS = ("RAW", "hazard", "race)", "unordered", "Deadlock")


def drawn(picture: str) -> str:
    """A picture without its style sheet, which names what it could draw."""
    return picture[: picture.index("<style>")] + picture[picture.index("</style>") :]


@pytest.mark.parametrize("predict", [True, *BUILT_IN])
def test_neither_picture_nor_line_answers_before_the_guess(predict: bool | str) -> None:
    data, _ = Timeline(BOTH, alt="It races: RAW.", predict=predict)._repr_mimebundle_()
    told = drawn(data["image/svg+xml"]) + data["text/plain"]
    assert not [word for word in SPOILERS if word in told]
    assert "Predict first" in told
    assert data["text/plain"] == "Timeline('both': host, schedule, forward; predict first)"


def test_a_question_about_time_shows_no_times() -> None:
    assert ">verify<" in first_frame({**spec_of(BOTH), "predict": "race"})
    assert ">verify<" not in first_frame({**spec_of(BOTH), "predict": "step"})
    asked = {
        "question": "Who holds the host?",
        "choices": {"verify": {"blocked": "verify"}, "none": {"blocked": False}},
    }
    assert ">verify<" not in first_frame({**spec_of(BOTH), "predict": asked})


def test_a_program_that_never_ends_is_asked_about_like_any_other() -> None:
    assert "Deadlock" not in drawn(first_frame({**spec_of(STUCK), "predict": True}))


def test_the_spec_holds_the_question_and_no_answer() -> None:
    assert Timeline(BOTH, predict=True).spec["predict"] == {"about": "race"}
    spec = Timeline(RACY, predict={"question": "Who is first?", "choices": CHOICES}).spec
    assert spec["predict"]["choices"][0] == {"text": "They race", "holds": {"races": True}}
    assert json.dumps(spec), "the choices are a list, since a saved notebook sorts the keys of an object"


def test_an_explorable_can_bring_its_question_and_a_page_keeps_the_claim_back() -> None:
    asking = Explorable(
        id="both", title="Who waits", words="It races.", variants=BOTH.variants, params=BOTH.params, predict="race"
    )
    assert spec_of(asking)["predict"] == {"about": "race"}
    assert "<p>It races.</p>" not in page(asking)
    assert "predict" not in spec_of(BOTH)
    assert "predict" not in Timeline(asking, predict=False).spec


def test_the_json_of_a_timeline_of_a_program_is_drawn_again() -> None:
    spec = Timeline(RACY, caption="Two streams.", predict=True).spec
    assert drawn(first_frame(spec)) == drawn(first_frame({**spec_of(RACY), "predict": True}))


@pytest.mark.parametrize(
    ("predict", "says"),
    [
        ("weather", "cannot ask about 'weather'; it can about race, step, blocked, waits, fastest"),
        ({"about": "race", "answer": "yes"}, "has about, variant, question, choices"),
        ({}, "has about, variant, question, choices"),
        ({"variant": "nope"}, "asks about variant 'nope'; there are none, wait"),
        ({"choices": CHOICES}, "needs a question"),
        ({"question": "?", "choices": {"one": {"races": True}}}, "two choices or more"),
        ({"question": "?", "choices": {"a": {}, "b": {"races": True}}}, "what it claims"),
        ({"question": "?", "choices": {"a": {"right": True}, "b": {"races": True}}}, "of races, race, stuck"),
        ({"question": "?", "choices": "ab"}, "two choices or more"),
    ],
)
def test_what_nothing_could_answer_is_one_sentence(predict: Any, says: str) -> None:
    with pytest.raises(UserError, match="field 'predict'") as caught:
        Timeline(BOTH, predict=predict)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_variant_is_no_race_for_the_fastest() -> None:
    with pytest.raises(UserError, match="there is one variant"):
        Timeline(RACY, predict="fastest")


def test_no_question_is_none() -> None:
    assert question_of(False, ()) is None
