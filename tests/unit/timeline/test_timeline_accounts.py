"""Accounts: who was busy, who stood idle and why, what held the host."""

import pytest

from refimpl.program import EventRecord, HostWork, Launch, StreamWaitEvent, UserError
from refimpl.timeline import Accounts, accounts, gaps, schedule, table
from tests.unit.timeline.loops import overlapped, program


def of_loop(fence: str) -> Accounts:
    loop = overlapped(fence)
    return accounts(schedule(loop), loop, step_op="verify", warmup=1)


def test_busy_and_idle_add_up_to_the_window_on_every_stream() -> None:
    account = of_loop("synchronize")
    assert all(
        lane.busy_us + lane.idle_us == pytest.approx(account.us) for lane in account.lanes if lane.lane != "host"
    )


def test_host_is_busy_idle_or_blocked() -> None:
    account = of_loop("synchronize")
    host = account.lane("host")
    assert host.busy_us + host.idle_us + account.blocked_us == pytest.approx(account.us)


def test_synchronize_blocks_before_the_launch_and_wait_moves_the_block_after_it() -> None:
    early, late = of_loop("synchronize").blocked[0], of_loop("wait").blocked[0]
    assert (early.call, early.times, early.after_us) == ("synchronize(verify_done)", 4, 0)
    assert (late.call, late.times, late.before_us) == ("synchronize(copied)", 4, 0)
    assert early.before_us == early.us
    assert late.after_us == late.us


def test_blocked_time_is_not_split_without_a_program() -> None:
    blocked = accounts(schedule(overlapped("wait")), step_op="verify").blocked[0]
    assert (blocked.before_us, blocked.after_us) == (None, None)


def test_gpu_idle_under_synchronize_is_put_down_to_the_host_work() -> None:
    causes = {idle.cause for idle in of_loop("synchronize").gpu_idle if idle.us > 100}
    assert causes == {"host: build"}


def test_gap_of_a_lane_names_the_wait_that_makes_it() -> None:
    ops = (Launch(stream="s", us=300), EventRecord(event="e", stream="s"), StreamWaitEvent(event="e", stream="t"))
    found = gaps(schedule(program(*ops, Launch(stream="t", us=10))), "t")
    assert [(idle.cause, idle.from_us, idle.to_us) for idle in found] == [
        ("host: issuing calls", 0, 18),
        ("wait(e)", 18, 306),
    ]


def test_time_after_the_last_op_is_no_more_work() -> None:
    found = gaps(schedule(program(Launch(stream="s", us=10), HostWork(us=90))))
    assert found[-1].cause == "no more work"


def test_steps_need_enough_ops_of_that_name() -> None:
    with pytest.raises(UserError, match="0 ops named 'decode' ran"):
        accounts(schedule(overlapped("wait")), step_op="decode")


def test_unknown_lane_is_an_error_that_names_the_lanes() -> None:
    with pytest.raises(UserError, match="no lane 'copy'; it has host, schedule, forward"):
        of_loop("wait").lane("copy")


def test_table_shows_one_row_a_variant() -> None:
    text = table({fence: of_loop(fence) for fence in ("synchronize", "wait")})
    assert [line.split()[0] for line in text.splitlines()] == ["step", "synchronize", "wait"]
    assert "2.6" in text.splitlines()[1]
