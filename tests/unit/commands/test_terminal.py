"""A bar beneath text that streams to the same terminal: it comes and goes, and takes nothing of the text along."""

import io
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.commands import terminal
from refimpl.commands.terminal import BACK, BENEATH, ERASE_BELOW, StatusLine, bar, column_after

COLUMNS = 10


class Screen(io.StringIO):
    """What was written to a terminal, by stdout and stderr alike."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    both = Screen()
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    # Of the module's own sys: pytest puts its streams back into the real one before the test begins.
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stdout=both, stderr=both))
    return both


def test_what_is_drawn_beneath_text_is_erased_before_more_text(screen: Screen) -> None:
    status = StatusLine(beneath_text=True)
    for text in ("ab", "c\n", "d"):
        status.print_text(text)
        status.draw("[#] bar")
    status.erase()
    drawn = f"{BENEATH}[#] bar{BACK}{ERASE_BELOW}"
    assert screen.getvalue() == f"ab{drawn}c\n{drawn}d{drawn}"


def test_nothing_is_drawn_while_the_cursor_hangs_behind_a_full_line(screen: Screen) -> None:
    status = StatusLine(beneath_text=True)
    status.print_text("x" * COLUMNS)
    status.draw("bar")
    assert screen.getvalue() == "x" * COLUMNS
    status.print_text("x")
    status.draw("bar")
    assert BENEATH in screen.getvalue()


def test_a_bar_never_reaches_the_last_column(screen: Screen) -> None:
    StatusLine(beneath_text=False).draw("b" * 50)
    assert screen.getvalue().count("b") == COLUMNS - 1


def test_words_that_stand_there_are_not_drawn_again_at_once(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    status = StatusLine(beneath_text=False)
    status.draw("one")
    status.draw("two")
    now[0] += 1
    status.draw("six")
    assert re.findall("one|two|six", screen.getvalue()) == ["one", "six"]


def test_text_cannot_command_a_terminal_and_is_as_it_is_elsewhere(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    StatusLine(beneath_text=True).print_text("a\x1b[2J\tb\n")
    assert screen.getvalue() == "a\\x1b[2J\tb\n"
    file = io.StringIO()
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stdout=file, stderr=screen))
    StatusLine(beneath_text=True).print_text("a\x1b[2J")
    assert file.getvalue() == "a\x1b[2J"


def test_nothing_is_drawn_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stdout=written, stderr=written))
    status = StatusLine(beneath_text=False)
    status.draw("bar")
    status.say("words")
    status.erase()
    assert written.getvalue() == ""


@given(st.text(alphabet="ab日\u0301\t\n", max_size=40), st.text(alphabet="ab日\u0301\t\n", max_size=40))
def test_where_the_cursor_stands_does_not_depend_on_how_text_is_cut(first: str, second: str) -> None:
    whole = column_after(0, first + second, COLUMNS)
    assert whole == column_after(column_after(0, first, COLUMNS), second, COLUMNS)
    assert 0 <= whole <= COLUMNS


@pytest.mark.parametrize(("done", "of", "full"), [(0, 64, 0), (32, 64, 12), (64, 64, 24), (0, 0, 24)])
def test_a_bar_is_as_full_as_the_work_is_done(done: int, of: int, full: int) -> None:
    assert bar(done, of, 1.0).count("#") == full
