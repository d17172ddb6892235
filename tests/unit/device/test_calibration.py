"""A calibration: a small file that says where its figures come from, and a cost model made of them alone."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refimpl.device.calibration import Calibration, Region, Sample, load
from refimpl.device.calibration.model import DIFFERENCES, MEASURED
from refimpl.device.calibration.values import ORIGIN, shipped
from refimpl.device.simulator.costs import CostModel
from refimpl.program.errors import UserError

Run = Callable[..., subprocess.CompletedProcess[str]]


def figure(median: float, unit: str = "us") -> Sample:
    return Sample(median, median - 1, median + 1, 30, unit)


@pytest.fixture
def calibration() -> Calibration:
    names = [*MEASURED, *DIFFERENCES, "bfloat16_flops_per_us"]
    samples = {name: figure(float(at)) for at, name in enumerate(names, start=1)}
    samples |= {"first_record_us": figure(samples["record_us"].median + 5)}
    samples |= {"graph_1_host_us": figure(10.0), "graph_500_host_us": figure(10.0 + 499 * 0.25)}
    return Calibration(
        origin={**dict.fromkeys(ORIGIN, "here"), "date": "2026-11-29"},
        samples=samples,
        operators={"add_": figure(7.0), "mm": figure(9.0), "copy D2D": figure(30.0)},
        regions={"forward": Region("a step", figure(4800.0))},
    )


def test_a_figure_is_the_median_with_its_spread() -> None:
    assert Sample.of([float(value) for value in range(101)], "us") == Sample(50.0, 10.0, 90.0, 101, "us")


def test_what_is_saved_is_what_is_loaded(calibration: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    calibration.save(file)
    assert load(file) == load(str(file)) == calibration
    assert list(tmp_path.iterdir()) == [file]


def test_an_old_file_stays_if_a_new_one_cannot_be_written(
    calibration: Calibration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.json"
    calibration.save(file)
    monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        calibration.save(file)
    monkeypatch.undo()
    assert load(file) == calibration


def test_the_model_takes_each_figure_as_it_was_measured(calibration: Calibration) -> None:
    model = CostModel.from_calibration(calibration)
    for name in (*MEASURED, *DIFFERENCES):
        assert getattr(model, name) == calibration.samples[name].median
    assert model.event_us == 5.0
    assert model.graph(1) == pytest.approx(10.0)
    assert model.graph(101) == pytest.approx(35.0)
    assert (model.launch("mm"), model.launch("an operator that was not measured")) == (9.0, 9.0)
    assert model.flops_per_us == calibration.samples["bfloat16_flops_per_us"].median


def test_a_difference_below_zero_costs_nothing(calibration: Calibration) -> None:
    noisy = replace(calibration, samples={**calibration.samples, "wake_us": figure(-0.4)})
    assert CostModel.from_calibration(noisy).wake_us == 0.0


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("date", None, "'date' must say where the figures come from"),
        ("operators", ..., "has other fields than"),
        ("samples", {"kernel_us": {"median": 1}}, "kernel_us has other fields than median, p10, p90, n, unit"),
        ("samples", {"kernel_us": {"median": "1", "p10": 1, "p90": 1, "n": 1, "unit": "us"}}, "must have numbers"),
    ],
)
def test_a_file_of_another_form_is_one_sentence(
    calibration: Calibration, tmp_path: Path, field: str, value: Any, says: str
) -> None:
    found = calibration.to_json() | {field: value}
    if value is ...:
        del found[field]
    (tmp_path / "odd.json").write_text(json.dumps(found))
    with pytest.raises(UserError, match=says):
        load(tmp_path / "odd.json")


@pytest.mark.parametrize("field", ["samples", "operators", "regions"])
def test_figures_that_are_no_object_are_named(calibration: Calibration, tmp_path: Path, field: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**calibration.to_json(), field: 3}))
    with pytest.raises(UserError, match=f"mine.json cannot be used: field '{field}' must be an object"):
        CostModel.from_calibration(file)


@pytest.mark.parametrize("median", [-1.0, float("nan"), float("inf"), None, "7", {}])
def test_a_median_that_is_no_time_is_named(calibration: Calibration, tmp_path: Path, median: object) -> None:
    file = tmp_path / "mine.json"
    for field, name in (("samples", "record_us"), ("operators", "mm")):
        damaged = calibration.to_json()
        damaged[field][name]["median"] = median
        file.write_text(json.dumps(damaged))
        with pytest.raises(UserError, match=f"mine.json cannot be used: {name}"):
            load(file)


def test_a_rate_of_nothing_is_named(calibration: Calibration, tmp_path: Path) -> None:
    samples = {**calibration.samples, "h2d_bytes_per_us": Sample(0.0, 0.0, 0.0, 30, "bytes/us")}
    replace(calibration, samples=samples).save(tmp_path / "mine.json")
    with pytest.raises(UserError, match=r"h2d_bytes_per_us has the median 0\.0, which is no rate"):
        load(tmp_path / "mine.json")


def test_a_difference_below_zero_is_loaded(calibration: Calibration, tmp_path: Path) -> None:
    replace(calibration, samples={**calibration.samples, "wake_us": figure(-3.0)}).save(tmp_path / "mine.json")
    assert CostModel.from_calibration(tmp_path / "mine.json").wake_us == 0.0


@pytest.mark.parametrize("source", [None, 3, ""])
def test_what_is_no_calibration_is_named(source: Any) -> None:
    with pytest.raises(UserError, match="give the name of one that is shipped, as 'h200', or a path"):
        CostModel.from_calibration(source)


def test_a_calibration_without_operators_says_so(calibration: Calibration) -> None:
    with pytest.raises(UserError, match="lacks 'operators'"):
        CostModel.from_calibration(replace(calibration, operators={}))


def test_a_calibration_without_a_figure_names_it(calibration: Calibration) -> None:
    samples = {name: sample for name, sample in calibration.samples.items() if name != "wait_us"}
    with pytest.raises(UserError, match="lacks 'wait_us'"):
        CostModel.from_calibration(replace(calibration, samples=samples))
    with pytest.raises(UserError, match="no region 'backward'"):
        calibration.region("backward")


def test_every_shipped_calibration_makes_a_model() -> None:
    assert "h200" in shipped()
    for name in shipped():
        assert min(sample.n for sample in load(name).samples.values()) >= 30
        assert (
            CostModel.from_calibration(name).scaled(host=2).record_us == 2 * CostModel.from_calibration(name).record_us
        )
    with pytest.raises(UserError, match="no calibration 'h2000' is shipped"):
        load("h2000")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "there is none that this PyTorch can use"),
        (["--save", "mine"], "--save and --measured are for --predict"),
        (["--predict", "h200", "--loop", "mine"], "give one of them"),
        (["--predict", "h200", "--measured", "bench_order"], "it has no rows of the loop"),
        (["--predict", "missing.json"], "missing.json: No such file"),
        (["--predict", "h200", "--save", "../out"], "a name has letters"),
    ],
)
def test_the_command_refuses_in_one_sentence(refimpl: Run, words: list[str], says: str) -> None:
    done = refimpl("calibrate", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
