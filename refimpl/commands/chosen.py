"""The device that a command is asked for: there, or refused before anything starts."""

import os

from refimpl.program.errors import UserError


def device(named: str | None) -> str | None:
    """The device named on the command line, else in the environment; None where neither names one.

    Raises:
        UserError: a GPU is asked for and there is none, or the environment names a device that does not exist.
    """
    import torch

    from refimpl.device.select import DEVICE_VARIABLE

    asked = named or os.environ.get(DEVICE_VARIABLE) or None
    if asked not in ("cuda", "sim", None):
        raise UserError(f"{DEVICE_VARIABLE}={asked}: that device is not known; use cuda or sim")
    if asked == "cuda" and not torch.cuda.is_available():
        raise UserError("cuda: there is no GPU that this PyTorch can use; use --device sim")
    return asked
