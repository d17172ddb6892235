"""What of the tap on a GPU can be judged without one."""

from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from refimpl.device.listening import Listener, listening, named
from refimpl.record.cuda_calls import overheard
from refimpl.record.cuda_graphs import CaptureNotes
from refimpl.record.cuda_notes import keep_notes, mark_of, notes_of, serial_of
from refimpl.record.serials import Serials
from refimpl.record.work import Kind, Lane, Mark, Work

METHODS = [
    (torch.cuda.Event, "record"),
    (torch.cuda.Event, "wait"),
    (torch.cuda.Event, "query"),
    (torch.cuda.Stream, "wait_stream"),
    (torch.cuda.Stream, "synchronize"),
    (torch.cuda.CUDAGraph, "replay"),
    (torch.cuda, "synchronize"),
]
MAIN, SIDE = Lane(0), Lane(7)


def methods() -> list[Any]:
    return [getattr(owner, name) for owner, name in METHODS]


def test_pytorch_s_methods_are_replaced_inside_and_restored_after_an_error() -> None:
    before = methods()
    with suppress(ZeroDivisionError), overheard(Mock()):
        inside = methods()
        1 / 0  # noqa: B018
    assert all(now is not then for now, then in zip(inside, before, strict=True))
    assert methods() == before


def test_a_call_is_told_after_it_was_made_and_not_if_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(torch.cuda.Event, "record", lambda self, stream=None: made.append("call"))
    monkeypatch.setattr(torch.cuda.Event, "wait", lambda self, stream=None: 1 / 0)
    hearer = Mock()
    hearer.recorded.side_effect = lambda event, stream: made.append("told")
    with overheard(hearer):
        torch.cuda.Event.record(Mock())
        with pytest.raises(ZeroDivisionError):
            torch.cuda.Event.wait(Mock())
    assert made == ["call", "told"]
    hearer.waited.assert_not_called()


def kernel(name: str, lane: Lane) -> Work:
    return Work(Kind.LAUNCH, name, lane)


def test_a_wait_for_an_event_of_the_capture_brings_its_stream_in() -> None:
    notes, mark = CaptureNotes(MAIN), Mark(1)
    assert not notes.covers(SIDE)
    first, fork = kernel("first", MAIN), Work(Kind.RECORD, "record", MAIN, mark=mark)
    joined, side = Work(Kind.WAIT, "wait", SIDE, mark=mark), kernel("side", SIDE)
    for work in (first, fork, joined, side):
        notes.add(work)
    assert notes.covers(SIDE)
    assert notes.holds(mark)
    assert [[other.name for other in before] for _, before in notes.nodes] == [[], ["first"], ["record"], ["wait"]]


def test_each_launch_of_a_graph_has_nodes_of_its_own_in_the_same_order() -> None:
    notes = CaptureNotes(MAIN)
    notes.add(kernel("first", MAIN))
    notes.add(kernel("second", MAIN))
    (one, after, _), (two, _, _) = notes.instantiate(), notes.instantiate()
    assert [work.name for work in one] == ["first", "second"]
    assert after == ((), (one[0],))
    assert not set(map(id, one)) & set(map(id, two))


def test_a_thing_made_at_the_address_of_another_has_another_number() -> None:
    serials, seen = Serials(), set[int]()
    for _ in range(50):
        seen.add(serials.of(Mark(0)))
    assert len(seen) == 50
    kept = Mark(0)
    assert serials.of(kept) == serials.of(kept)


def test_a_region_is_told_to_those_who_listen_and_costs_nobody_else() -> None:
    told: list[str] = []

    class Names(Listener):
        def region(self, name: str) -> Any:
            told.append(name)
            return super().region(name)

    with named("before"), listening(Names()), named("inside"):
        pass
    with named("after"):
        pass
    assert told == ["inside"]


def test_what_is_known_of_an_event_or_a_graph_lives_as_long_as_it_does() -> None:
    class Thing:
        pass

    event, graph = Thing(), Thing()
    mark = mark_of(event, shared=False)
    assert mark_of(event, shared=True) is mark
    assert mark.serial == serial_of(event) != serial_of(graph)
    assert notes_of(graph) is None
    notes = CaptureNotes(MAIN)
    keep_notes(graph, notes)
    assert notes_of(graph) is notes
    keep_notes(graph, None)
    assert notes_of(graph) is None
