"""Vector clocks: one component per stream, one for the host, one per agent beside the host, one per parallel branch of
a graph.

``record`` assigns a stream's clock to the event; ``wait`` joins the event's clock into the stream: the whole subject is
these two verbs. An access comes before another when the other's clock has reached its epoch.
"""

from collections.abc import Collection, Iterator

from refimpl.program import LEGACY

Clock = list[int]
"""Per lane index, the epoch up to which that lane's work is known to come before."""

HOST = 0
"""Lane index of the host."""


class Lane:
    """A stream, the host, an agent or a graph branch, with its clock.

    Args:
        name: as drawn.
        index: its component in every clock.
        clock: what is known to come before its next work.
        device: number of its device.
        blocking: True for a stream that the legacy stream waits for.
        legacy: True for a device's legacy default stream.
    """

    __slots__ = ("blocking", "branches", "clock", "device", "index", "legacy", "name", "seen_host")

    def __init__(
        self, name: str, index: int, clock: Clock, device: int = 0, blocking: bool = False, legacy: bool = False
    ) -> None:
        self.name, self.index, self.clock = name, index, clock
        self.device, self.blocking, self.legacy = device, blocking, legacy
        self.seen_host = 0
        self.branches: list[Lane] = []

    def join(self, clock: Clock) -> None:
        """What comes before this clock comes before this lane's next work.

        The lane's own component counts states, not only work: whoever has seen one of its epochs knows all that the
        lane knew then.
        """
        self.clock = joined(self.clock, clock)
        self.clock[self.index] += 1


class Capture:
    """What an event holds: the clock of one lane at one record.

    Attributes:
        lane, epoch: which lane recorded it, and when.
        clock: what comes before whoever waits for it.
        call: which call made it.
        joined: True once a wait or a synchronize has used it.
    """

    __slots__ = ("call", "clock", "epoch", "joined", "lane")

    def __init__(self, lane: int, epoch: int, clock: Clock, call: int) -> None:
        self.lane, self.epoch, self.clock, self.call = lane, epoch, clock, call
        self.joined = False

    def into(self, lane: Lane) -> None:
        """The lane's later work comes after this capture."""
        self.joined = True
        mine, theirs, index = lane.clock, self.clock, lane.index
        if mine[self.lane] >= self.epoch:
            return
        if len(theirs) == len(mine) and theirs[index] == mine[index]:
            # The capture has seen the lane's present state, so it knows all that the lane knows.
            lane.clock = theirs[:]
            lane.clock[index] += 1
        else:
            lane.join(theirs)


def joined(a: Clock, b: Clock) -> Clock:
    """The pointwise maximum; a clock from before some lane existed knows nothing of it.

    Example:
        >>> joined([3, 1, 0], [2, 5])
        [3, 5, 0]
    """
    if len(a) != len(b):
        short, a = sorted((a, b), key=len)
        b = short + [0] * (len(a) - len(short))
    return [x if x > y else y for x, y in zip(a, b, strict=True)]


class Lanes:
    """All lanes of a run and the rules that move clocks between them without an event: the host's calls and the legacy
    stream.

    Attributes:
        by_name: declared streams and those that were used; not the legacy ones.
        host: the host's lane.
        version: counts changes of the host's clock; a lane that has seen the current one need not join it again.
        device: the current device.
    """

    def __init__(self) -> None:
        self.host = Lane("host", HOST, [0])
        self.by_name: dict[str, Lane] = {}
        self.version = 0
        self.device = 0
        self._all: list[Lane] = [self.host]
        self._legacy: dict[int, Lane] = {}

    def new(self, name: str, device: int = 0, blocking: bool = False, legacy: bool = False) -> Lane:
        """A lane with a component of its own in every clock."""
        index = len(self._all)
        for lane in self._all:
            lane.clock.append(0)
        lane = Lane(name, index, [0] * (index + 1), device, blocking, legacy)
        lane.seen_host = self.version - 1
        self._all.append(lane)
        return lane

    def declare(self, name: str, device: int, blocking: bool) -> Lane:
        """A stream; a blocking one comes after what its legacy stream holds."""
        lane = self.by_name[name] = self.new(name, device, blocking)
        legacy = self._legacy.get(device)
        if blocking and legacy is not None:
            lane.join(legacy.clock)
        return lane

    def name_of(self, index: int) -> str:
        """The name of the lane with this index."""
        return self._all[index].name

    def of_device(self, device: int | None) -> Iterator[Lane]:
        """The streams of a device, its legacy stream last."""
        for lane in (*self.by_name.values(), *self._legacy.values()):
            if lane.device == device:
                yield lane

    def enter(self, stream: str) -> Lane:
        """A stream's lane, with the host's clock joined: a call comes after what the host did before it.

        An action of the legacy stream also comes after all that its device's blocking streams hold.
        """
        return self.settle(self.lane(stream))

    def lane(self, stream: str) -> Lane:
        """The lane that a stream's name means now: ``legacy`` is that of the current device."""
        lane = self.legacy(self.device) if stream == LEGACY else self.by_name.get(stream)
        return self.declare(stream, 0, blocking=False) if lane is None else lane

    def settle(self, lane: Lane) -> Lane:
        """What ``enter`` does, for a lane that is known."""
        lane.join(self.host.clock)
        if lane.legacy:
            for other in self._blocking(lane.device):
                lane.join(other.clock)
        lane.seen_host = self.version
        return lane

    def leave(self, lane: Lane) -> None:
        """After an action of the legacy stream, every blocking stream of its device waits for it."""
        if lane.legacy:
            for other in self._blocking(lane.device):
                other.join(lane.clock)

    def join_host(self, clock: Clock) -> None:
        """The host has seen what this clock stands for end."""
        self.host.join(clock)
        self.version += 1

    def branch(self, lane: Lane, used: Collection[int]) -> Lane:
        """A component for a graph node that continues no other; those of the stream's earlier launches are free
        again."""
        for branch in lane.branches:
            if branch.index not in used:
                return branch
        branch = self.new(lane.name, lane.device)
        lane.branches.append(branch)
        return branch

    def legacy(self, device: int) -> Lane:
        """The legacy default stream of a device, which every device has."""
        lane = self._legacy.get(device)
        if lane is None:
            lane = self._legacy[device] = self.new(LEGACY, device, legacy=True)
        return lane

    def _blocking(self, device: int) -> Iterator[Lane]:
        return (lane for lane in self.by_name.values() if lane.blocking and lane.device == device)
