"""One way to speak to a device: the same program text on a GPU (`cuda`) and on the simulated device (`sim`).

`dev = refimpl.device.get(name)` is `torch.get_device_module(name)`: it has `Stream`, `Event`, `CUDAGraph`,
`stream(…)`, `graph(…)`, `synchronize()` on either device. What the two name differently stands here: pinned memory,
generators, host work, a stall, the host's clock, named costs. Importing this initialises nothing.

Example:
    >>> import torch
    >>> from refimpl import device
    >>> dev = device.get("sim")
    >>> with dev.stream(dev.Stream()):
    ...     x = torch.ones(3, device="sim") + 1
    >>> dev.synchronize()
    >>> x.tolist()
    [2.0, 2.0, 2.0]
"""

from refimpl.device.host import cost, generator, host_clock_us, host_work, pinned, sleep_stream
from refimpl.device.select import best, get, sim

__all__ = ["best", "cost", "generator", "get", "host_clock_us", "host_work", "pinned", "sim", "sleep_stream"]
