"""``read_done`` on a GPU: the event as a node of a captured graph orders, and in the engine too, with stalled graphs.

The stall is a spin kernel that the graph itself begins with, so that another stream's write comes before its read
wherever nothing orders the two.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.decode_inputs import DecodeInputs
from refimpl.engine.metadata import LiveMetadata, SnapshotMetadata
from refimpl.fences import preset
from refimpl.lessons.lossless.campaign import Judge
from refimpl.lessons.lossless.load import LoadShape
from refimpl.lessons.lossless.setups import Setup, build
from refimpl.lessons.lossless.stall import stalls
from tests.fences.page_tables import Watch

pytestmark = pytest.mark.gpu

RUNS = 20
STALL_US = 1000.0
OLD, NEW = 1, 2


@pytest.fixture(autouse=True)
def without_tf32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


class Replays:
    """A graph that stalls, takes the table, records ``read_done``, and works on; another stream then writes the table.

    Attributes:
        read_done: the node's.
        before: an event that is recorded before a replay.
    """

    def __init__(self) -> None:
        self.dev = devices.get("cuda")
        self.forward, self.schedule = self.dev.Stream(), self.dev.Stream()
        self.table = torch.full((4,), OLD, device="cuda")
        self.taken = torch.zeros_like(self.table)
        self.read_done, self.before = self.dev.Event(external=True), self.dev.Event()
        self._body()  # CUDA loads a kernel at its first launch, which waits for the device and hides the race
        self.dev.synchronize()
        self.graph = self.dev.CUDAGraph()
        with self.dev.graph(self.graph, stream=self.forward):
            self._body(self.read_done)
        self.dev.synchronize()

    def _body(self, read_done: Any = None) -> None:
        devices.sleep_stream("cuda", STALL_US)
        self.taken.copy_(self.table)
        if read_done is not None:
            read_done.record()
        self.taken.mul_(10)

    def replay(self) -> None:
        with self.dev.stream(self.forward):
            self.graph.replay()

    def overwrite_behind(self, event: Any) -> None:
        self.schedule.wait_event(event)
        with self.dev.stream(self.schedule):
            self.table.fill_(NEW)

    def took_new_blocking(self) -> bool:
        """Whether the last replay read what was written for later ones; the table is old again afterwards."""
        self.dev.synchronize()
        found = bool((self.taken == 10 * NEW).any())
        self.table.fill_(OLD)
        self.dev.synchronize()
        return found


@pytest.fixture(scope="module")
def replays() -> Replays:
    assert torch.cuda.is_available(), "these tests need a GPU: leave them out with -m 'not gpu'"
    return Replays()


def test_an_event_node_behind_the_read_orders_and_an_event_before_the_replay_does_not(replays: Replays) -> None:
    def run(in_graph: bool) -> bool:
        replays.before.record(replays.forward)
        replays.replay()
        replays.overwrite_behind(replays.read_done if in_graph else replays.before)
        return replays.took_new_blocking()

    node, early = (sum(run(in_graph) for _ in range(RUNS)) for in_graph in (True, False))
    print(f"new values read: {node} of {RUNS} behind the node, {early} of {RUNS} behind an event before the replay")
    assert (node, early > RUNS // 2) == (0, True)


def test_a_wait_is_bound_to_the_launch_before_it_and_each_launch_records_anew(replays: Replays) -> None:
    def run(late: bool) -> bool:
        replays.replay()
        if late:
            replays.replay()
            replays.overwrite_behind(replays.read_done)
        else:
            replays.schedule.wait_event(replays.read_done)
            replays.replay()
            with replays.dev.stream(replays.schedule):
                replays.table.fill_(NEW)
        return replays.took_new_blocking()

    late, early = (sum(run(late) for _ in range(RUNS)) for late in (True, False))
    print(
        f"new values read: {late} of {RUNS} with the wait behind the second launch, {early} of {RUNS} between the two"
    )
    assert (late, early > RUNS // 2) == (0, True)


@pytest.fixture
def stalled_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every graph that is captured from here on begins with a spin kernel, before its metadata."""
    for backend in (SnapshotMetadata, LiveMetadata):
        in_graph = backend.init_forward_metadata_in_graph

        def stalled(self: Any, inputs: DecodeInputs, in_graph: Any = in_graph) -> None:
            devices.sleep_stream("cuda", STALL_US)
            in_graph(self, inputs)

        monkeypatch.setattr(backend, "init_forward_metadata_in_graph", stalled)


def _runs_with_foreign_slots(name: str) -> int:
    row = preset(name)
    options = {"metadata_in_graph": row.engine.get("metadata_in_graph", False), "fences": row.chosen()}
    scheduler = build(
        Setup(row.worker, device="cuda", max_running_requests=2, max_context=24, options=options)
    ).scheduler
    watch = Watch(scheduler)
    return sum(watch.foreign_blocking() > 0 for _ in range(RUNS))


@pytest.mark.usefixtures("stalled_graphs")
@pytest.mark.parametrize("name", ["pre-replay-live", "wrong-phase"])
def test_an_event_too_early_gives_stalled_steps_the_slots_of_the_next_owner_of_their_row(name: str) -> None:
    found = _runs_with_foreign_slots(name)
    print(f"{name}: foreign slots in {found} of {RUNS} runs")
    assert found > 0


@pytest.mark.usefixtures("stalled_graphs")
@pytest.mark.parametrize("name", ["34052", "post-replay-live", "latest"])
def test_an_event_behind_the_last_read_gives_them_their_own(name: str) -> None:
    found = _runs_with_foreign_slots(name)
    print(f"{name}: foreign slots in {found} of {RUNS} runs")
    assert found == 0


@pytest.mark.parametrize(
    ("worker", "live", "name"),
    [
        ("dflash", True, "34052"),
        ("dflash", True, "post-replay-live"),
        ("dflash", False, "in-replay"),
        ("eagle", True, "latest"),
        ("mtp", True, "latest"),
        ("plain", True, "latest"),
    ],
)
def test_wherever_it_stands_every_token_is_the_one_that_the_target_likes_best(
    worker: str, live: bool, name: str
) -> None:
    options = {"metadata_in_graph": live, "fences": preset(name).chosen()}
    judge = Judge(build(Setup(worker, device="cuda", options=options)))
    assert [judge.run(LoadShape(requests=8, vocabulary=40), seed, stalls).wrong for seed in range(2)] == [(), ()]
