"""One way to speak to a device: the same program text on a GPU (`cuda`) and on the simulated device (`sim`).

`dev = refimpl.device.get(name)` has the names of `torch.get_device_module(name)`: `Stream`, `Event`, `CUDAGraph`,
`stream(…)`, `graph(…)`, `synchronize()` on either device. What PyTorch has for one of them alone, or for neither, is
added: `dev.pinned`, `dev.Generator`, `dev.host_work`, `dev.sleep_stream`, `dev.host_clock_us`, `dev.cost`,
`dev.is_current`. All but the last stand here too, with the device as an argument. Importing this initialises nothing.

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
from refimpl.device.stated import touches

__all__ = ["best", "cost", "generator", "get", "host_clock_us", "host_work", "pinned", "sim", "sleep_stream", "touches"]
