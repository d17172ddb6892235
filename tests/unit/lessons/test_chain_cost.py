"""The chain's cost in words and in a picture: each ratio with its control."""

from refimpl.lessons.chain_cost import chain_pairs, pairs_markdown, pairs_picture, pairs_words
from refimpl.lessons.history_timing.rows import PairRow


def row(again: bool, ratio: float) -> PairRow:
    preset = "seed-overwrite-barrier-eagle" if again else "seed-chain-barrier-eagle"
    return PairRow(
        model="8b",
        draft="eagle",
        batch=16,
        preset=preset,
        control="seed-overwrite-barrier-eagle",
        again=again,
        added_host_ms=0.0,
        added_schedule_ms=0.0,
        item=False,
        ratio=ratio,
        ratio_p10=ratio - 0.01,
        ratio_p90=ratio + 0.02,
        difference_us=3.25,
        rounds=6,
    )


ROWS = [row(False, 1.0005), row(True, 0.9998)]


def test_the_control_of_a_chained_record_is_the_plain_one_twice() -> None:
    (plain, chained, again), (first, control) = chain_pairs("eagle")
    assert (first.case, first.control) == (chained, plain)
    assert (control.case, control.control) == (again, plain)
    assert plain.preset == again.preset != chained.preset


def test_each_ratio_is_told_with_its_spread_and_its_control() -> None:
    for told in (" ".join(pairs_words(ROWS).split()), pairs_markdown(ROWS), pairs_picture(ROWS, "a device").alt):
        assert "1.0005 (0.9905 to 1.0205)" in told
        assert "0.9998 (0.9898 to 1.0198)" in told
        assert "the control" in told


def test_what_was_not_measured_is_said_so() -> None:
    assert pairs_markdown([]) == "Not measured in this version."
