"""Copies and fills: what the host may count on when the call returns.

Source: NVIDIA, "API synchronization behavior".
"""

import pytest

from refimpl.program import Api, CopyKind
from tests.litmus.words import (
    OK,
    RACE,
    copy,
    copy_now,
    fill,
    fill_now,
    host_read,
    host_write,
    read,
    stream_synchronize,
    verdict,
    write,
)


@pytest.mark.parametrize("target", ["pinned", "pageable"])
def test_a_sync_copy_to_the_host_returns_when_it_has_completed(target: str) -> None:
    assert verdict(copy_now("x", target), host_read(target)) == OK
    assert verdict(copy_now("x", target), write("s")) == OK


@pytest.mark.parametrize("target", ["pinned", "pageable"])
def test_an_async_copy_to_the_host_is_not_counted_on_even_for_pageable_memory(target: str) -> None:
    assert verdict(copy("x", target, "s"), host_read(target)) == RACE
    assert verdict(copy("x", target, "s"), stream_synchronize("s"), host_read(target)) == OK


def test_a_sync_copy_from_pinned_memory_returns_when_it_has_completed() -> None:
    assert verdict(copy_now("pinned", "x"), host_write("pinned")) == OK
    assert verdict(copy_now("pinned", "x"), read("s")) == OK


def test_a_sync_copy_from_pageable_memory_returns_when_the_source_is_staged() -> None:
    assert verdict(copy_now("pageable", "x"), host_write("pageable")) == OK
    assert verdict(copy_now("pageable", "x"), read("s")) == RACE
    assert verdict(copy_now("pageable", "x"), read("b")) == OK
    assert verdict(copy_now("pageable", "x"), read("legacy")) == OK
    assert verdict(copy_now("pageable", "x"), stream_synchronize("legacy"), read("s")) == OK


def test_a_sync_copy_from_pageable_memory_first_waits_for_its_stream() -> None:
    assert verdict(write("legacy", "pinned"), copy_now("pageable", "x"), host_read("pinned")) == OK
    assert verdict(write("b", "pinned"), copy_now("pageable", "x"), host_read("pinned")) == OK
    assert verdict(write("s", "pinned"), copy_now("pageable", "x"), host_read("pinned")) == RACE


@pytest.mark.parametrize("source", ["pinned", "pageable"])
def test_an_async_copy_leaves_its_source_in_use(source: str) -> None:
    assert verdict(copy(source, "x", "s"), host_write(source)) == RACE
    assert verdict(copy(source, "x", "s"), stream_synchronize("s"), host_write(source)) == OK


def test_a_copy_within_the_device_never_holds_the_host() -> None:
    for api in Api:
        assert verdict(copy("x", "managed", "s", api=api), host_read("managed")) == RACE
        assert verdict(copy("x", "managed", "s", api=api, kind=CopyKind.D2D), host_read("managed")) == RACE


@pytest.mark.parametrize("api", list(Api))
def test_a_copy_from_host_to_host_is_synchronous_in_either_form(api: Api) -> None:
    assert verdict(copy("pageable", "other", "s", api=api), host_read("other")) == OK
    assert verdict(copy("pinned", "other", "s", api=api), host_write("pinned")) == OK


def test_an_async_copy_from_host_to_host_comes_after_its_stream_and_a_sync_one_after_legacy() -> None:
    assert verdict(copy("x", "pinned", "s"), copy("pinned", "other", "s"), host_read("other")) == OK
    assert verdict(copy("x", "pinned", "s"), copy("pinned", "other", "t"), host_read("other")) == RACE
    assert verdict(copy("x", "pinned", "s"), copy_now("pinned", "other")) == RACE
    assert verdict(copy("x", "pinned", "b"), copy_now("pinned", "other")) == OK


def test_managed_memory_counts_as_device_memory_when_the_kind_is_default() -> None:
    assert verdict(copy_now("managed", "pageable"), host_read("pageable")) == OK
    assert verdict(copy_now("managed", "x"), host_write("managed")) == RACE


def test_a_sync_copy_runs_on_the_legacy_stream() -> None:
    assert verdict(write("b"), copy_now("x", "pinned")) == OK
    assert verdict(write("s"), copy_now("x", "pinned")) == RACE
    assert verdict(write("s"), copy("x", "pinned", "s", api=Api.SYNC)) == RACE


def test_a_fill_holds_the_host_only_when_it_is_sync_and_its_target_is_pinned() -> None:
    assert verdict(fill_now("pinned"), host_read("pinned")) == OK
    assert verdict(fill("pinned", "s"), host_read("pinned")) == RACE
    assert verdict(fill_now("managed"), host_read("managed")) == RACE
    assert verdict(fill_now("x"), read("s")) == RACE
    assert verdict(fill_now("x"), read("b")) == OK


def test_as_observed_a_sync_copy_from_pageable_memory_has_completed() -> None:
    assert verdict(copy_now("pageable", "x"), read("s"), as_observed=True) == OK
    assert verdict(copy("pageable", "x", "t"), read("s"), as_observed=True) == RACE


def test_as_observed_a_sync_fill_of_managed_memory_holds_the_host() -> None:
    assert verdict(fill_now("managed"), host_read("managed"), as_observed=True) == OK
    assert verdict(fill("managed", "s"), host_read("managed"), as_observed=True) == RACE
    assert verdict(fill_now("x"), read("s"), as_observed=True) == RACE
