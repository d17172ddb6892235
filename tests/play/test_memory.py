"""The memory that programs are played in: cells, the cost of size, and what a value means."""

import torch

from refimpl.order import Bytes
from refimpl.play.memory import Memory
from refimpl.play.pieces import WHOLE_BYTES, landing
from refimpl.play.spots import Spot
from refimpl.play.versions import INITIAL, Versions, Writer
from refimpl.program import Range


def spot(memory: Memory, r: Range) -> Spot:
    return Spot(memory, memory.cells(r), Bytes(memory.name, r))


def by(op: int) -> Writer:
    return Writer(op, (f"the value of op {op}",))


def test_memory_is_cut_at_the_ends_of_ranges_and_nowhere_else() -> None:
    memory = Memory("buffer x", [Range("x", 0, 64), Range("x", 16, 32), Range("x", 40, 24)])
    assert memory.starts.tolist() == [0, 16, 40, 48]
    assert memory.ends.tolist() == [16, 40, 48, 64]
    assert memory.cells(Range("x", 16, 32)).tolist() == [1, 2]


def test_a_column_has_the_cells_of_its_rows_alone() -> None:
    column = Range("table", 4, 4, rows=3, stride=16)
    memory = Memory("buffer table", [Range("table", 0, 48), column])
    cells = memory.cells(column)
    assert memory.starts[cells].tolist() == [4, 20, 36]
    assert memory.bytes_of(cells).tolist() == [4, 4, 4]


def test_runs_that_touch_are_one_range() -> None:
    memory = Memory("buffer x", [Range("x", 0, 8, rows=4, stride=8)])
    assert memory.cells(Range("x", 0, 32)).tolist() == [0]


def test_the_size_of_a_buffer_costs_nothing() -> None:
    memory = Memory("buffer kv", [Range("kv", 0, 16 << 30)])
    assert memory.values.nbytes == 8


def test_a_version_tells_op_inputs_and_place_apart() -> None:
    versions, memory = Versions(), Memory("buffer x", [Range("x", 0, 8), Range("x", 8, 8)])
    cells = torch.arange(2)
    old = versions.initial(memory)

    def write(op: int, inputs: torch.Tensor) -> list[int]:
        return versions.written(by(op), str(op), [inputs], memory, cells).tolist()

    assert write(1, old) == write(1, old)
    assert len({*write(1, old), *write(2, old), *write(1, old + 1), *old.tolist()}) == 8
    assert versions.of(write(2, old)[1]) == by(2)
    assert versions.of(old.tolist()[0]) == INITIAL


def test_a_value_in_the_midst_of_two_writes_names_both() -> None:
    versions, memory = Versions(), Memory("buffer x", [Range("x", 0, 64)])
    x = spot(memory, Range("x", 0, 64))
    memory.values.copy_(versions.initial(memory))
    for op in (1, 2):
        versions.splits()
        land = landing([(x, versions.written(by(op), str(op), [], memory, x.cells))], pieces=4)
        land(0)
        if op == 1:
            land(1)
    versions.learn(memory, x.cells, memory.values)
    (value,) = memory.values.tolist()
    assert versions.of(value).words == "torn: part the value of op 2, part the value of op 1, part the initial value"


def test_all_pieces_together_are_the_whole_write() -> None:
    versions = Versions()
    memory = Memory("buffer x", [Range("x", 0, 3), Range("x", 3, 50), Range("x", 53, 11)])
    x = spot(memory, Range("x", 0, 64))
    for pieces in (1, 2, 3, 5, 64, 100):
        values = versions.written(by(pieces), str(pieces), [], memory, x.cells)
        land = landing([(x, values)], pieces)
        for piece in range(pieces):
            land(piece)
        assert memory.values.equal(values)


def test_a_cell_of_one_element_lands_whole() -> None:
    versions, memory = Versions(), Memory("buffer x", [Range("x", k * WHOLE_BYTES, WHOLE_BYTES) for k in range(3)])
    x = spot(memory, Range("x", 0, 3 * WHOLE_BYTES))
    old = versions.initial(memory)
    memory.values.copy_(old)
    new = versions.written(by(1), "1", [], memory, x.cells)
    land = landing([(x, new)], pieces=2)
    land(0)
    assert memory.values.tolist() == [new[0], old[1], old[2]]
