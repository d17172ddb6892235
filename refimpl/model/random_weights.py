"""Random weights for timing: N(0, 0.02), norms 1, made where the model is."""

import torch
from torch import nn

STANDARD_DEVIATION = 0.02


def fill_random(model: nn.Module, seed: int) -> None:
    """Fills every matrix with N(0, 0.02) and every norm's weight with 1, the same for the same seed.

    A GPU times zeros faster than numbers, hence random ones. On CUDA they are drawn there: 8 billion in seconds.
    Elsewhere they are drawn on the CPU and copied, as a device may have no generator of its own.

    Args:
        model: with its memory allocated.
        seed: of the generator.

    Order:
        Queued on the current stream; off CUDA the host blocks for pageable copies.

    Source:
        SGLang and vLLM, ``initialize_dummy_weights``, do the same with a narrow uniform distribution.
    """
    device = next(model.parameters()).device
    drawn_on = device if device.type == "cuda" else torch.device("cpu")
    generator = torch.Generator(device=drawn_on).manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.fill_(1.0)
            elif drawn_on == device:
                parameter.normal_(0.0, STANDARD_DEVIATION, generator=generator)
            else:
                drawn = torch.empty(parameter.shape, dtype=parameter.dtype)
                parameter.copy_(drawn.normal_(0.0, STANDARD_DEVIATION, generator=generator))
