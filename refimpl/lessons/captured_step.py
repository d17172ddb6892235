"""A decode step big enough to matter, captured in a graph: the matrix products of a transformer of a given shape.

It has no attention and no cache: it reads every weight once, as a decode step does, and its last kernels turn logits
into the accepted lengths. The weights are random; the lengths that come out depend on those that went in, and on how
often the graph ran: a step that starts from stale lengths never ends on those of the step before.
"""

from dataclasses import dataclass
from typing import Any

import torch

from refimpl import device as devices


@dataclass(frozen=True)
class StepShape:
    """Sizes of a decoder's matrix products.

    Args:
        layers, hidden, qkv, intermediate, vocab: as in the model's configuration; ``qkv`` is the joint width.
        batch: requests per step.
        sim_us: what the step costs on the simulated device, in microseconds: the whole graph, as measured on a GPU.
    """

    layers: int
    hidden: int
    qkv: int
    intermediate: int
    vocab: int
    batch: int = 16
    sim_us: float | None = None

    @property
    def parameters(self) -> int:
        """Weights that one step reads."""
        per_layer = self.hidden * (self.qkv + self.hidden + 3 * self.intermediate)
        return self.layers * per_layer + self.vocab * self.hidden


QWEN3_8B = StepShape(layers=36, hidden=4096, qkv=6144, intermediate=12288, vocab=151936)
"""The shape of Qwen3-8B: about 7.6e9 weights a step, 15 GB in bfloat16."""

NANO = StepShape(layers=2, hidden=32, qkv=48, intermediate=64, vocab=256, sim_us=4800.0)
"""A shape for the simulated device, which is told that the step takes as long as the large one does on an H200."""


def shape_for(device: str) -> StepShape:
    """The largest shape that fits the device: Qwen3-8B's, or fewer of its layers on a GPU with less memory."""
    if device == "sim":
        return NANO
    free, _ = torch.cuda.mem_get_info()
    layer = 2 * QWEN3_8B.hidden * (QWEN3_8B.qkv + QWEN3_8B.hidden + 3 * QWEN3_8B.intermediate)
    head = 2 * QWEN3_8B.vocab * QWEN3_8B.hidden
    fit = int((0.8 * free - head) // layer)
    if fit < 1:
        raise RuntimeError(f"the captured step needs {(head + layer) / 0.8e9:.1f} GB of free GPU memory for one layer")
    return StepShape(**{**vars(QWEN3_8B), "layers": min(QWEN3_8B.layers, fit)})


class CapturedStep:
    """One decode step as a graph with static input and output.

    Attributes:
        seq_lens: ``[batch]`` int64 on the device; the graph reads it when it runs. Written by the forward stream.
        new_seq_lens: ``[batch]`` int64 on the device; the graph's last kernel writes it.

    Order:
        ``replay`` queues the graph on the current stream and returns at once.
    """

    def __init__(self, device: str, shape: StepShape, seed: int = 0) -> None:
        self.device, self.shape = device, shape
        dev = devices.get(device)
        self._generator = devices.generator(device, seed)
        self._dtype = torch.float32 if device == "sim" else torch.bfloat16
        self.seq_lens = torch.zeros(shape.batch, dtype=torch.int64, device=device)
        self.new_seq_lens = torch.zeros(shape.batch, dtype=torch.int64, device=device)
        self._tick = torch.zeros(shape.batch, dtype=torch.int64, device=device)
        self._embedded = self._weight(shape.batch, shape.hidden)
        self._layers = [
            (
                self._weight(shape.hidden, shape.qkv),
                self._weight(shape.hidden, shape.hidden),
                self._weight(shape.hidden, 2 * shape.intermediate),
                self._weight(shape.intermediate, shape.hidden),
            )
            for _ in range(shape.layers)
        ]
        self._head = self._weight(shape.hidden, shape.vocab)
        self._graph = self._capture(dev)

    def reset(self, seq_lens: torch.Tensor) -> None:
        """Start again: the next replay is the first, and ``new_seq_lens`` holds these lengths."""
        self._tick.zero_()
        self.new_seq_lens.copy_(seq_lens)

    def replay(self) -> None:
        """Queue the step on the current stream."""
        self._graph.replay()

    def _weight(self, rows: int, columns: int) -> torch.Tensor:
        weight = torch.randn(rows, columns, dtype=self._dtype, device=self.device, generator=self._generator)
        return weight.mul_(rows**-0.5)

    def _capture(self, dev: Any) -> Any:
        side = dev.Stream()
        with dev.stream(side):
            self._body()
        side.synchronize()
        graph = dev.CUDAGraph()
        with dev.graph(graph, stream=side), devices.cost(self.device, "forward", us=self.shape.sim_us):
            self._body()
        dev.synchronize()
        return graph

    def _body(self) -> None:
        hidden = self._embedded * (1 + (self.seq_lens % 61).to(self._dtype).unsqueeze(1) / 64)
        for qkv, out, gate_up, down in self._layers:
            mixed = (hidden @ qkv)[:, : self.shape.hidden] @ out
            hidden = torch.nn.functional.rms_norm(hidden + mixed, (self.shape.hidden,))
            gate, up = (hidden @ gate_up).chunk(2, dim=-1)
            hidden = torch.nn.functional.rms_norm(
                hidden + (torch.nn.functional.silu(gate) * up) @ down, (self.shape.hidden,)
            )
        tokens = (hidden @ self._head).argmax(dim=-1)
        self._tick.add_(1)
        torch.add(self.seq_lens, 1 + (tokens + self._tick) % 4, out=self.new_seq_lens)
