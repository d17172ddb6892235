"""A process of its own may die, hang or refuse: what is counted then."""

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from refimpl.lessons.history import apart
from refimpl.lessons.history.apart import Apart
from refimpl.lessons.history.tasks import Do, Row, Task

TASK = Task(Do.RUNS, "latest", "tiny", "sim", (0, 1, 2, 3))
HEAD = """
import json, sys, time
for line in sys.stdin:
    task = json.loads(line)
    def say(row):
        print(json.dumps(row), flush=True)
"""
READY = "    say({'ready': True})\n"
RUNS = "    for seed in task['seeds']:\n"
SAY = "        say({'seed': seed})\n"
END = "    say({'end': True})\n"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Apart]:
    """`served(script)` is an `Apart` whose processes run this text."""

    def make(script: str) -> Apart:
        monkeypatch.setattr(apart, "COMMAND", (sys.executable, "-c", HEAD + script))
        return Apart()

    return make


def rows(hand: Apart, task: Task = TASK) -> list[Row]:
    try:
        return list(hand.rows(task))
    finally:
        hand.close()


def test_a_run_in_which_the_process_dies_is_a_fault_and_the_others_go_on_in_another_process(
    served: Callable[[str], Apart],
) -> None:
    dies = "        if seed == 1: sys.exit('CUDA error: an illegal access')\n"
    script = f"{READY}{RUNS}{dies}{SAY}{END}"
    found = rows(served(script))
    assert [row["seed"] for row in found] == [0, 1, 2, 3]
    assert [row["seed"] for row in found if "fault" in row] == [1]
    assert "CUDA error: an illegal access" in found[1]["fault"]


def test_a_run_that_does_not_answer_is_a_fault(served: Callable[[str], Apart], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "PATIENCE_S", 3)
    hangs = "        if seed == 2: time.sleep(60)\n"
    found = rows(served(f"{READY}{RUNS}{hangs}{SAY}{END}"))
    assert [row["seed"] for row in found if "fault" in row] == [2]


def test_behind_many_deaths_the_runs_left_are_given_up(
    served: Callable[[str], Apart], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "MOST_DEATHS", 2)
    found = rows(served(f"{READY}    sys.exit('gone')\n"))
    assert [row["seed"] for row in found] == [0, 1]


def test_an_engine_that_cannot_be_built_is_no_fault_of_a_run(served: Callable[[str], Apart]) -> None:
    with pytest.raises(RuntimeError, match=r"latest on sim.*no such option"):
        rows(served("    sys.exit('no such option')\n"))


def test_one_process_does_task_after_task(served: Callable[[str], Apart]) -> None:
    hand = served(f"    say({{'process': __import__('os').getpid()}})\n{END}")
    task = Task(Do.MACHINE, "latest", "tiny", "sim")
    first, second = list(hand.rows(task)), rows(hand, task)
    assert first == second


def test_a_task_arrives_as_it_was_sent() -> None:
    assert Task.from_json(json.loads(json.dumps(TASK.to_json()))) == TASK


def test_a_task_that_is_closed_amid_its_rows_begins_no_other_process(served: Callable[[str], Apart]) -> None:
    hand = served(f"{READY}{RUNS}{SAY}        time.sleep(60)\n")
    coming = hand.rows(TASK)
    assert next(coming) == {"seed": 0}
    hand.close()
    with pytest.raises(RuntimeError, match="closed"):
        list(coming)


def test_half_a_line_of_a_process_that_dies_is_no_row(served: Callable[[str], Apart]) -> None:
    found = rows(served(f"{READY}{RUNS}{SAY}        sys.stdout.write('{{\"se'); sys.exit('gone')\n"))
    assert [row["seed"] for row in found] == [0, 1, 2, 3]
    assert ["fault" in row for row in found] == [False, True, False, True]


def test_a_process_whose_parent_was_killed_ends_soon() -> None:
    wait = "import sys, time, refimpl.lessons.history.served as served; served.end_with_parent(int(sys.argv[1]))"
    child = f"{wait}; print('up', flush=True); time.sleep(60)"
    parent = f"import os, subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}, str(os.getpid())])"
    begin = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "up\n"
        killed.kill()
        # The child has the other end of this pipe, too.
        assert killed.stdout.read() == ""
    assert time.monotonic() - begin < 60
