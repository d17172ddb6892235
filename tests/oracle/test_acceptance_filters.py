"""Temperature, top-k and top-p keep what transformers' own warpers keep."""

import pytest
import torch
from transformers.generation import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from refimpl.model.sampling import SamplingMode, SamplingTensors, probabilities

CASES = [
    (1.0, 0, 1.0),
    (0.7, 5, 1.0),
    (1.3, 0, 0.8),
    (1.0, 20, 0.5),
    (0.5, 1, 0.9),
    (1.0, 200, 0.3),
    (2.0, 0, 0.999),
    (1.0, 3, 1e-4),
]


def warped(logits: torch.Tensor, temperature: float, top_k: int, top_p: float) -> torch.Tensor:
    warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        warpers.append(TopPLogitsWarper(top_p))
    return warpers(torch.zeros(len(logits), 1, dtype=torch.int64), logits).softmax(-1)


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_a_batch_of_filters_is_each_row_warped_alone(scale: float) -> None:
    logits = scale * torch.randn(len(CASES), 30, 100, generator=torch.Generator().manual_seed(0))
    temperature, top_k, top_p = zip(*CASES, strict=True)
    tensors = SamplingTensors(
        torch.tensor(temperature),
        torch.tensor(top_k, dtype=torch.int32),
        torch.tensor(top_p),
        torch.zeros(len(CASES), dtype=torch.int64),
    )
    ours = probabilities(logits, tensors, SamplingMode.FILTERED)
    for row, case in enumerate(CASES):
        theirs = warped(logits[row], *case)
        assert (ours[row] > 0).equal(theirs > 0), case
        torch.testing.assert_close(ours[row], theirs)
