"""What the page on the label gate says in words holds for its programs, and the code that it prints runs."""

import pytest

from refimpl.lessons.label_gate import ADDED, SECOND, Gate, explorable, gate_program
from refimpl.lessons.label_gate_proof import finding, table
from refimpl.order import judge_fences
from refimpl.timeline import schedule
from tests.book.test_printed_code import block
from tests.conftest import ROOT

PAGE = (ROOT / "book" / "the-label-gate.md").read_text(encoding="utf-8")
OLD, NEW = "the labels without run-gpu", "the labels with run-gpu"


def test_a_copy_made_at_the_event_is_read_in_order_and_is_old() -> None:
    found = finding(Gate.FROZEN)
    assert (found.verdict, found.ordered, found.finds) == ("ok", True, (OLD,))


@pytest.mark.parametrize("gate", [Gate.AT_ONCE, Gate.PAUSE])
def test_a_live_read_without_an_edge_is_a_race_and_finds_either(gate: Gate) -> None:
    found = finding(gate)
    assert (found.verdict, found.ordered, found.finds) == ("race", False, (NEW, OLD))


def test_a_live_read_after_the_label_was_seen_is_in_order_and_new() -> None:
    found = finding(Gate.SEEN)
    assert (found.verdict, found.ordered, found.finds) == ("ok", True, (NEW,))


def test_the_live_gate_has_no_fence_too_many() -> None:
    assert judge_fences(gate_program(Gate.SEEN)).removable == ()


def test_the_pause_hides_the_race_in_the_drawn_order() -> None:
    ends = {span.name: span for span in schedule(gate_program(Gate.PAUSE)).spans}
    assert ends[ADDED].end_us <= ends[SECOND].start_us


def test_the_table_has_a_row_for_each_gate_and_the_timeline_a_variant() -> None:
    heads, rows = table()
    assert [row[0] for row in rows] == [str(gate) for gate in Gate]
    assert {len(row) for row in rows} == {len(heads)}
    assert [variant.label for variant in explorable().variants] == [str(gate) for gate in Gate]


def test_the_page_names_each_gate() -> None:
    assert all(f"*{gate}*" in PAGE.lower() for gate in Gate)


def test_the_printed_proof_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python", PAGE), "the-label-gate.md", "exec"), {})
    said = capsys.readouterr().out
    assert OLD in said
    assert NEW in said
    assert "happens before" in said
