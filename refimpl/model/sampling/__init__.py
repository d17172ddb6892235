"""Sampling as pure functions of tensors: fixed shapes, no generator, nothing that blocks the host."""

from refimpl.model.sampling.probabilities import SamplingMode, SamplingTensors, probabilities
from refimpl.model.sampling.sample import Drawn, draw, sample
from refimpl.model.sampling.uniform import Purpose, uniform

__all__ = ["Drawn", "Purpose", "SamplingMode", "SamplingTensors", "draw", "probabilities", "sample", "uniform"]
