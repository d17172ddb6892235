"""The table of nine: its words, what a pair of ops counts for, and engines of one cell that must agree."""

import pytest

from refimpl.fences import Expect, preset
from refimpl.lessons import publish_matrix as table
from refimpl.lessons.publish_matrix import EXPECTED, FIXES, PLACES, as_markdown, preset_names, relay_hazards
from refimpl.order import check
from refimpl.program import Buffer, Launch, Program, Range, Stream


def test_every_cell_stands_in_the_history_and_a_race_in_the_relay_is_expected_there() -> None:
    for (place, fix), hazards in EXPECTED.items():
        for name in preset_names(place, fix):
            assert not hazards or preset(name).expect is not Expect.RIGHT


def test_the_table_has_a_row_a_place_and_the_hazards_of_each_fix() -> None:
    lines = as_markdown(EXPECTED).splitlines()
    assert len(lines) == 2 + len(PLACES)
    assert len(lines[0].split("|")) == len(FIXES) + 3
    assert "RAW + WAW `new_seq_lens_buf`, WAW `stash`" in lines[-1]
    assert lines[2].endswith("WAW `stash` | WAW `stash` | none |")


def test_a_pair_of_ops_counts_for_each_buffer_of_the_relay_that_both_write() -> None:
    rows = tuple(Range(buffer, 0, 8) for buffer in ("output_tokens_buf", "hidden_states", "elsewhere"))
    ops = tuple(Launch(stream=stream, name="stash", writes=rows) for stream in ("forward", "schedule"))
    program = Program(
        ops=ops,
        streams={"forward": Stream(), "schedule": Stream()},
        buffers={one.buf: Buffer(8) for one in rows},
    )
    assert relay_hazards(program, check(program).races) == {table.WAW_STASH}


def test_engines_of_one_cell_that_differ_are_an_error_that_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def recorded(names: list[str]) -> dict[str, list[str]]:
        return {name: ["WAW stash"] if name.endswith("bare-eagle") else [] for name in names}

    monkeypatch.setattr(table, "_recorded_apart", recorded)
    with pytest.raises(RuntimeError, match="seed-overwrite-bare-eagle: WAW stash; seed-overwrite-bare-dflash: none"):
        table.matrix()
