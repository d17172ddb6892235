"""transformers' `generate_batch`: continuous batching with paged keys and values, graphs, and an overlapped loop.

Without a flash-attention package it runs `paged|sdpa`: it gathers the keys and values of all requests, padded to a
fixed length, and masks the pairs that do not belong together. What it is given to pad to decides its speed, so it is
measured twice: padded as it chooses itself, and padded to fit the workload.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from refimpl.lessons.peers.clock import between_ms
from refimpl.lessons.peers.generate import WARM_STEPS, Run

BLOCK_TOKENS = 256
"""Tokens of one block of its cache, its own default."""

KEY_STEP = 512
"""Fitted, keys are padded to a multiple of this: a graph a multiple, so finer ones cost captures and gain little."""

_ITS_OWN = 0
"""What its configuration calls a padding that it chooses itself."""


class Padding(Enum):
    """What the peer pads queries and keys to, so that a graph of fixed shapes fits."""

    ITS_OWN = "its own"
    """Its defaults: 64 queries, and 16,384 keys or its whole cache."""
    FITTED = "fitted"
    """As many queries as requests, keys to the next multiple of `KEY_STEP`, a cache no larger than the workload."""


@dataclass(frozen=True)
class Settings:
    """How `generate_batch` runs.

    Args:
        padding: see `Padding`.
        graphs: capture and replay CUDA graphs.
        overlapped: its asynchronous loop, which prepares a batch while the one before runs; CUDA only.
        compile_level: 0 compiles nothing; 1 to 3 as `ContinuousBatchingConfig.default_compile_level`.
    """

    padding: Padding = Padding.FITTED
    graphs: bool = True
    overlapped: bool = True
    compile_level: int = 0


class GenerateBatch:
    """The peer, set up once for one workload; its first run captures its graphs, so measure a later one.

    Args:
        model: a causal language model of transformers.
        requests, prompt_tokens, new_tokens: the workload: all requests at once, equally long.
        settings: how it runs.
    """

    def __init__(self, model: Any, requests: int, prompt_tokens: int, new_tokens: int, settings: Settings) -> None:
        self._model, self._new_tokens = model, new_tokens
        self._config = _config(requests, prompt_tokens + new_tokens, settings)
        self._generation = _generation_config(new_tokens)

    def run(self, prompts: Sequence[Sequence[int]]) -> Run:
        """Decode these prompts greedily; steps are counted while every request is decoding.

        Raises:
            RuntimeError: the peer lost a request, or the requests are too short to decode all at once.
        """
        with _errors_only():
            outputs = self._model.generate_batch(
                inputs=[list(prompt) for prompt in prompts],
                generation_config=self._generation,
                continuous_batching_config=self._config,
                record_timestamps=True,
                persistent_manager=True,
            )
        done = list(outputs.values())
        lost = [output.error for output in done if output.error is not None or output.timestamps is None]
        if lost or len(done) != len(prompts):
            raise RuntimeError(f"generate_batch finished {len(done) - len(lost)} of {len(prompts)} requests: {lost}")
        steps = between_ms(_all_decoding([output.timestamps for output in done])[WARM_STEPS:])
        if not steps:
            raise RuntimeError(
                f"generate_batch: with {self._new_tokens} new tokens the first of {len(prompts)} requests ended before "
                "all were decoding: ask for more"
            )
        return Run(tuple(steps), (1,) * len(steps), tuple(done[0].generated_tokens))

    def close(self) -> None:
        """Give its cache and graphs back, and the model its own attention."""
        self._model.destroy_cached_continuous_batching_manager()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


@contextmanager
def _errors_only() -> Iterator[None]:
    """It warns at every run that its set-up is kept, which is what is wanted here."""
    logger = logging.getLogger("ContinuousBatchingLogger")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _all_decoding(timestamps: Sequence[Sequence[float]]) -> list[float]:
    """The times at which the request that started last got tokens, until the first request finished."""
    last_to_start = max(timestamps, key=lambda times: times[0])
    first_end = min(times[-1] for times in timestamps)
    return [time for time in last_to_start if time <= first_end]


def _config(requests: int, longest: int, settings: Settings) -> Any:
    from transformers import ContinuousBatchingConfig

    fitted = settings.padding is Padding.FITTED
    blocks_each = -(-longest // BLOCK_TOKENS)
    # Its mask has a row per token of a batch and a column per token of the cache, and is copied to the device whole.
    return ContinuousBatchingConfig(
        block_size=BLOCK_TOKENS,
        num_blocks=requests * blocks_each if fitted else max(64, requests * blocks_each),
        max_batch_tokens=max(64, requests) if fitted else 512,
        max_requests_per_batch=requests,
        allow_block_sharing=False,
        use_cuda_graph=settings.graphs,
        use_async_batching=settings.overlapped,
        default_compile_level=settings.compile_level,
        safety_margin=0.0,
        q_padding_interval_size=requests if fitted else _ITS_OWN,
        kv_padding_interval_size=KEY_STEP if fitted else _ITS_OWN,
    )


def _generation_config(new_tokens: int) -> Any:
    from transformers import GenerationConfig

    made: Callable[..., Any] = GenerationConfig  # untyped upstream
    return made(max_new_tokens=new_tokens, do_sample=False, eos_token_id=-1, pad_token_id=0)
