"""Explorables, programs and ops are checked when they are made."""

import json
from dataclasses import FrozenInstanceError, replace

import pytest

from refimpl import program as p
from refimpl.program import Explorable, Param, Program, ProgramError, Stream, Variant


def variant(name: str, *ops: p.Op) -> Variant:
    return Variant(name, name, f"{name} in words", Program(ops=ops, streams={"s": Stream()}, id=name))


NONE, WAIT = variant("none"), variant("wait", p.HostWork(us=100.0, param="host"))
HOST = Param("host work", us=100, min=0, max=400)


def explorable(**more: object) -> Explorable:
    given: dict[str, object] = {"id": "e", "title": "t", "variants": (NONE, WAIT), "params": {"host": HOST}}
    return Explorable(**{**given, **more})  # type: ignore[arg-type]


def test_an_explorable_without_variants_is_refused() -> None:
    with pytest.raises(ProgramError, match="'e' needs variants"):
        explorable(variants=())


def test_two_variants_may_not_share_an_id() -> None:
    with pytest.raises(ProgramError, match="different ids"):
        explorable(variants=(NONE, NONE))


@pytest.mark.parametrize("field", ["initial", "before"])
def test_an_explorable_may_only_name_its_own_variants(field: str) -> None:
    assert explorable(**{field: "wait"}).to_json()[field] == "wait"
    with pytest.raises(ProgramError, match=f"'{field}': .*no variant 'synchronize'; it has none, wait"):
        explorable(**{field: "synchronize"})


def test_an_op_may_only_take_a_duration_that_a_parameter_gives() -> None:
    with pytest.raises(ProgramError, match="case 'e/wait', op 0, field 'param': no duration parameter 'host'"):
        explorable(params={})


@pytest.mark.parametrize(
    ("us", "low", "high", "step"), [(5, 10, 20, 1), (25, 10, 20, 1), (5, -1, 20, 1), (15, 10, 20, 0), (15, 20, 10, 1)]
)
def test_a_parameter_lies_within_bounds_that_are_in_order(us: float, low: float, high: float, step: float) -> None:
    with pytest.raises(ProgramError, match="'lag'"):
        Param("lag", us, low, high, step)


def test_a_variant_is_found_by_its_id() -> None:
    assert explorable().variant("wait") is WAIT
    with pytest.raises(ProgramError, match="no variant 'all'; it has none, wait"):
        explorable().variant("all")


def test_an_explorable_is_json_whose_programs_read_back() -> None:
    data = json.loads(json.dumps(explorable(ask=("a", "b"), step_op="forward", initial="none").to_json()))
    assert data["schema"] == 1
    assert [p.program_from_json(v["program"]) for v in data["variants"]] == [NONE.program, WAIT.program]
    assert data["params"]["host"] == {"label": "host work", "us": 100, "min": 0, "max": 400, "step": 50}
    assert (data["ask"], data["step_op"], data["initial"]) == (["a", "b"], "forward", "none")
    assert "before" not in data


def test_programs_cannot_be_changed_after_they_were_checked() -> None:
    with pytest.raises(TypeError):
        NONE.program.streams["t"] = Stream()  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        WAIT.program.ops[0].us = 3.0  # type: ignore[misc]


def test_a_program_made_in_python_is_checked_like_a_file() -> None:
    with pytest.raises(ProgramError, match="case 'none', op 0, field 'stream': unknown stream 't'"):
        replace(NONE.program, ops=(p.Launch(stream="t"),))
    with pytest.raises(ProgramError, match="op 0, field 'buf': unknown buffer 'x'"):
        replace(NONE.program, ops=(p.TensorFree(buf="x"),))


def test_lanes_are_drawn_in_the_order_of_the_book() -> None:
    streams = {name: Stream() for name in ("copy", "mine", "forward", "plan", "schedule")}
    ops = (
        p.StreamSync(stream="legacy"),
        p.HostAsyncBegin(id="send", range=p.Range("x", 0, 1), access=p.Access.READ),
    )
    program = Program(ops=ops, streams=streams, buffers={"x": p.Buffer(1)})
    assert program.lanes == ("host", "schedule", "plan", "forward", "copy", "mine", "legacy", "agent send")
