"""The timelines of the engine are recordings of it, and say of each preset what is true of it."""

import json
import subprocess
import sys

import pytest
import torch

from refimpl.fences import Expect, Load, preset
from refimpl.lessons.record_engine import PRESETS
from refimpl.lessons.timelines.steps import SHOWN, explorable, label_of, recorded_steps
from refimpl.order import check
from refimpl.program import EventRecord, EventSync, Explorable, HostRead, Program, UserError, Verdict, label

MOST_BYTES = 120_000
HAZARDS = {"no-publish": ("RAW", "new_seq_lens_buf"), "no-barrier": ("WAR", "req_to_token")}


@pytest.fixture(scope="module")
def recorded() -> Explorable:
    torch.set_num_threads(1)
    return explorable({name: recorded_steps(preset(name), Load.STEADY) for name in PRESETS}, "latest")


def program(of: Explorable, id: str) -> Program:
    return of.variant(id).program


@pytest.mark.parametrize("id", [name for name in PRESETS if name not in HAZARDS])
def test_with_its_fences_the_engine_has_no_race(recorded: Explorable, id: str) -> None:
    assert check(program(recorded, id)).verdict is Verdict.OK


@pytest.mark.parametrize("id", HAZARDS)
def test_without_a_fence_it_has_the_race_that_the_fence_removes(recorded: Explorable, id: str) -> None:
    races = check(program(recorded, id)).races
    assert {(race.kind, race.bytes.buf) for race in races} == {HAZARDS[id]}


def test_every_turn_has_the_steps_that_the_page_tells(recorded: Explorable) -> None:
    names = [label(op) for op in program(recorded, "latest").ops]
    told = ("prepare_for_decode", "resolve_seq_lens", "load_batch draft", "draft", "load_batch verify", "verify")
    told += ("publish", "draft_extend", "stash", "copy_to_cpu")
    for turn in range(1, SHOWN + 1):
        places = [names.index(f"{name} {turn}") for name in told]
        assert places == sorted(places)


def test_the_overlapped_loop_reads_results_one_step_late_and_the_control_at_once(recorded: Explorable) -> None:
    def lag(id: str) -> set[int]:
        reads = [op for op in program(recorded, id).ops if isinstance(op, HostRead)]
        return {(op.step or 0) - int(op.name.rpartition(" ")[2]) for op in reads}

    assert lag("latest") == {1}
    assert lag("one-at-a-time") == {0}


def test_the_host_waits_for_copy_done_alone(recorded: Explorable) -> None:
    synchronized = {op.event for op in program(recorded, "latest").ops if isinstance(op, EventSync)}
    assert synchronized == {"copy_done 0", "copy_done 1"}


def test_a_coarse_barrier_has_no_read_done(recorded: Explorable) -> None:
    def events(id: str) -> set[str]:
        return {op.event for op in program(recorded, id).ops if isinstance(op, EventRecord)}

    assert events("latest") - events("coarse") == {"read_done"}


def test_the_reader_may_drag_every_graph_of_a_step(recorded: Explorable) -> None:
    assert list(recorded.params) == ["host", "draft", "verify", "draft_extend"]


def test_a_page_of_variants_is_small(recorded: Explorable) -> None:
    assert len(json.dumps(recorded.to_json())) < MOST_BYTES


@pytest.mark.parametrize(("name", "says"), [("before-25465", "before #25465"), ("no-barrier", "no barrier")])
def test_a_variant_is_called_by_the_pull_request_of_its_preset(name: str, says: str) -> None:
    assert label_of(preset(name)) == says


# One of each: where a row changes hands, where it is seeded, where a prefill is aborted, with a plan stream.
EVENTFUL = ("before-25465", "34052", "26380", "before-35748", "stale-mailbox", "latest-plan")


@pytest.mark.parametrize("name", EVENTFUL)
def test_the_turns_shown_have_the_verdict_of_the_preset(name: str) -> None:
    torch.set_num_threads(1)
    one = preset(name)
    report = check(recorded_steps(one))
    assert report.verdict is (Verdict.OK if one.expect is Expect.RIGHT else Verdict.RACE)
    assert {race.bytes.buf for race in report.races} <= {*one.buffers, "req_to_token"}


def test_memory_that_several_have_one_after_another_is_called_after_them() -> None:
    torch.set_num_threads(1)
    found = {race.bytes.buf for race in check(recorded_steps(preset("before-21940"))).races}
    assert any(name.startswith("new_seq_lens / bonus_tokens") for name in found)


def test_lengths_that_nobody_waits_for_are_a_race_between_their_publish_and_their_reader() -> None:
    torch.set_num_threads(1)
    program = recorded_steps(preset("eagle-none"))
    of_lengths = [race for race in check(program).races if race.bytes.buf.startswith("new_seq_lens")]
    assert ("RAW", "publish 1", "resolve_seq_lens 2") in {
        (race.kind, race.first.name, race.second.name) for race in of_lengths
    }


def test_an_unknown_preset_is_an_error_in_one_sentence() -> None:
    with pytest.raises(UserError, match="unknown preset 'latst': use one of "):
        explorable({"latst": Program(ops=())}, "latst")


def test_recordings_are_made_by_a_process_of_their_own() -> None:
    command = [sys.executable, "-m", "refimpl.lessons.timelines", "--load=steady", "28363"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert list(json.loads(done.stdout)) == ["28363"]
