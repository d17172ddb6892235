"""Questions keep their answer; guesses are compared, or said not to have been made."""

import re
from html.parser import HTMLParser

import pytest

from refimpl.lessons import predict
from refimpl.program import UserError

QUESTION = predict.Question(
    text="Does `wait` hold the <host>?",
    options={"yes": "It returns at once.", "no": "The stream is held.", "it depends": "On nothing."},
    answer="no",
    why="It is queued.",
    name="holds_the_host",
)


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "input":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.inside.setdefault(tag, []).append(data)


def test_a_page_needs_no_script_and_has_no_id_to_clash() -> None:
    page = Page(QUESTION._repr_html_())
    assert {"script", "iframe", "img", "link"}.isdisjoint(tag for tag, _ in page.tags)
    assert not any("id" in attrs or any(name.startswith("on") for name in attrs) for _, attrs in page.tags)
    assert "http" not in QUESTION._repr_html_()
    assert "url(" not in QUESTION._repr_html_()


def test_the_answer_stands_in_a_fold_that_only_a_choice_shows() -> None:
    html = QUESTION._repr_html_()
    assert ".so-q details,.so-q .so-said{display:none}" in html
    assert ".so-q:has(input:checked) details{display:block}" in html
    page = Page(html)
    assert not any(tag == "details" and "open" in attrs for tag, attrs in page.tags)
    assert not any("checked" in attrs for _, attrs in page.tags)
    assert "It is queued." in "".join(page.inside["details"])
    outside = re.sub(r"<details>.*</details>|<div class=\"so-print\" hidden>.*</div>", "", html, flags=re.S)
    assert "It is queued." not in outside


def test_options_are_native_radio_buttons_in_one_named_group_of_their_own_form() -> None:
    page = Page(QUESTION._repr_html_())
    radios = [attrs for tag, attrs in page.tags if tag == "input"]
    assert [radio["type"] for radio in radios] == ["radio"] * 3
    assert {radio["name"] for radio in radios} == {"holds_the_host"}
    assert [attrs for tag, attrs in page.tags if tag == "form"] == [{"class": "so-q", "method": "dialog"}]
    assert [tag for tag, _ in page.tags].count("label") == 3


def test_words_are_escaped_and_backticks_are_code() -> None:
    assert "Does <code>wait</code> hold the &lt;host&gt;?" in QUESTION._repr_html_()


def test_the_same_question_gives_the_same_bytes() -> None:
    assert QUESTION._repr_html_() == predict.Question(**vars(QUESTION))._repr_html_()


def test_the_text_twin_asks_and_does_not_tell() -> None:
    assert repr(QUESTION).startswith("Predict: Does wait hold the <host>?\n  a. yes\n  b. no\n  c. it depends\n")
    assert "queued" not in repr(QUESTION)


@pytest.mark.parametrize("choice", ["b", "B", "no"])
def test_commit_takes_a_letter_or_the_words(choice: str) -> None:
    assert repr(QUESTION.commit(choice)).splitlines() == [
        "You chose: no. Right. The stream is held.",
        "Answer: b. no. It is queued.",
    ]


@pytest.mark.parametrize("choice", ["d", "", "perhaps", "ab"])
def test_commit_to_no_option_says_which_there_are(choice: str) -> None:
    assert repr(QUESTION.commit(choice)) == f"{choice!r} is no option: choose one of a, b, c."


def test_a_question_is_checked_when_it_is_made() -> None:
    with pytest.raises(UserError, match="'perhaps' is none of yes, no"):
        predict.Question("?", {"yes": "", "no": ""}, "perhaps", "", "q")
    with pytest.raises(UserError, match="has 1 options: give it 2 to 6"):
        predict.Question("?", {"yes": ""}, "yes", "", "q")


def test_each_option_that_a_question_may_have_has_a_rule_that_shows_its_sentence() -> None:
    html = QUESTION._repr_html_()
    for k in range(1, len(predict.LETTERS) + 1):
        assert f".so-q:has(label:nth-of-type({k}) input:checked) .so-said:nth-of-type({k})" in html


def test_no_guess_is_said_in_one_sentence_and_does_not_fail() -> None:
    card = predict.guess(wait_ms=None).compare({"wait_ms": 4.9})
    assert repr(card).splitlines()[0] == "No guess was made: type numbers into guess(…) and run again."
    assert "4.9" in repr(card)
    assert "4.9" in card._repr_html_()


@pytest.mark.parametrize(
    ("guessed", "measured", "factor"),
    [
        (10.0, 5.0, "2.00 × too high"),
        (5.0, 10.0, "2.00 × too low"),
        (5.0, 5.001, "1.00 ×"),
        (0.0, 5.0, "off by 5"),
        (0, 0.0, "exact"),
        (1e6, 1.0, "1000000 × too high"),
    ],
)
def test_a_guess_stands_beside_what_was_measured_with_the_factor_between(
    guessed: float, measured: float, factor: str
) -> None:
    card = predict.guess(step_ms=guessed).compare({"step_ms": measured})
    assert repr(card).splitlines()[1].endswith(factor)
    assert f"<td>{factor}</td>" in card._repr_html_()


def test_names_that_only_one_side_has_are_shown() -> None:
    rows = repr(predict.guess(wait_ms=1).compare({"stale_steps": 3})).splitlines()
    assert rows[1].split("  ")[0] == "wait (ms)"
    assert "not measured" in rows[1]
    assert "none" in rows[2]


@pytest.mark.parametrize("value", ["5", True, float("nan"), float("inf")])
def test_a_guess_is_a_number(value: object) -> None:
    with pytest.raises(UserError, match="write a number, or None"):
        predict.guess(wait_ms=value)  # type: ignore[arg-type]
