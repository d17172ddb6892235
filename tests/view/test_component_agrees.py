"""The component's model, in the browser's language, says what refimpl says: order, races, times, accounts, values.

``PROGRAMS=20000 pytest tests/view/test_component_agrees.py`` compares that many random programs instead of a thousand.
"""

import os
from itertools import product
from pathlib import Path

import pytest

from refimpl.order import check
from refimpl.program import Mem, Memcpy, Program, Verdict, program_from_json, read_programs
from refimpl.program.ops import OPS, Api
from tests.property.programs import KINDS, WITH_FLAGS, random_program
from tests.view import expected, programs

TESTS = Path(__file__).parent.parent
RANDOM = int(os.environ.get("PROGRAMS", "1000"))


def made(seeds: range) -> list[Program]:
    return [program_from_json(programs.program(seed)) for seed in seeds]


@pytest.mark.parametrize("file", ["cases/stream-programs.json", "litmus/programs.json"])
def test_on_every_program_of_the_catalogue_and_of_the_litmus_tests(file: str) -> None:
    assert expected.compare(list(read_programs(TESTS / file))) == []


def test_on_random_programs_over_the_whole_format() -> None:
    """The first that differ are shown: the rest is seldom about something else."""
    for first in range(0, RANDOM, 500):
        assert expected.compare(made(range(first, min(first + 500, RANDOM))))[:5] == []


def test_on_random_programs_of_another_hand() -> None:
    told = [random_program(seed, (*KINDS, *WITH_FLAGS * (seed % 3)), length=24) for seed in range(300)]
    assert expected.compare(told)[:5] == []


def test_the_random_programs_are_of_every_verdict() -> None:
    verdicts = [check(program).verdict for program in made(range(200))]
    assert all(verdicts.count(verdict) > 10 for verdict in Verdict)


def test_the_random_programs_use_every_op_every_copy_and_several_devices() -> None:
    told = made(range(1000))
    ops = [op for program in told for op in program.ops]
    assert {op.op for op in ops} == set(OPS)
    mem = {name: Mem(buffer["mem"]) for name, buffer in programs.BUFFERS.items()}
    copies = {(op.api, mem[op.src.buf], mem[op.dst.buf]) for op in ops if isinstance(op, Memcpy)}
    assert copies == set(product(Api, Mem, Mem))
    nodes = [node for op in ops for node in getattr(op, "nodes", ())]
    assert any(node.record for node in nodes)
    assert any(node.wait for node in nodes)
    assert any(getattr(op, "device", 0) == 1 for op in ops)


def test_a_model_that_says_something_else_is_found_out() -> None:
    """The comparison itself can fail: each thing that it looks at is changed in turn."""
    program = program_from_json(programs.program(RACY))
    (said,) = expected.judge([program])
    assert list(expected.differences(program, said)) == []
    changes = {
        "verdict": "ok",
        "stuck": [0],
        "before": [[] for _ in said["before"]],
        "all": said["all"][1:],
        "near": said["near"][:0],
        "lanes": said["lanes"][::-1],
        "spans": [{**span, "ready": span["ready"] + 1} for span in said["spans"]],
        "gaps": said["gaps"][1:],
        "gpuIdle": said["gpuIdle"][1:],
        "wrong": said["wrong"][1:],
        "account": {**said["account"], "calls": []},
    }
    for field, wrong in changes.items():
        assert said[field] != wrong, field
        assert list(expected.differences(program, {**said, field: wrong})), field


RACY = 3
"""A random program that races, whose host is held, and in which a read finds a wrong value."""
