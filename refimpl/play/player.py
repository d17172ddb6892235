"""``play``: a program's calls on the simulated device, with real values in real memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

import torch

from refimpl.device import sim
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import Kind, Op, Queue
from refimpl.order import Bytes, Call, Unit, Units, lower
from refimpl.play.flags import any_of
from refimpl.play.memory import Memory
from refimpl.play.played import Contents, Played, Seen, Step
from refimpl.play.spots import Memories, Spot
from refimpl.play.versions import Versions, Writer
from refimpl.play.work import Work
from refimpl.program import GraphLaunch, HostWork, Memcpy, Program

if TYPE_CHECKING:
    from refimpl.device.simulator.schedules.runner import Schedule

HOST_LANE = "host"
DEFAULT_US = 1.0
"""Duration of work whose op states none, in microseconds; marks and waits take no time."""


def play(program: Program, schedule: Schedule | None = None) -> Played:
    """Runs a program on the simulated device, with real values in real memory.

    Each write leaves a version, the hash of the op and of all it had read, so that a stale, torn or recycled value
    shows, also in what is made from it. A copy moves versions as they are; one whose two ranges differ in size counts
    as a kernel. What the program does not order, the schedule does.

    Args:
        program: What the host calls; queries have the success that the program says they had.
        schedule: `Replay(id)`, `Adversary(seed)` or `Timed()` of the simulated device; None runs each op as soon as
            it may, in the order of issue, which gives the values that the program means.

    Raises:
        UserError: The schedule belongs to another program.
        RuntimeError: The program deadlocks under this schedule, or the device is in the midst of a capture.
    Order:
        The simulated device is idle before and after; each op is one call of the host, one ``h`` of an id.

    Example:
        >>> from refimpl.program import Buffer, Launch, Range, Stream
        >>> lens = Range("lens", 0, 64)
        >>> program = Program(
        ...     streams={"forward": Stream(), "schedule": Stream()}, buffers={"lens": Buffer(64)},
        ...     ops=(Launch(stream="forward", name="verify", writes=(lens,)),
        ...          Launch(stream="schedule", name="gather", reads=(lens,))),
        ... )
        >>> dev = sim()
        >>> print(play(program).reads[0].contents)
        lens[0:64]: the value of op 0 'verify'
        >>> print(play(program, dev.Replay("h2.2.1")).reads[0].contents)
        lens[0:64]: the initial value
    """
    dev = sim()
    player = _Player(program)
    with dev.schedule(dev.Replay("") if schedule is None else schedule) as run:
        player.run()
    return player.played(run.id)


class _Player:
    """One run of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._units = units = lower(program)
        self._versions = Versions()
        self._memories = Memories(_touched(units), self._versions)
        self._reads: list[tuple[tuple[int, int], Seen]] = []
        self._steps: list[Step] = []
        queues = {lane: Queue(lane) for lane in units.lanes}
        self._ops = [Op(Kind.LAUNCH, unit.name, queues[unit.lane], _us(program, unit)) for unit in units.units]
        self._flags = {
            unit.flag: any_of(unit.flag, [self._ops[write] for write in units.writers.get(unit.flag, ())])
            for unit in units.units
            if unit.flag is not None
        }

    def run(self) -> None:
        """Makes every call; after each the schedule has its one say."""
        calls, last = self._units.calls, {unit.lane: unit.index for unit in self._units.units}
        for call, following in zip_longest(calls, calls[1:]):
            self._call(call)
            ends = last.values() if following is None else (*call.until, *following.first)
            DEVICE.runner.finish([self._ops[unit] for unit in ends], DEVICE)

    def played(self, id_: str) -> Played:
        """What came of it."""
        reads = tuple(seen for _, seen in sorted(self._reads, key=lambda entry: entry[0]))
        final = tuple(
            self._contents(name.removeprefix("buffer "), memory, torch.arange(len(memory.values)), memory.values)
            for name, memory in self._memories.by_name.items()
        )
        return Played(self._program, id_, reads, final, tuple(self._steps))

    def _call(self, call: Call) -> None:
        """One call of the host takes effect: it uses its bytes and issues its units."""
        op = self._program.ops[call.op]
        DEVICE.host_us += (op.us or 0.0) if isinstance(op, HostWork) else DEVICE.costs.launch_us
        reads, writes = self._memories.spots(call.reads), self._memories.spots(call.writes)
        host = Work(
            writer=self._writer(call.op, call.name),
            key=str(call.op),
            reads=reads,
            writes=writes,
            versions=self._versions,
            saw=partial(self._saw, (call.op, -1), call.name, HOST_LANE),
            ran=lambda piece, pieces: self._steps.append(Step(None, HOST_LANE, call.op, call.name)),
        )
        staged = tuple((spot, spot.values()) for spot in reads)
        host()
        for unit in call.units:
            self._issue(self._units.units[unit], staged)

    def _issue(self, unit: Unit, staged: tuple[tuple[Spot, torch.Tensor], ...]) -> None:
        """Puts a unit in its queue; a copy whose source the host took brings what was `staged`."""
        op, lane = self._ops[unit.index], self._units.lanes[unit.lane]
        memcpy = isinstance(self._program.ops[unit.op], Memcpy)
        work = Work(
            writer=self._writer(unit.op, unit.name),
            key=f"{unit.op} {unit.node}",
            reads=self._memories.spots(unit.reads),
            writes=self._memories.spots(unit.writes),
            versions=self._versions,
            saw=partial(self._saw, (unit.op, unit.index), unit.name, lane),
            ran=lambda piece, pieces: self._steps.append(Step(unit.lane, lane, unit.op, unit.name, piece, pieces)),
            moves=memcpy,
            staged=staged,
        )
        op.run = work if unit.writes else work.__call__  # an op that writes nothing cannot be torn
        op.after = (
            *(self._ops[other] for other in unit.after),
            *([] if unit.flag is None else [self._flags[unit.flag]]),
        )
        DEVICE.enqueue(op)

    def _writer(self, op: int, name: str) -> Writer:
        value = self._program.ops[op].value
        return Writer(op, (f"the value of op {op} {name!r}" + (f" ({value})" if value else ""),))

    def _saw(self, place: tuple[int, int], name: str, lane: str, spot: Spot, values: torch.Tensor) -> None:
        contents = self._contents(spot.bytes.range.buf, spot.memory, spot.cells, values)
        self._reads.append((place, Seen(place[0], name, lane, spot.bytes.range, contents)))

    def _contents(self, name: str, memory: Memory, cells: torch.Tensor, values: torch.Tensor) -> Contents:
        self._versions.learn(memory, cells, values)
        return Contents(name, memory, cells, values, self._versions)


def _touched(units: Units) -> Iterable[Bytes]:
    for call in units.calls:
        yield from (*call.reads, *call.writes)
    for unit in units.units:
        yield from (*unit.reads, *unit.writes)


def _us(program: Program, unit: Unit) -> float:
    """How long a unit takes, in microseconds."""
    op = program.ops[unit.op]
    stated = op.us
    if isinstance(op, GraphLaunch):
        stated = next((node.us for node in op.nodes if node.name == unit.node), 0.0)
    return (DEFAULT_US if unit.reads or unit.writes else 0.0) if stated is None else stated
