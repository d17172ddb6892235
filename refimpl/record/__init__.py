"""Taps that turn running PyTorch code into a stream program, and its times into a trace.

Nothing that is recorded knows of it.

Example:
    >>> import torch
    >>> from refimpl import device
    >>> from refimpl.record import record
    >>> dev = device.get("sim")
    >>> forward, copy = dev.Stream(), dev.Stream()
    >>> lens = torch.zeros(4, device="sim")
    >>> dev.synchronize()
    >>> with record("sim") as recording:
    ...     recording.name(forward, "forward")
    ...     recording.name(copy, "copy")
    ...     recording.name(lens, "lens")
    ...     with dev.stream(forward):
    ...         _ = lens.add_(1)
    ...     with dev.stream(copy):
    ...         _ = lens.cpu()
    >>> [type(op).__name__ for op in recording.program().ops]
    ['Launch', 'Memcpy', 'StreamSync']
"""

from refimpl.record.recording import Recording, record

__all__ = ["Recording", "record"]
