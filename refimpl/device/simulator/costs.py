"""What an op costs on the simulated device, in virtual microseconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refimpl.device.calibration import Calibration

HOST = (
    "launch_us",
    "view_us",
    "event_us",
    "record_us",
    "wait_us",
    "synchronize_us",
    "query_us",
    "stream_us",
    "graph_launch_us",
    "graph_node_us",
    "wake_us",
    "region_us",
    "clock_us",
)
DEVICE = ("kernel_us", "start_us", "cross_us", "h2d_us", "d2h_us")
DEVICE_RATES = ("device_bytes_per_us", "h2d_bytes_per_us", "d2h_bytes_per_us", "flops_per_us")


@dataclass(frozen=True)
class CostModel:
    """Durations from sizes: bytes over bandwidth, FLOPs over rate, and the host's part of each call.

    The defaults are of the order of one large data-centre GPU, in round numbers, and leave out what is small:
    `from_calibration` has what was measured on one. Streams do not share the rates: two kernels that overlap take as
    long as alone.

    Args:
        launch_us: Host time to launch one op that `operators` does not name.
        operators: Host time to launch one op, by the operator's name.
        view_us: Host time to make a view of a tensor.
        event_us: Host time of an event's first record, beyond that of a record: the event is made then.
        record_us: Host time of a record.
        wait_us: Host time of a wait; the host does not block.
        synchronize_us: Host time of a synchronize beyond the time it is blocked.
        query_us: Host time of a query.
        stream_us: Host time to make a stream the current one, or to ask which is.
        graph_launch_us: Host time to launch one captured graph.
        graph_node_us: Host time that each node of the graph adds to that.
        wake_us: From the end of what the host is blocked for until the host goes on.
        region_us: Host time of entering and leaving a named region.
        clock_us: Host time of reading the host's clock.
        kernel_us: Least device time of one op.
        start_us: From an op's launch until an idle device starts it.
        cross_us: From the end of an op until the device starts what waits for it on another stream.
        h2d_us, d2h_us: Least device time of one copy from host to device, and back.
        device_bytes_per_us: Bandwidth of device memory.
        h2d_bytes_per_us, d2h_bytes_per_us: Bandwidth from pinned host memory to the device, and back.
        staging_bytes_per_us: Rate at which the host stages pageable memory.
        flops_per_us: Rate of matrix products.
    """

    launch_us: float = 7.0
    operators: Mapping[str, float] = field(default_factory=dict, hash=False)
    view_us: float = 0.0
    event_us: float = 2.6
    record_us: float = 1.35
    wait_us: float = 1.4
    synchronize_us: float = 0.8
    query_us: float = 0.6
    stream_us: float = 0.0
    graph_launch_us: float = 14.5
    graph_node_us: float = 0.0
    wake_us: float = 0.0
    region_us: float = 0.0
    clock_us: float = 0.0
    kernel_us: float = 2.0
    start_us: float = 0.0
    cross_us: float = 0.0
    h2d_us: float = 3.0
    d2h_us: float = 3.0
    device_bytes_per_us: float = 3.3e6
    h2d_bytes_per_us: float = 5e4
    d2h_bytes_per_us: float = 5e4
    staging_bytes_per_us: float = 1e4
    flops_per_us: float = 4e8

    def __post_init__(self) -> None:
        if not isinstance(self.operators, Mapping):
            raise TypeError(f"CostModel(operators={self.operators!r}): use a dict, of microseconds by operator's name")
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "operators"}
        for name, value in {**values, **{f"operators[{name!r}]": us for name, us in self.operators.items()}}.items():
            least = math.ulp(0.0) if "_per_" in name else 0.0
            if isinstance(value, bool) or not isinstance(value, Real) or not (least <= float(value) < math.inf):
                raise ValueError(
                    f"CostModel({name}={value!r}): use a finite number, not negative, and above zero for a rate"
                )

    @classmethod
    def from_calibration(cls, source: str | Path | Calibration) -> CostModel:
        """The model with the costs measured on a GPU, as `python -m refimpl calibrate` writes them.

        Args:
            source: A calibration, the name of one that is shipped, as "h200", or the path of one.
        Raises:
            UserError: There is none, or it lacks a figure.
        Example:
            >>> CostModel.from_calibration("h200").kernel_us < 5
            True
        """
        from refimpl.device.calibration.model import fields_of
        from refimpl.device.calibration.values import Calibration, load

        return cls(**fields_of(source if isinstance(source, Calibration) else load(source)))

    def launch(self, name: str) -> float:
        """Host time to launch one op of this name."""
        return self.operators.get(name, self.launch_us)

    def graph(self, nodes: int) -> float:
        """Host time to launch a captured graph of so many nodes."""
        return self.graph_launch_us + nodes * self.graph_node_us

    def kernel(self, bytes_: int, flops: int) -> float:
        """Device time of an op that moves `bytes_` and computes `flops`: the slower of the two, or the least time."""
        return max(self.kernel_us, bytes_ / self.device_bytes_per_us, flops / self.flops_per_us)

    def h2d(self, bytes_: int) -> float:
        """Device time of a copy of `bytes_` from the host to the device."""
        return self.h2d_us + bytes_ / self.h2d_bytes_per_us

    def d2h(self, bytes_: int) -> float:
        """Device time of a copy of `bytes_` from the device to the host."""
        return self.d2h_us + bytes_ / self.d2h_bytes_per_us

    def staging(self, bytes_: int) -> float:
        """Host time to stage `bytes_` of pageable memory before the device copies them."""
        return bytes_ / self.staging_bytes_per_us

    def scaled(self, host: float = 1.0, device: float = 1.0) -> CostModel:
        """The same model with every host time times `host` and every device time times `device`.

        Example:
            >>> CostModel().scaled(host=2).launch_us
            14.0
        """
        times = {name: getattr(self, name) * host for name in HOST}
        times |= {name: getattr(self, name) * device for name in DEVICE}
        rates = {name: getattr(self, name) / device for name in DEVICE_RATES}
        rates["staging_bytes_per_us"] = self.staging_bytes_per_us / host
        return replace(self, operators={name: us * host for name, us in self.operators.items()}, **times, **rates)


def refuse_no_costs(schedule: str, costs: object) -> None:
    """Raises where a schedule is given costs that are none."""
    if not isinstance(costs, CostModel):
        raise TypeError(f"{schedule}(costs={costs!r}): use a CostModel, as CostModel.from_calibration('h200')")
