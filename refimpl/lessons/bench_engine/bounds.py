"""What no engine can be faster than on this device: its memory, and the matrix products of the weights alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from refimpl import device as devices
from refimpl.lessons.bench_engine.timing import Spread, queued_back_to_back_ms

COPY_BYTES = 4 << 30
"""Large enough that no cache holds a part of it worth counting."""


@dataclass(frozen=True)
class Bandwidth:
    """Bytes read plus bytes written by a copy within device memory, per second."""

    tb_per_s: float
    n: int


def memory_bandwidth(device: str, copy_bytes: int = COPY_BYTES, repeats: int = 30) -> Bandwidth:
    """The rate of a large copy from device memory to device memory.

    Args:
        device: where.
        copy_bytes: bytes of the source, random.
        repeats: copies timed.

    Order:
        The current stream; the host blocks until it has run dry.
    """
    dev = devices.get(device)
    source = torch.randint(0, 1 << 30, (copy_bytes // 4,), dtype=torch.int32, device=device)
    target = torch.empty_like(source)
    times = Spread.of(queued_back_to_back_ms(dev, lambda: target.copy_(source), repeats))
    return Bandwidth(tb_per_s=2 * copy_bytes / (times.median * 1e9), n=times.n)


def matrices_of(model: nn.Module, head: torch.Tensor) -> list[torch.Tensor]:
    """The weights that a decode step multiplies by, in the order in which a module lists them, and the head last.

    Args:
        model: a decoder.
        head: ``[vocab, d]``, the weight that makes logits, which may be the embedding table itself.
    """
    tables = [module.weight for module in model.modules() if isinstance(module, nn.Embedding)]
    others = {id(head), *(id(table) for table in tables)}
    return [weight for weight in model.parameters() if weight.ndim == 2 and id(weight) not in others] + [head]


def bytes_of(weights: Sequence[torch.Tensor]) -> int:
    """Bytes that one step reads of these weights."""
    return sum(weight.numel() * weight.element_size() for weight in weights)


class MatrixProducts:
    """A graph of one matrix product a weight, one after another, and nothing else: the floor of a decode step.

    Every product has an input of its own that nothing overwrites, since products alone, without norms between them,
    would run off to zero or infinity, and zeros are multiplied faster.

    Args:
        device: where the weights are.
        weights: ``[out, in]`` each.
        rows: rows of every input: requests, or requests times the tokens of a verify.
        seed: of the inputs.

    Order:
        `replay` queues the graph on the current stream and returns at once.
    """

    def __init__(self, device: str, weights: Sequence[torch.Tensor], rows: int, seed: int = 0) -> None:
        dev, generator = devices.get(device), devices.generator(device, seed)
        dtype = weights[0].dtype
        made: dict[int, torch.Tensor] = {
            width: torch.randn(rows, width, dtype=dtype, device=device, generator=generator)
            for width in {weight.shape[1] for weight in weights}
        }
        outputs = {
            width: torch.empty(rows, width, dtype=dtype, device=device) for width in {w.shape[0] for w in weights}
        }
        products = [(made[weight.shape[1]], weight.t(), outputs[weight.shape[0]]) for weight in weights]
        self._graph = captured(dev, lambda: _multiply(products))

    def replay(self) -> None:
        """Queue the products on the current stream."""
        self._graph.replay()


def captured(dev: Any, body: Callable[[], object]) -> Any:
    """A graph of what `body` queues, warmed up once.

    Order:
        A stream of its own; the host blocks.
    """
    stream, graph = dev.Stream(), dev.CUDAGraph()
    stream.wait_stream(dev.current_stream())
    with dev.stream(stream):
        body()
    stream.synchronize()
    with dev.graph(graph, stream=stream):
        body()
    dev.synchronize()
    return graph


@torch.no_grad()
def _multiply(products: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> None:
    for left, right, out in products:
        torch.mm(left, right, out=out)
