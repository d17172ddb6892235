"""The timeline of the engine's page is a recording of the engine, and says of each variant what is true of it."""

import pytest
import torch

from refimpl.lessons.record_engine import SHOWN, TOLD, explorable, record_here
from refimpl.order import check
from refimpl.program import EventRecord, EventSync, Explorable, HostRead, Program, Variant, Verdict, label

HAZARDS = {"no-publish": ("RAW", "new_seq_lens_buf"), "no-barrier": ("WAR", "req_to_token")}


@pytest.fixture(scope="module")
def recorded() -> Explorable:
    torch.set_num_threads(1)
    return explorable({told.id: record_here(told) for told in TOLD})


def program(of: Explorable, id: str) -> Program:
    variant: Variant = of.variant(id)
    return variant.program


@pytest.mark.parametrize("id", [told.id for told in TOLD if told.id not in HAZARDS])
def test_with_its_fences_the_engine_has_no_race(recorded: Explorable, id: str) -> None:
    assert check(program(recorded, id)).verdict is Verdict.OK


@pytest.mark.parametrize("id", HAZARDS)
def test_without_a_fence_it_has_the_race_that_the_fence_removes(recorded: Explorable, id: str) -> None:
    races = check(program(recorded, id)).races
    assert {(race.kind, race.bytes.buf) for race in races} == {HAZARDS[id]}


def test_every_turn_has_the_steps_that_the_page_tells(recorded: Explorable) -> None:
    names = [label(op) for op in program(recorded, "upstream").ops]
    told = ("prepare_for_decode", "resolve_seq_lens", "load_batch draft", "draft", "load_batch verify", "verify")
    told += ("publish", "draft_extend", "stash", "copy_to_cpu")
    for turn in range(1, SHOWN + 1):
        places = [names.index(f"{name} {turn}") for name in told]
        assert places == sorted(places)


def test_the_overlapped_loop_reads_results_one_step_late_and_the_control_at_once(recorded: Explorable) -> None:
    def lag(id: str) -> set[int]:
        reads = [op for op in program(recorded, id).ops if isinstance(op, HostRead)]
        return {(op.step or 0) - int(op.name.rpartition(" ")[2]) for op in reads}

    assert lag("upstream") == {1}
    assert lag("normal") == {0}


def test_the_host_waits_for_copy_done_alone(recorded: Explorable) -> None:
    synchronized = {op.event for op in program(recorded, "upstream").ops if isinstance(op, EventSync)}
    assert synchronized == {"copy_done 0", "copy_done 1"}


def test_a_coarse_barrier_has_no_read_done(recorded: Explorable) -> None:
    def events(id: str) -> set[str]:
        return {op.event for op in program(recorded, id).ops if isinstance(op, EventRecord)}

    assert events("upstream") - events("coarse") == {"read_done"}


def test_the_reader_may_drag_every_graph_of_a_step(recorded: Explorable) -> None:
    assert list(recorded.params) == ["host", "draft", "verify", "draft_extend"]
