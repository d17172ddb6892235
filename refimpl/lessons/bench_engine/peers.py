"""transformers' loops as rows: which of them, how they are set, and one call that runs each once."""

from collections.abc import Callable, Sequence
from typing import Any

from refimpl.lessons.bench_engine.loops import Steps
from refimpl.lessons.peers.continuous import GenerateBatch, Padding, Settings
from refimpl.lessons.peers.generate import Run, greedy, greedy_with_dflash

GENERATE = "transformers generate"
GENERATE_DFLASH = "transformers generate, dflash"
BATCH_ITS_OWN = "transformers generate_batch, overlapped, its own padding"
BATCH_FITTED = "transformers generate_batch, overlapped, fitted padding"

_PADDINGS = {BATCH_ITS_OWN: Padding.ITS_OWN, BATCH_FITTED: Padding.FITTED}


def generate(model: Any, prompts: Sequence[Sequence[int]], new_tokens: int) -> Callable[[], Steps]:
    """`generate` on all prompts at once."""
    return lambda: _steps(greedy(model, prompts, new_tokens))


def generate_with_dflash(model: Any, draft: Any, prompt: Sequence[int], new_tokens: int) -> Callable[[], Steps]:
    """`generate` with a DFLASH draft on one prompt."""
    return lambda: _steps(greedy_with_dflash(model, draft, prompt, new_tokens))


class Batched:
    """`generate_batch` in its overlapped settings, each with a model object of its own on the same weights.

    A model object holds one set-up at a time, and setting one up captures graphs.

    Args:
        new_model: makes a model object of transformers on the weights.
        prompts: token ids, equally many for each.
        new_tokens: tokens to add to each.
        overlapped: False where there is no CUDA: neither graphs nor overlap.
    """

    def __init__(
        self,
        new_model: Callable[[], Any],
        prompts: Sequence[Sequence[int]],
        new_tokens: int,
        overlapped: bool = True,
    ) -> None:
        self._prompts = prompts
        self._peers = {
            name: GenerateBatch(
                new_model(), len(prompts), len(prompts[0]), new_tokens, Settings(padding, overlapped, overlapped)
            )
            for name, padding in _PADDINGS.items()
        }

    def loops(self) -> dict[str, Callable[[], Steps]]:
        """By name, what runs each of them once."""
        return {name: self._once(peer) for name, peer in self._peers.items()}

    def close(self) -> None:
        """Give caches and graphs back."""
        for peer in self._peers.values():
            peer.close()

    def _once(self, peer: GenerateBatch) -> Callable[[], Steps]:
        return lambda: _steps(peer.run(self._prompts))


def _steps(run: Run) -> Steps:
    return Steps(run.steps_ms, run.accept_len)
