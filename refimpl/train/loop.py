"""One training run, budgeted by the clock: the learning rate falls to its floor when the time is over."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

BETAS = (0.9, 0.95)
CLIP_NORM = 1.0
STEPS_BETWEEN_LOOKS = 20
"""The host waits for the device this often: the clock would otherwise run ahead of the work."""


@dataclass(frozen=True)
class Optimizing:
    """How a model is optimized.

    Args:
        learning_rate: at its peak.
        weight_decay: of matrices; norms and biases have none.
        warmup_steps: over which the rate rises.
        final_share: of the peak, where the cosine ends.
    """

    learning_rate: float
    weight_decay: float = 0.1
    warmup_steps: int = 100
    final_share: float = 0.01

    def rate(self, step: int, spent: float) -> float:
        """The learning rate of a step, `spent` being the share of the time that is over."""
        rising = min(1.0, (step + 1) / self.warmup_steps)
        falling = 0.5 * (1 + math.cos(math.pi * min(spent, 1.0)))
        return self.learning_rate * rising * (self.final_share + (1 - self.final_share) * falling)


@dataclass
class History:
    """What a run was: steps, tokens seen, seconds, and the loss along the way."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    losses: list[dict[str, float]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As it stands in the results, the losses thinned out."""
        kept = self.losses[:: max(1, len(self.losses) // 50)]
        last = self.losses[-1]["loss"] if self.losses else None
        return {
            "steps": self.steps,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 1),
            "loss": last,
            "curve": kept,
        }


def trainable(module: nn.Module) -> list[nn.Parameter]:
    """The parameters that are to be learned; a draft's frozen target is not among them."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def train_until(
    parameters: Iterable[nn.Parameter],
    loss: Callable[[], Tensor],
    optimizing: Optimizing,
    deadline: float,
    tokens_per_step: int,
    say: Callable[[str], None],
    between: Callable[[], None] = lambda: None,
) -> History:
    """Optimize until the deadline.

    Args:
        parameters: what is learned.
        loss: one batch's loss, a scalar to be minimized.
        optimizing: rates.
        deadline: in seconds of `time.time()`.
        tokens_per_step: for the history.
        say: told of progress.
        between: called now and then, for instance to take up new text.
    """
    parameters = list(parameters)
    optimizer = _optimizer(parameters, optimizing)
    history, start, at_report = History(), time.time(), 0.0
    seen = torch.zeros((), device=parameters[0].device)
    while (now := time.time()) < deadline:
        for group in optimizer.param_groups:
            group["lr"] = optimizing.rate(history.steps, (now - start) / (deadline - start))
        optimizer.zero_grad()
        value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
        optimizer.step()
        seen += value.detach()
        history.steps += 1
        history.tokens += tokens_per_step
        if history.steps % STEPS_BETWEEN_LOOKS == 0:
            mean = seen.item() / STEPS_BETWEEN_LOOKS
            if not math.isfinite(mean):
                raise FloatingPointError(f"the loss is {mean} at step {history.steps}: lower the learning rate")
            seen.zero_()
            history.losses.append(
                {"step": history.steps, "seconds": round(time.time() - start, 1), "loss": round(mean, 4)}
            )
            between()
            if time.time() > at_report + REPORT_SECONDS:
                at_report = time.time()
                rate = history.tokens / (at_report - start)
                say(f"step {history.steps} loss {mean:.4f}, {rate / 1000:,.0f}k tokens/s")
    history.seconds = time.time() - start
    return history


REPORT_SECONDS = 10.0


def _optimizer(parameters: list[nn.Parameter], optimizing: Optimizing) -> torch.optim.Optimizer:
    matrices = [parameter for parameter in parameters if parameter.dim() > 1]
    others = [parameter for parameter in parameters if parameter.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": optimizing.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=optimizing.learning_rate, betas=BETAS, fused=True
    )
