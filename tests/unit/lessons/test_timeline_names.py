"""What memory is called in a recorded turn of the engine."""

import pytest

from refimpl import Engine
from refimpl.lessons.timelines.naming import _outputs, base


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("copy_done 1", "copy_done"),
        ("seq_lens of turn 4", "seq_lens"),
        ("seq_lens of turn 4 (2)", "seq_lens"),
        ("new_seq_lens (2)", "new_seq_lens"),
        ("new_seq_lens_buf", "new_seq_lens_buf"),
    ],
)
def test_a_bare_name_has_no_number(name: str, bare: str) -> None:
    assert base(name) == bare


@pytest.mark.parametrize(
    ("draft", "kept"), [("dflash", "draft.draft_tokens 1"), ("mtp", "draft_extend.front_hidden 1")]
)
def test_an_input_that_a_graph_hands_on_keeps_the_name_of_the_input(draft: str, kept: str) -> None:
    engine = Engine("nano", draft, "sim", max_running_requests=1, max_context=24)
    names = {name for _, name in _outputs(engine.scheduler.worker)}
    assert kept in names
    assert "draft.bonus_tokens 1" not in names
    assert "verify.bonus_tokens 1" in names
