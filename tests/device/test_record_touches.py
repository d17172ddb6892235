"""Which bytes a recording says are touched: by index tensors, by statements, and by neither."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch

import refimpl
from refimpl.model import ops
from refimpl.order import check
from refimpl.program import GraphLaunch, Launch, Range, Verdict


def written(program: Any, buf: str) -> list[Range]:
    return [r for op in program.ops if isinstance(op, Launch) for r in op.writes if r.buf == buf]


def even_rows() -> torch.Tensor:
    return torch.arange(0, 8, 2, device="sim")


WRITES: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "index_put_": lambda table, rows: table.index_put_((rows,), torch.ones(4, 4, device="sim")),
    "setitem": lambda table, rows: table.__setitem__(rows, 1.0),
    "cells": lambda table, rows: table.__setitem__((rows, torch.zeros_like(rows)), 1.0),
    "index_copy_": lambda table, rows: table.index_copy_(0, rows, torch.ones(4, 4, device="sim")),
    "index_add_": lambda table, rows: table.index_add_(0, rows, torch.ones(4, 4, device="sim")),
    "index_fill_": lambda table, rows: table.index_fill_(0, rows, 1.0),
    "scatter_": lambda table, rows: table.scatter_(0, rows.view(4, 1).expand(4, 4), 1.0),
    "scatter_add_": lambda table, rows: table.scatter_add_(
        0, rows.view(4, 1).expand(4, 4), torch.ones(4, 4, device="sim")
    ),
}
READS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "getitem": lambda table, rows: table[rows],
    "index_select": lambda table, rows: table.index_select(0, rows),
    "gather": lambda table, rows: table.gather(0, rows.view(4, 1).expand(4, 4)),
    "embedding": lambda table, rows: torch.nn.functional.embedding(rows, table),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("write_first", [True, False])
def test_indexed_rows_race_where_they_meet_and_nowhere_else(
    dev: Any, write: Any, read: Any, shift: int, write_first: bool
) -> None:
    table, rows, side = torch.zeros(9, 4, device="sim"), even_rows(), dev.Stream()
    others = rows + shift
    dev.synchronize()

    def on_side() -> None:
        with dev.stream(side):
            read(table, others)

    with refimpl.record("sim") as program:
        if not write_first:
            on_side()
        write(table, rows)
        if write_first:
            on_side()
    assert check(program).verdict is (Verdict.OK if shift else Verdict.RACE)
    assert program.widened == ()


def test_the_index_is_looked_up_when_the_op_runs_and_not_when_it_is_issued(dev: Any) -> None:
    table, rows = torch.zeros(8, 4, device="sim"), torch.zeros(1, dtype=torch.int64, device="sim")
    dev.synchronize()
    with refimpl.record("sim") as program:
        program.name(table, "table")
        rows.fill_(3)
        table[rows] = 1.0
        rows.fill_(5)
        table[rows] = 1.0
    assert [(r.off, r.len) for r in written(program, "table")] == [(48, 16), (80, 16)]


def test_a_replay_looks_its_index_up_anew(dev: Any) -> None:
    table, rows, graph = (
        torch.zeros(8, 4, device="sim"),
        torch.zeros(1, dtype=torch.int64, device="sim"),
        dev.CUDAGraph(),
    )
    with dev.graph(graph):
        table.index_fill_(0, rows, 1.0)
    with refimpl.record("sim") as program:
        program.name(table, "table")
        for row in (2, 6):
            rows.fill_(row)
            graph.replay()
    launches = [op for op in program.ops if isinstance(op, GraphLaunch)]
    found = [[r.off for node in op.nodes for r in node.writes if r.buf == "table"] for op in launches]
    assert found == [[32], [96]]


def test_a_statement_stands_in_for_the_schema_of_the_tensors_it_names(dev: Any) -> None:
    table, other, rows = torch.zeros(8, 4, device="sim"), torch.ones(8, 4, device="sim"), even_rows()
    dev.synchronize()
    with refimpl.record("sim") as program:
        program.name(table, "table")
        program.name(other, "other")
        with refimpl.touches(writes=[(table, rows, slice(0, 1))]):
            table.add_(other)
            other.mul_(2)
    add, mul = program.ops
    assert isinstance(add, Launch)
    assert isinstance(mul, Launch)
    assert add.writes == (Range("table", 0, 4, 4, 32),)
    assert add.reads == (Range("other", 0, 128),)
    assert (mul.reads, mul.writes) == ((Range("other", 0, 128),),) * 2


def test_a_statement_names_a_view_s_memory_too(dev: Any) -> None:
    table = torch.zeros(8, 4, device="sim")
    dev.synchronize()
    with refimpl.record("sim") as program:
        program.name(table, "table")
        with refimpl.touches(writes=[(table, 3)]):
            table[2:5].fill_(1)
    assert written(program, "table") == [Range("table", 48, 16)]


def test_the_innermost_statement_of_a_tensor_holds(dev: Any) -> None:
    table = torch.zeros(8, 4, device="sim")
    dev.synchronize()
    with refimpl.record("sim") as program:
        program.name(table, "table")
        with refimpl.touches(writes=[table[0]]), refimpl.touches(writes=[table[1], (table, 3)]):
            table.fill_(1)
    assert written(program, "table") == [Range("table", 16, 16), Range("table", 48, 16)]


def test_a_stated_launch_is_one_op_whether_an_operator_is_seen_or_not(dev: Any) -> None:
    table, out, rows = torch.zeros(8, 4, device="sim"), torch.zeros(4, 4, device="sim"), even_rows()
    dev.synchronize()
    with refimpl.record("sim") as program:
        for thing, name in ((table, "table"), (out, "out"), (rows, "rows")):
            program.name(thing, name)
        for seen in (False, True):
            with refimpl.touches(reads=[(table, rows), rows], writes=[out], launch="gather_rows"):
                if seen:
                    out.copy_(table[rows] * 2)
    unseen, seen_op = program.ops
    assert isinstance(unseen, Launch)
    assert isinstance(seen_op, Launch)
    assert unseen.name == seen_op.name == "gather_rows"
    assert unseen.reads == (Range("table", 0, 16, 4, 32), Range("rows", 0, 32))
    assert unseen.writes == (Range("out", 0, 64),)
    assert (seen_op.reads, seen_op.writes) == (unseen.reads, unseen.writes)


def test_a_stated_launch_is_a_node_of_a_graph(dev: Any) -> None:
    table, row, graph = (
        torch.zeros(8, 4, device="sim"),
        torch.zeros(1, dtype=torch.int64, device="sim"),
        dev.CUDAGraph(),
    )
    with dev.graph(graph), refimpl.touches(writes=[(table, row)], launch="kernel"):
        pass
    with refimpl.record("sim") as program:
        program.name(table, "table")
        row.fill_(4)
        graph.replay()
    launch = program.ops[-1]
    assert isinstance(launch, GraphLaunch)
    (node,) = launch.nodes
    assert (node.name, node.writes) == ("kernel", (Range("table", 64, 16),))


def test_a_stated_launch_changes_no_time_and_no_order_whether_recorded_or_not(dev: Any) -> None:
    def run() -> tuple[float, str]:
        with dev.schedule(dev.Adversary(seed=3)) as schedule:
            x = torch.zeros(4, device="sim")
            with dev.stream(dev.Stream(stream_id=4)), refimpl.touches(writes=[x], launch="kernel"):
                pass
            x.add_(1)
            x.cpu()
            return dev.host_clock_us(), schedule.id

    plain = run()
    with refimpl.record("sim"):
        assert run() == plain


def test_an_entry_that_is_no_tensor_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"touches\(reads=…\): 'rows'"):
        refimpl.touches(reads=["rows"])  # type: ignore[list-item]


def test_an_op_that_never_ran_counts_the_whole_table_and_says_so(dev: Any) -> None:
    table, rows = torch.zeros(8, 4, device="sim"), even_rows()
    dev.synchronize()
    with suppress(ZeroDivisionError), refimpl.record("sim") as program:
        program.name(table, "table")
        table[rows] = 1.0
        1 / 0  # noqa: B018
    assert written(program, "table") == [Range("table", 0, 128)]
    assert [line.partition(" at ")[0] for line in program.widened] == ["index_put_ of table"]


def inside_a_launch(dev: Any, side: Any, x: torch.Tensor) -> dict[str, Callable[[], object]]:
    return {
        "a number through the host": lambda: x.__setitem__(even_rows_of(x), 1.0),
        "item": x[0, 0].item,
        "synchronize": dev.synchronize,
        "query": dev.current_stream().query,
        "event": dev.Event().record,
        "wait": lambda: dev.current_stream().wait_stream(side),
    }


def even_rows_of(table: torch.Tensor) -> torch.Tensor:
    return torch.zeros(1, dtype=torch.int64, device=table.device)


WAITS = ["a number through the host", "item", "synchronize", "query", "event", "wait"]


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_or_an_event_in_a_stated_launch_is_an_error_while_recorded(dev: Any, wait: str) -> None:
    side, x = dev.Stream(), torch.zeros(8, 4, device="sim")

    def launch() -> None:
        with refimpl.touches(writes=[x], launch="kernel"):
            inside_a_launch(dev, side, x)[wait]()

    with refimpl.record("sim"), pytest.raises(RuntimeError, match=r"touches\(launch='kernel'\): something waits"):
        launch()
    x.add_(1)
    assert x.cpu()[3].tolist() == [1.0] * 4


def test_work_on_a_second_stream_in_a_stated_launch_is_an_error_while_recorded(dev: Any) -> None:
    side, x = dev.Stream(), torch.zeros(8, 4, device="sim")

    def launch() -> None:
        with refimpl.touches(writes=[x], launch="kernel"):
            x.add_(1)
            with dev.stream(side):
                x.mul_(2)

    with refimpl.record("sim"), pytest.raises(RuntimeError, match=r"touches\(launch='kernel'\): work goes to two"):
        launch()


@pytest.mark.parametrize("fenced", [True, False])
def test_each_op_of_a_captured_launch_has_all_that_is_stated(dev: Any, fenced: bool) -> None:
    """The event lies between the launch's ops, so what comes after it is not ordered after the second."""
    side, graph = dev.Stream(), dev.CUDAGraph()
    table, other, seen = (torch.zeros(4, device="sim") for _ in range(3))
    dev.synchronize()
    with dev.graph(graph):
        home = dev.current_stream()
        with refimpl.touches(writes=[table], launch="kernel"):
            other.add_(1)
            early = home.record_event()
            table.add_(1)
        side.wait_event(home.record_event() if fenced else early)
        with dev.stream(side):
            seen.copy_(table)
        home.wait_stream(side)
    with refimpl.record("sim") as program:
        graph.replay()
    assert check(program).verdict is (Verdict.OK if fenced else Verdict.RACE)


def test_an_index_that_its_own_op_writes_counts_the_whole_table_and_says_so(dev: Any) -> None:
    table, rows = torch.zeros(8, 4, device="sim"), even_rows()
    dev.synchronize()
    with refimpl.record("sim") as program:
        program.name(table, "table")
        with refimpl.touches(writes=[(table, rows), rows], launch="kernel"):
            rows.add_(1)
    assert written(program, "table") == [Range("table", 0, 128)]
    assert len(program.widened) == 1


def test_an_index_beside_its_table_in_one_allocation_is_looked_up(dev: Any) -> None:
    slab = torch.zeros(16, dtype=torch.int64, device="sim")
    table, rows = slab[4:].view(6, 2), slab[:1]
    dev.synchronize()
    with refimpl.record("sim") as program:
        program.name(slab, "slab")
        table.index_fill_(0, rows, 7)
    assert (written(program, "slab"), program.widened) == ([Range("slab", 32, 16)], ())


LISTS: dict[str, tuple[Any, list[Range]]] = {
    "a list of bools is a mask": (([True, False, False, True, *[False] * 4],), [Range("table", 0, 16, 2, 48)]),
    "a list of integers": (([1, 2],), [Range("table", 16, 32)]),
    "a range": ((range(2),), [Range("table", 0, 32)]),
    "True is all": ((True,), [Range("table", 0, 128)]),
    "False is nothing": ((False,), []),
    "a mask without dimensions": ((torch.tensor(False), 1), []),
    "an empty list is nothing": (([],), []),
}


@pytest.mark.parametrize(("index", "expected"), LISTS.values(), ids=LISTS)
def test_lists_and_bools_name_what_pytorch_s_indexing_does(dev: Any, index: Any, expected: list[Range]) -> None:
    table = torch.zeros(8, 4, device="sim")
    with refimpl.record("sim") as program:
        program.name(table, "table")
        with refimpl.touches(writes=[(table, *index)], launch="kernel"):
            pass
    assert written(program, "table") == expected


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "too many": ((0, 0, 0), IndexError, "names 3 dimensions, and the tensor has 2"),
    "two ellipses": ((..., ...), IndexError, "twice"),
    "a float": ((1.0,), TypeError, "1.0 is no index"),
    "a float tensor": ((torch.tensor([1.0]),), TypeError, "torch.float32"),
    "a str": (("rows",), TypeError, "'rows' is no index"),
    "a list of floats": (([0.5],), TypeError, "names no cells"),
    "a ragged list": (([[1], [1, 2]],), TypeError, "names no cells"),
    "a list of tensors": (([torch.tensor(1)],), TypeError, "a list with tensors"),
    "a backward slice": ((slice(None, None, -1),), IndexError, "positive step"),
    "a slice of floats": ((slice(0.5),), TypeError, "no integer"),
    "an integer out of range": ((8,), IndexError, "8 is out of range in dimension 0, of size 8"),
    "a mask of another shape": ((torch.tensor([True]),), IndexError, "a mask of shape (1,)"),
    "shapes that do not broadcast": (([0, 1], [0, 1, 2]), IndexError, "do not broadcast"),
}


@pytest.mark.parametrize(("index", "error", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_index_is_an_error_of_the_call(index: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=r"touches\(writes=…\), entry 0, at test_record_touches.py:\d+: ") as raised:
        refimpl.touches(writes=[(torch.zeros(8, 4), *index)])
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("rows", "words"),
    [([9], "9 is out of range in dimension 0"), ([-9], "-9 is out of range"), ([1, 1, 1], "broadcast")],
)
def test_values_that_do_not_fit_are_an_error_when_they_are_known_and_name_the_call(
    dev: Any, rows: list[int], words: str
) -> None:
    table, index = torch.zeros(8, 4, device="sim"), torch.tensor(rows, device="sim")
    mask = torch.tensor([True, True, False, False], device="sim")

    def run() -> None:
        with refimpl.record("sim"), refimpl.touches(writes=[(table, index, mask)], launch="kernel"):
            pass

    with pytest.raises(IndexError, match=r"touches\(writes=…\), entry 0, at test_record_touches.py") as raised:
        run()
    assert words in str(raised.value)
    assert table.add_(1).cpu()[0].tolist() == [1.0] * 4


@pytest.mark.parametrize("reads", [3, None, "rows", torch.ones(2)], ids=["3", "None", "str", "tensor"])
def test_reads_that_are_no_list_are_an_error(reads: Any) -> None:
    with pytest.raises(TypeError, match=r"touches\(reads=…\): .* is no list"):
        refimpl.touches(reads=reads)


@pytest.mark.parametrize("launch", [3, ""])
def test_a_launch_without_a_name_is_an_error(launch: Any) -> None:
    with pytest.raises(TypeError, match=r"touches\(launch=…\): .* is no name"):
        refimpl.touches(launch=launch)


def test_an_operator_that_says_its_cells_touches_those_of_its_tables() -> None:
    keys, values = (torch.zeros(6, 1, 4, device="sim") for _ in range(2))
    new, slots = torch.ones(2, 1, 4, device="sim"), torch.tensor([4, 1], device="sim")
    table, lens = torch.tensor([[1, 4, 3], [2, 0, 5]], device="sim"), torch.tensor([2, 1], device="sim")
    starts = torch.tensor([0, 1, 2], device="sim")
    with refimpl.record("sim") as recording:
        recording.name(keys, "keys")
        ops.store_kv(new, new, keys, values, slots)
        ops.paged_attention(new, keys, values, table, lens, starts, 1)
    stored, attended = (op for op in recording.ops if isinstance(op, Launch))
    assert [r for r in stored.writes if r.buf == "keys"] == [Range("keys", 16, 16, 2, 48)]
    assert [r for r in attended.reads if r.buf == "keys"] == [Range("keys", 16, 32), Range("keys", 64, 16)]
    assert recording.widened == ()
