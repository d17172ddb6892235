"""Texts that come interleaved are printed one after the other."""

import pytest

from refimpl.commands.answers import Answers
from refimpl.engine import Completion, FinishReason, Piece


def piece(index: int, text: str, last: bool = False) -> Piece:
    """A step's text, one token a character."""
    ids = [ord(character) for character in text]
    completion = Completion(text, ids, FinishReason.LENGTH, 1, {len(ids): 1}) if last else None
    return Piece(index, text, ids, completion and completion.finish_reason, completion)


def test_the_first_text_is_printed_as_it_comes_and_the_others_in_their_turn() -> None:
    printed: list[str] = []
    answers = Answers(["p", "q", "r"], printed.append)
    for index, text, last in [(2, "c", True), (0, "a", False), (1, "b", False)]:
        answers.take(piece(index, text, last))
    assert "".join(printed) == "== prompt 1 of 3: p\na"
    answers.take(piece(0, "A\n", True))
    assert "".join(printed) == "== prompt 1 of 3: p\naA\n== prompt 2 of 3: q\nb"
    answers.take(piece(1, "B", True))
    answers.end_line()
    assert "".join(printed) == "== prompt 1 of 3: p\naA\n== prompt 2 of 3: q\nbB\n== prompt 3 of 3: r\nc\n"


def test_one_text_has_no_name_and_no_line_that_nobody_wrote() -> None:
    printed: list[str] = []
    answers = Answers(["p"], printed.append)
    answers.take(piece(0, "", last=True))
    answers.end_line()
    assert printed == []


def test_a_name_cannot_command_a_terminal_and_stays_short() -> None:
    printed: list[str] = []
    Answers(["a\x1b[2J\n", "b"], printed.append)
    Answers(["x" * 100, "b"], printed.append)
    assert printed[0] == "== prompt 1 of 2: a\\x1b[2J\\n\n"
    assert printed[1] == f"== prompt 1 of 2: {'x' * 59}…\n"


@pytest.mark.parametrize(("done", "most"), [((), 20), ((0,), 13), ((0, 1), 6)])
def test_a_text_that_ended_asks_for_no_more(done: tuple[int, ...], most: int) -> None:
    answers = Answers(["p", "q"], None)
    for index in done:
        answers.take(piece(index, "abc", last=True))
    assert answers.tokens == 3 * len(done)
    assert answers.tokens_at_most(10) == most
