"""The streaming checker: told of each call as the host makes it, it keeps clocks and shadow memory and notes races at
once.

No program is kept: memory grows with the number of streams, events and ranges in use, not with the number of calls.
``check`` drives it over a ``Program``; a recorder may drive it from running code.
"""

import sys
from collections.abc import Iterable
from types import CodeType

from refimpl.order.advice import missing_edge, node_name, site_text
from refimpl.order.clocks import HOST, Capture, Clock, Lane, Lanes, joined
from refimpl.order.history import Found, History
from refimpl.order.report import Lint, Race, Touch
from refimpl.order.shadow import Point
from refimpl.program import Node, Range, topological, unclear_records

Site = tuple[CodeType | str, int]
"""A call site: a code object and the offset of an instruction in it (``frame.f_lasti``); or words and 0."""

_point = tuple.__new__  # Point(…) costs three times as much, and there is one per launch


class Checker:
    """Happens-before, call by call.

    Streams that were not declared are non-blocking ones of device 0. Every method is one call of the host, in issue
    order, and returns at once. The call site is the caller's file, line and function unless ``site`` is given.

    Flags (``stream_wait_value``) are outside its model, since a later call may release an earlier wait: ``check``
    judges
    programs that use them.

    Example:
        >>> checker = Checker()
        >>> lens = Range("new_seq_lens", 0, 64)
        >>> checker.launch("forward", writes=[lens], name="verify")
        >>> checker.launch("schedule", reads=[lens], name="gather")
        >>> [str(race.kind) for race in checker.races()]
        ['RAW']
    """

    def __init__(self) -> None:
        self._lanes = Lanes()
        self._streams = self._lanes.by_name
        self._history = History(self._lanes.host)
        self._touch_cells = self._history.touch
        self._captures: dict[str, Capture] = {}
        self._agents: dict[str, list[Lane]] = {}
        self._idle_agents: list[Lane] = []
        self._users: dict[str, list[Lane]] = {}
        self._home: dict[str, Lane] = {}
        self._marks: dict[str, list[Clock]] = {}
        self._lints: list[Lint] = []
        self._calls = 0

    # ── streams and devices ──

    def stream(self, name: str, *, blocking: bool = False, device: int = 0) -> None:
        """Declare a stream; ``blocking`` ones wait for the legacy stream and it waits for them."""
        self._lanes.declare(name, device, blocking)

    def set_device(self, device: int) -> None:
        """The legacy stream and ``device_synchronize`` mean this device from here on."""
        self._calls += 1
        self._lanes.device = device

    # ── device work ──

    def launch(
        self,
        stream: str,
        reads: Iterable[Range] = (),
        writes: Iterable[Range] = (),
        name: str = "kernel",
        site: Site | None = None,
    ) -> None:
        """A kernel is queued on ``stream``; it reads and writes these ranges when it executes."""
        lanes = self._lanes
        lane = self._streams.get(stream)
        if lane is None or lane.seen_host != lanes.version:
            lane = lanes.enter(stream)
        clock, index = lane.clock, lane.index
        clock[index] = epoch = clock[index] + 1
        call = self._calls
        self._calls = call + 1
        if site is None:
            frame = sys._getframe(1)
            point = _point(Point, (index, epoch, call, name, frame.f_code, frame.f_lasti))
        else:
            point = Point(index, epoch, call, name, *site)
        self._touch_cells(clock, point, reads, writes)
        if lane.legacy:
            lanes.leave(lane)

    def graph_launch(self, stream: str, nodes: Iterable[Node], name: str = "graph", site: Site | None = None) -> None:
        """A captured graph is launched: its nodes come after what the stream holds, in the order of their dependencies
        alone."""
        lane = self._lanes.enter(stream)
        call, place = self._next(site)
        lane.clock[lane.index] += 1
        start = list(lane.clock)
        nodes = tuple(nodes)
        unclear = unclear_records(nodes)
        armed = dict(self._captures)
        ends: dict[str, tuple[Lane, Clock]] = {}
        last_on: dict[int, str] = {}
        for node in topological(nodes):
            goes_on = next((ends[dep][0] for dep in node.deps if last_on[ends[dep][0].index] == dep), None)
            branch = goes_on or self._lanes.branch(lane, last_on)
            clock = joined(start, branch.clock)
            for dep in node.deps:
                clock = joined(clock, ends[dep][1])
            if node.wait is not None:
                clock = self._after(clock, node.wait, armed.get(node.wait), f"node {node.name} of {name}", call)
            branch.clock[branch.index] = epoch = branch.clock[branch.index] + 1
            clock[branch.index] = epoch
            last_on[branch.index] = node.name
            ends[node.name] = (branch, clock)
            if node.record is not None and node.record in unclear:
                self._capture(node.record, lane.index, start[lane.index], start, call)
            elif node.record is not None:
                self._capture(node.record, branch.index, epoch, clock, call)
            self._touch(branch, clock, epoch, call, node_name(name, node), place, node.reads, node.writes)
        for _, clock in ends.values():
            lane.join(clock)
        self._lanes.leave(lane)

    def staged_copy(self, stream: str, src: Range, dst: Range, name: str = "copy", site: Site | None = None) -> None:
        """A synchronous copy from pageable memory: the host waits for the stream and takes the source; the write to
        ``dst`` stays pending."""
        call, place = self._next(site)
        self._lanes.join_host(self._lanes.enter(stream).clock)
        self._host_step(call, name, place, (src,), ())
        lane = self._lanes.enter(stream)
        lane.clock[lane.index] += 1
        self._touch(lane, lane.clock, lane.clock[lane.index], call, name, place, (), (dst,))
        self._lanes.leave(lane)

    # ── events and waits ──

    def record(self, event: str, stream: str) -> None:
        """The event takes the stream's clock; the capture it held is gone."""
        lane = self._streams.get(stream)
        if lane is None or lane.seen_host != self._lanes.version:
            lane = self._lanes.enter(stream)
        clock, index = lane.clock, lane.index
        clock[index] = epoch = clock[index] + 1
        call = self._calls
        self._calls = call + 1
        self._capture(event, index, epoch, clock, call)
        if lane.legacy:
            self._lanes.leave(lane)

    def wait(self, event: str, stream: str) -> None:
        """Later work of the stream comes after the capture current now; the host goes on."""
        lane = self._streams.get(stream)
        if lane is None or lane.seen_host != self._lanes.version:
            lane = self._lanes.enter(stream)
        call = self._calls
        self._calls = call + 1
        capture = self._captures.get(event)
        if capture is None:
            self._unrecorded(event, stream, call)
        else:
            capture.into(lane)
        if lane.legacy:
            self._lanes.leave(lane)

    def wait_stream(self, stream: str, on: str) -> None:
        """Later work of ``stream`` comes after all that is now queued on ``on``; the host goes on."""
        self._calls += 1
        other = self._lanes.enter(on)
        self._lanes.leave(other)
        lane = self._lanes.enter(stream)
        lane.join(other.clock)
        self._lanes.leave(lane)

    # ── the host ──

    def synchronize(self, event: str) -> None:
        """The host blocks until the event's current capture has executed; a poll that ended with success orders the
        same."""
        self._calls += 1
        capture = self._captures.get(event)
        if capture is None:
            self._unrecorded(event, "the host", self._calls - 1)
        else:
            capture.joined = True
            self._lanes.join_host(capture.clock)

    def stream_synchronize(self, stream: str) -> None:
        """The host blocks until all that is now queued on the stream has executed."""
        self._calls += 1
        self._lanes.join_host(self._lanes.enter(stream).clock)

    def device_synchronize(self) -> None:
        """The host blocks until all that is now queued on the current device has executed."""
        self._calls += 1
        for lane in self._lanes.of_device(self._lanes.device):
            self._lanes.join_host(lane.clock)

    def join_host(self, stream: str) -> None:
        """The copy or fill launched last on ``stream`` holds the host until it has executed."""
        self._lanes.join_host(self._lanes.enter(stream).clock)

    def host_access(
        self,
        reads: Iterable[Range] = (),
        writes: Iterable[Range] = (),
        name: str = "host access",
        site: Site | None = None,
    ) -> None:
        """The host reads and writes these ranges, now."""
        call, place = self._next(site)
        self._host_step(call, name, place, reads, writes)

    def host_work(self) -> None:
        """The host does something that touches no buffer."""
        self._calls += 1

    def agent_begin(
        self, agent: str, reads: Iterable[Range] = (), writes: Iterable[Range] = (), site: Site | None = None
    ) -> None:
        """An agent beside the host, such as a network transfer, begins to use these ranges."""
        call, place = self._next(site)
        lane = self._idle_agents.pop() if self._idle_agents else self._lanes.new("agent")
        lane.name = f"agent {agent}"
        self._agents.setdefault(agent, []).append(lane)
        lane.join(self._lanes.host.clock)
        self._touch(lane, lane.clock, lane.clock[lane.index], call, agent, place, reads, writes)

    def agent_wait(self, agent: str) -> None:
        """The host blocks until all that began under this name has ended; an agent that never began holds nobody."""
        self._calls += 1
        for lane in self._agents.pop(agent, ()):
            self._lanes.join_host(lane.clock)
            self._idle_agents.append(lane)

    # ── allocators ──

    def driver_alloc(self, device: int | None = None) -> None:
        """The driver's allocation judged as observed: a barrier over that device's streams, or the current one's."""
        self._calls += 1
        device = self._lanes.device if device is None else device
        self._lanes.legacy(device)
        lanes = list(self._lanes.of_device(device))
        for source in lanes:
            for lane in lanes:
                lane.join(source.clock)

    def lives_in(self, buf: str, block: str) -> None:
        """``buf`` was handed out in ``block`` before the first call that this checker is told of."""
        self._history.own(buf, block)

    def tensor_alloc(self, buf: str, block: str | None = None, stream: str | None = None) -> None:
        """The caching allocator hands out ``buf`` on ``stream``; with ``block`` after its former owners."""
        self._calls += 1
        self._home.pop(buf, None)
        if stream is not None:
            self._home[buf] = self._lanes.lane(stream)
        if block is None:
            return
        for clock in self._marks.pop(block, ()):
            self._lanes.join_host(clock)
        self._history.own(buf, block)
        self._users.pop(buf, None)

    def tensor_free(self, buf: str) -> None:
        """The caching allocator takes ``buf`` back: its next owner comes after what the recorded streams hold now."""
        block = self._history.free(buf, self._calls)
        self._calls += 1
        users = self._users.pop(buf, [])
        if block is not None:
            self._marks.setdefault(block, []).extend(list(self._lanes.settle(user).clock) for user in users)

    def record_stream(self, buf: str, stream: str) -> None:
        """The allocator learns that ``stream`` uses ``buf``; of the stream that ``buf`` was handed out on it knows."""
        self._calls += 1
        lane = self._lanes.lane(stream)
        if self._home.get(buf) is not lane:
            self._users.setdefault(buf, []).append(lane)

    # ── what was found ──

    def races(self) -> list[Race]:
        """One report for each pair of call sites that raced, in the order in which they were found."""
        return [self._race(found) for found in self._history.found.values()]

    def lints(self) -> list[Lint]:
        """Waits on events that were never recorded, and records that dropped a capture nobody had joined."""
        return list(self._lints)

    # ── pieces ──

    def _after(self, clock: Clock, event: str, capture: Capture | None, who: str, call: int) -> Clock:
        """A graph node's clock behind its wait."""
        if capture is None:
            self._unrecorded(event, who, call)
            return clock
        capture.joined = True
        return joined(clock, capture.clock)

    def _unrecorded(self, event: str, who: str, call: int) -> None:
        words = f"{who} waits for {event}, which was never recorded: the wait orders nothing"
        self._lints.append(Lint("wait-unrecorded", call, words))

    def _capture(self, event: str, lane: int, epoch: int, clock: Clock, call: int) -> None:
        old = self._captures.get(event)
        if old is not None and not old.joined and clock[old.lane] < old.epoch:
            made = f"the capture that call {old.call} made on {self._lanes.name_of(old.lane)}"
            words = f"this record of {event} drops {made}, which nobody has joined"
            self._lints.append(Lint("record-drops-capture", call, words))
        self._captures[event] = Capture(lane, epoch, clock[:], call)

    def _next(self, site: Site | None) -> tuple[int, Site]:
        self._calls += 1
        if site is None:
            frame = sys._getframe(2)
            site = (frame.f_code, frame.f_lasti)
        return self._calls - 1, site

    def _touch(
        self,
        lane: Lane,
        clock: Clock,
        epoch: int,
        call: int,
        name: str,
        site: Site,
        reads: Iterable[Range],
        writes: Iterable[Range],
    ) -> None:
        point = Point(lane.index, epoch, call, name, *site)
        self._touch_cells(clock, point, reads, writes)

    def _host_step(self, call: int, name: str, site: Site, reads: Iterable[Range], writes: Iterable[Range]) -> None:
        host = self._lanes.host
        host.clock[HOST] += 1
        self._lanes.version += 1
        self._touch(host, host.clock, host.clock[HOST], call, name, site, reads, writes)

    def _race(self, found: Found) -> Race:
        first, second = self._side(found.first), self._side(found.second)
        home = self._home.get(found.owners[0])
        reaches = not found.after_free and (home is None or home.index != found.first.lane)
        edge = missing_edge(found.kind, first, second, found.owners, reaches)
        return Race(found.kind, found.bytes, first, second, edge, count=found.count)

    def _side(self, point: Point) -> Touch:
        return Touch(point.call, point.name, self._lanes.name_of(point.lane), site_text(point))
