"""What a prefill hands to the device: the prompts of its requests, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from refimpl.engine.forward_batch import ExtendInputs
from refimpl.engine.request import Req
from refimpl.engine.staging import Staging


def upload_prompts(reqs: Sequence[Req], slots: torch.Tensor, staging: Staging) -> tuple[ExtendInputs, torch.Tensor]:
    """Tokens, positions and bounds in one upload, on the current stream; the host does not block.

    Args:
        reqs: whose ``fill_ids``.
        slots: ``[T]`` and more, int32: the slots of the first request's tokens and reserve, then the second's, …
        staging: pinned memory.

    Returns:
        The inputs, and the lengths ``[bs]`` int64.
    """
    lens = [len(req.fill_ids) for req in reqs]
    total, bs = sum(lens), len(reqs)
    ends = list(accumulate(lens))
    numbers = [token for req in reqs for token in req.fill_ids]
    numbers += [position for n in lens for position in range(n)]
    numbers += [0, *ends] + [end - 1 for end in ends] + lens
    uploaded = staging.upload(numbers)
    input_ids, positions, q_starts, last_rows, seq_lens = uploaded.split([total, total, bs + 1, bs, bs])
    extend = ExtendInputs(input_ids, positions, slots, q_starts.int(), last_rows, tuple(lens))
    return extend, seq_lens
