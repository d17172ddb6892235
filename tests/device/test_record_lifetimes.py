"""Memory that was handed on, in recordings: the verdict is what the values of 200 adversarial schedules say."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import refimpl
from refimpl import device
from refimpl.order import Hazard, check
from refimpl.program import Program, TensorAlloc, TensorFree, Verdict
from refimpl.record import Recording

SEEDS = 200
Body = Callable[[Any], list[float]]


def ones(n: int, value: float = 1.0) -> torch.Tensor:
    return torch.full((n,), value, device="sim")


def told(program: Program | Recording) -> list[str]:
    return [op.buf for op in program.ops if isinstance(op, TensorAlloc | TensorFree)]


def recorded(dev: Any, body: Body) -> tuple[Recording, list[float]]:
    with dev.schedule(dev.Timed()), refimpl.record("sim") as recording:
        right = body(dev)
    return recording, right


def wrong_values(dev: Any, body: Body, right: list[float]) -> list[int]:
    wrong = []
    for seed in range(SEEDS):
        with dev.schedule(dev.Adversary(seed)):
            if body(dev) != right:
                wrong.append(seed)
    return wrong


def handed_on(
    before: int, part: slice, after: int, number: int = 1, covered: bool = False, fenced: bool = False, kept: int = 0
) -> Body:
    """A part of an old owner of `before` cells is read beside its stream; `number` owners of `after` cells follow."""

    def body(dev: Any) -> list[float]:
        home, side = dev.Stream(), dev.Stream()
        with dev.stream(home):
            first = ones(kept, 5.0)
            old = ones(before)
        side.wait_stream(home)
        with dev.stream(side):
            out = old[part] + 0
        if covered:
            old.record_stream(side)
        if fenced:
            home.wait_stream(side)
        del old, first
        with dev.stream(home):
            new = [ones(after, 2.0 + k) for k in range(number)]
        dev.synchronize()
        del new
        return [float(out[0]), float(out[-1])]

    return body


HALF = {"before": 256, "part": slice(128, 256), "after": 128, "number": 2}
MERGED = {"before": 128, "part": slice(0, 128), "after": 256, "kept": 128}
SAME = {"before": 128, "part": slice(0, 128), "after": 128}
LARGE = {"before": 1 << 20, "part": slice(0, 128), "after": 1 << 20}


@pytest.mark.parametrize("sizes", [SAME, HALF, MERGED], ids=["same", "half", "merged"])
def test_an_unordered_use_of_a_former_owner_is_a_race_however_the_block_was_cut(dev: Any, sizes: Any) -> None:
    body = handed_on(**sizes)
    recording, right = recorded(dev, body)
    assert wrong_values(dev, body, right)
    (kind,) = {race.kind for race in check(recording).races}
    assert kind is (Hazard.LIFETIME if sizes is SAME else Hazard.WAR)


@pytest.mark.parametrize("way", ["covered", "fenced"])
@pytest.mark.parametrize("sizes", [SAME, HALF, MERGED, LARGE], ids=["same", "half", "merged", "large"])
def test_an_old_owner_that_is_covered_or_fenced_races_with_nobody(dev: Any, sizes: Any, way: str) -> None:
    body = handed_on(**sizes, **{way: True})
    recording, right = recorded(dev, body)
    assert check(recording).verdict is Verdict.OK
    assert not recording.widened
    assert not wrong_values(dev, body, right)


def test_a_stream_that_cuts_and_merges_its_own_blocks_is_told_nothing_of(dev: Any) -> None:
    def body(dev: Any) -> list[float]:
        found = []
        for n in (128, 256, 384, 128):
            x, y = ones(n), ones(n // 2, 3.0)
            found.append(float((x.sum() + y.sum()).item()))
            del x, y
        return found

    recording, right = recorded(dev, body)
    assert check(recording).verdict is Verdict.OK
    assert not told(recording)
    assert not any("memory" in name for name in recording.buffers)
    assert not wrong_values(dev, body, right)


@pytest.mark.parametrize("reuse", [True, False])
def test_a_block_that_waited_for_record_stream_is_no_fence_for_other_memory(dev: Any, reuse: bool) -> None:
    def body(dev: Any) -> list[float]:
        home, side = dev.Stream(), dev.Stream()
        y, x = torch.zeros(128, device="sim"), ones(128)
        dev.synchronize()
        with dev.stream(home):
            t = x + 1
        side.wait_stream(home)
        with dev.stream(side):
            y.copy_(t)
        t.record_stream(side)
        del t
        dev.host_work(50)
        with dev.stream(home):
            again = x * 3 if reuse else None
            z = y + 0
        dev.synchronize()
        del again
        return [float(z[0])]

    recording, right = recorded(dev, body)
    assert [race.kind for race in check(recording).races] == [Hazard.RAW]
    assert not told(recording)
    assert wrong_values(dev, body, right)


@pytest.mark.parametrize("fenced", [True, False])
def test_record_stream_covers_the_stream_that_it_names_and_no_other(dev: Any, fenced: bool) -> None:
    def body(dev: Any) -> list[float]:
        home, named, other = dev.Stream(), dev.Stream(), dev.Stream()
        with dev.stream(home):
            old = ones(128)
        outs = []
        for stream in (named, other):
            stream.wait_stream(home)
            with dev.stream(stream):
                outs.append(old + 0)
        old.record_stream(named)
        if fenced:
            home.wait_stream(other)
        del old
        named.synchronize()
        with dev.stream(home):
            new = ones(128, 2.0)
        dev.synchronize()
        del new
        return [float(out[0]) for out in outs]

    recording, right = recorded(dev, body)
    found = check(recording)
    assert [race.kind for race in found.races] == ([] if fenced else [Hazard.LIFETIME])
    assert bool(wrong_values(dev, body, right)) is not fenced


@pytest.mark.parametrize("fenced", [True, False])
def test_a_new_owner_that_another_stream_fills_first_comes_after_the_former_one(dev: Any, fenced: bool) -> None:
    def body(dev: Any) -> list[float]:
        home, side = dev.Stream(), dev.Stream()
        with dev.stream(home):
            old = ones(128)
            out = old + 0
            del old
            new = torch.empty(128, device="sim")
        if fenced:
            side.wait_stream(home)
        with dev.stream(side):
            new.fill_(2)
        dev.synchronize()
        return [float(out[0])]

    recording, right = recorded(dev, body)
    assert {race.kind for race in check(recording).races} == (set() if fenced else {Hazard.LIFETIME})
    assert bool(wrong_values(dev, body, right)) is not fenced


def test_a_covered_use_that_is_not_held_against_former_owners_is_named(dev: Any) -> None:
    def body(dev: Any) -> list[float]:
        side, old = dev.Stream(), ones(128)
        out = old + 0
        del old
        new = torch.empty(128, device="sim")
        with dev.stream(side):
            new.fill_(2)
        new.record_stream(side)
        dev.synchronize()
        return [float(out[0])]

    recording, right = recorded(dev, body)
    assert wrong_values(dev, body, right)
    (note,) = recording.widened
    assert "former owners" in note


@pytest.mark.parametrize("fenced", [True, False])
def test_memory_that_a_capture_cuts_is_shared_by_bytes(dev: Any, fenced: bool) -> None:
    def body(dev: Any) -> list[float]:
        graph, side = dev.CUDAGraph(), dev.Stream()
        x, out = ones(256), torch.zeros(128, device="sim")
        dev.synchronize()
        with dev.graph(graph):
            here = dev.current_stream()
            a = x * 2
            side.wait_stream(here)
            with dev.stream(side):
                out.copy_(a[128:])
            if fenced:
                here.wait_stream(side)
            del a
            b, c = x[:128] * 3, x[:128] * 4
            c + b
            here.wait_stream(side)
        graph.replay()
        dev.synchronize()
        return [float(out[0])]

    recording, right = recorded(dev, body)
    assert check(recording).verdict is (Verdict.OK if fenced else Verdict.RACE)
    assert bool(wrong_values(dev, body, right)) is not fenced


@pytest.mark.parametrize("fenced", [True, False])
@pytest.mark.parametrize("pinned", [True, False])
def test_what_a_graph_reads_after_its_free_belongs_to_the_next_owner(dev: Any, pinned: bool, fenced: bool) -> None:
    def source(value: float) -> torch.Tensor:
        return device.pinned(128, torch.float32, "sim").fill_(value) if pinned else ones(128, value)

    def body(dev: Any) -> list[float]:
        graph, side = dev.CUDAGraph(), dev.Stream()
        out, old = torch.zeros(128, device="sim"), source(1.0)
        dev.synchronize()
        with dev.graph(graph):
            out.copy_(old, non_blocking=True)
        del old
        new = source(5.0)
        dev.synchronize()
        graph.replay()
        if fenced:
            dev.synchronize()
        with dev.stream(side):
            new.fill_(9)
        dev.synchronize()
        return [float(out[0])]

    recording, right = recorded(dev, body)
    assert check(recording).verdict is (Verdict.OK if fenced else Verdict.RACE)
    assert bool(wrong_values(dev, body, right)) is not fenced


def test_a_pinned_block_waits_for_its_copies_before_it_is_handed_on(dev: Any) -> None:
    def body(dev: Any) -> list[float]:
        outs = []
        for value in (1.0, 2.0, 3.0):
            source = device.pinned(128, torch.float32, "sim").fill_(value)
            with dev.stream(dev.Stream()):
                outs.append(source.to("sim", non_blocking=True))
            del source
            dev.host_work(50)
        dev.synchronize()
        return [float(out[0]) for out in outs]

    recording, right = recorded(dev, body)
    assert check(recording).verdict is Verdict.OK
    assert not wrong_values(dev, body, right)
