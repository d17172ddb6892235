"""What an op costs on the simulated device, in virtual microseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class CostModel:
    """Durations from sizes: bytes over bandwidth, FLOPs over rate, and the host's part of each call.

    The defaults are of the order of one large data-centre GPU. Streams do not share the rates: two kernels that
    overlap take as long as alone.

    Args:
        launch_us: Host time to launch one op.
        event_us: Host time of an event's first record, beyond that of a record: the event is made then.
        record_us: Host time of a record.
        wait_us: Host time of a wait; the host does not block.
        synchronize_us: Host time of a synchronize beyond the time it is blocked.
        query_us: Host time of a query.
        graph_launch_us: Host time to launch one captured graph.
        kernel_us: Least device time of one op.
        copy_us: Least device time of one copy between host and device.
        device_bytes_per_us: Bandwidth of device memory.
        copy_bytes_per_us: Bandwidth between pinned host memory and the device.
        staging_bytes_per_us: Rate at which the host stages pageable memory.
        flops_per_us: Rate of matrix products.
    """

    launch_us: float = 7.0
    event_us: float = 2.6
    record_us: float = 1.35
    wait_us: float = 1.4
    synchronize_us: float = 0.8
    query_us: float = 0.6
    graph_launch_us: float = 14.5
    kernel_us: float = 2.0
    copy_us: float = 3.0
    device_bytes_per_us: float = 3.3e6
    copy_bytes_per_us: float = 5e4
    staging_bytes_per_us: float = 1e4
    flops_per_us: float = 4e8

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0.0 if field.name.endswith("_us") and "_per_" not in field.name else math.ulp(0.0)
            if not (least <= value < math.inf):
                raise ValueError(
                    f"CostModel({field.name}={value}): use a finite number, not negative, and above zero for a rate"
                )

    def kernel(self, bytes_: int, flops: int) -> float:
        """Device time of an op that moves `bytes_` and computes `flops`: the slower of the two, or the least time."""
        return max(self.kernel_us, bytes_ / self.device_bytes_per_us, flops / self.flops_per_us)

    def copy(self, bytes_: int) -> float:
        """Device time of a copy of `bytes_` between host and device."""
        return self.copy_us + bytes_ / self.copy_bytes_per_us

    def staging(self, bytes_: int) -> float:
        """Host time to stage `bytes_` of pageable memory before the device copies them."""
        return bytes_ / self.staging_bytes_per_us

    def scaled(self, host: float = 1.0, device: float = 1.0) -> CostModel:
        """The same model with every host time times `host` and every device time times `device`.

        Example:
            >>> CostModel().scaled(host=2).launch_us
            14.0
        """
        hosts = ("launch_us", "event_us", "record_us", "wait_us", "synchronize_us", "query_us", "graph_launch_us")
        times = {name: getattr(self, name) * host for name in hosts}
        times |= {name: getattr(self, name) * device for name in ("kernel_us", "copy_us")}
        rates = {
            name: getattr(self, name) / device for name in ("device_bytes_per_us", "copy_bytes_per_us", "flops_per_us")
        }
        return replace(self, **times, **rates, staging_bytes_per_us=self.staging_bytes_per_us / host)
