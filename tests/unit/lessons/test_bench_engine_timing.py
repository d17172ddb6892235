import pytest
import torch

import refimpl.device as devices
from refimpl.lessons.bench_engine.bounds import MatrixProducts, bytes_of, matrices_of, memory_bandwidth
from refimpl.lessons.bench_engine.loops import LoopRow, Steps, compared
from refimpl.lessons.bench_engine.timing import Spread, interleaved, queued_back_to_back_ms
from refimpl.lessons.bench_engine.workload import Workload


def test_a_spread_keeps_median_and_tenths() -> None:
    spread = Spread.of([float(n) for n in range(100, 0, -1)])
    assert (spread.median, spread.p10, spread.p90, spread.n) == (50.5, 11.0, 90.0, 100)
    assert spread.scaled(2).median == 101.0


def test_a_spread_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no times"):
        Spread.of([])


def test_back_to_back_work_is_timed_piece_by_piece_by_the_device() -> None:
    dev = devices.sim()
    times = queued_back_to_back_ms(dev, lambda: dev.sleep_stream(500), repeats=5)
    assert len(times) == 5
    assert times == pytest.approx([0.5] * 5, rel=0.2)


def test_a_stalled_queue_hides_a_host_that_is_slower_than_the_device() -> None:
    dev = devices.sim()

    def work() -> None:
        dev.host_work(300)
        dev.sleep_stream(100)

    bare = queued_back_to_back_ms(dev, work, repeats=4)
    stalled = queued_back_to_back_ms(dev, work, repeats=4, stall_us=10_000)
    assert min(bare) > 0.3
    assert stalled == pytest.approx([0.1] * 4, rel=0.2)


def test_variants_take_turns() -> None:
    order: list[str] = []

    def note(name: str) -> list[float]:
        order.append(name)
        return [float(len(order))]

    times = interleaved({"a": lambda: note("a"), "b": lambda: note("b")}, rounds=3)
    assert order == ["a", "b"] * 3
    assert times == {"a": [1.0, 3.0, 5.0], "b": [2.0, 4.0, 6.0]}


def test_the_first_round_of_a_comparison_is_thrown_away() -> None:
    seen = iter([100.0, 1.0, 1.0])
    (row,) = compared("nano", 4, {"loop": lambda: Steps([next(seen)] * 10)}, rounds=2)
    assert (row.step_ms, row.n, row.tokens_per_s) == (1.0, 20, 4000.0)


def test_throughput_counts_slow_steps_and_accepted_tokens() -> None:
    row = LoopRow.of("nano", "loop", 2, [Steps([1.0, 3.0], accept_len=4.0), Steps([2.0, 2.0], accept_len=2.0)])
    assert row.accept_len == 3.0
    assert row.tokens_per_s == pytest.approx(1000 * 2 * 3.0 / 2.0)


def test_matrix_products_leave_their_inputs_and_weights_alone() -> None:
    devices.sim()
    model = torch.nn.Sequential(torch.nn.Embedding(7, 4), torch.nn.Linear(4, 6, bias=False), torch.nn.LayerNorm(6))
    weights = matrices_of(model, model[0].weight)
    assert [tuple(weight.shape) for weight in weights] == [(6, 4), (7, 4)]
    assert bytes_of(weights) == 4 * (24 + 28)
    on_device = [weight.detach().to("sim") for weight in weights]
    products = MatrixProducts("sim", on_device, rows=3)
    products.replay()
    products.replay()
    devices.get("sim").synchronize()
    for weight, copy in zip(weights, on_device, strict=True):
        assert torch.equal(weight, copy.cpu())


def test_bandwidth_counts_reading_and_writing() -> None:
    devices.sim()
    measured = memory_bandwidth("sim", copy_bytes=1 << 16, repeats=3)
    assert measured.n == 3
    assert measured.tb_per_s > 0


def test_prompts_depend_on_the_seed_alone_and_hold_no_reserved_token() -> None:
    work = Workload(requests=3, prompt_tokens=50)
    assert work.prompts(4096) == work.prompts(4096)
    assert work.prompts(4096) != work.prompts(4096, seed=1)
    assert max(max(prompt) for prompt in work.prompts(4096)) < 4090
    with pytest.raises(ValueError, match="at least 1"):
        Workload(requests=0)
