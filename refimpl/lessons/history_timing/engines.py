"""Engines of one set of weights, one a variant, each with graphs for the batches that are measured and no others."""

from dataclasses import dataclass

from refimpl.engine.build import build_scheduler
from refimpl.engine.config import EngineConfig
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import preset
from refimpl.lessons.bench_engine.drive import Loop
from refimpl.lessons.bench_engine.subject import Subject
from refimpl.lessons.history_timing.cases import EAGLE, Case
from refimpl.lessons.history_timing.plan import ACCEPT_LEN
from refimpl.model.acceptance import ForcedAcceptance
from refimpl.model.config import EagleConfig, ModelConfig
from refimpl.model.registry import RANDOM, random_draft
from refimpl.model.shapes import FAMILIES

EAGLE_STEPS = 7
EAGLE_FEATURES = 3


@dataclass(frozen=True)
class SizedConfig(EngineConfig):
    """An engine's configuration with the batch sizes that it captures.

    Args:
        sizes: ascending; the last one is at least `max_running_requests`.
    """

    sizes: tuple[int, ...] = ()

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """As given: a run of fixed batches has no use for the others, and capturing takes longer than measuring."""
        return self.sizes


class Engines:
    """Schedulers by case, built when they are first asked for, on the weights of one subject.

    Args:
        subject: the weights.
        batches: that decode together, ascending.
        max_context: tokens of a request, at most.
    """

    def __init__(self, subject: Subject, batches: tuple[int, ...], max_context: int) -> None:
        self.subject, self.batches, self.max_context = subject, batches, max_context
        self._schedulers: dict[Case, Scheduler] = {}

    def scheduler(self, case: Case) -> Scheduler:
        """The engine of a case; idle between two runs.

        Order:
            The first call captures graphs and blocks the host.
        """
        key = case.engine
        if key not in self._schedulers:
            self._schedulers[key] = self._built(key)
        return self._schedulers[key]

    def close(self) -> None:
        """Gives the engines' memory and graphs back."""
        self._schedulers.clear()
        self.subject.close()

    def _built(self, case: Case) -> Scheduler:
        moment, subject = preset(case.preset), self.subject
        options = {**moment.engine, **({"needs_cpu_seq_lens": True} if case.needs_cpu_seq_lens else {})}
        config = SizedConfig(
            max_running_requests=self.batches[-1],
            max_context=self.max_context,
            fences=moment.chosen(),
            sizes=self.batches,
            **options,
        )
        forced = ForcedAcceptance.fixed(ACCEPT_LEN, subject.device)
        return build_scheduler(subject.target, subject.drafts[case.draft], config, forced)


def loop_of(case: Case) -> Loop:
    """The loop that a case's engine runs."""
    return Loop.OVERLAP if preset(case.preset).engine.get("overlap", True) else Loop.NORMAL


def load(name: str, device: str, kinds: tuple[str, ...]) -> Subject:
    """The weights of this name with drafts of these kinds.

    A size of random weights that has no EAGLE head gets one of its own shape, random as well.
    """
    missing = EAGLE in kinds and name in RANDOM and EAGLE not in FAMILIES[name].drafts()
    subject = Subject.load(name, device, [kind for kind in kinds if not (missing and kind == EAGLE)])
    if missing:
        subject.drafts[EAGLE] = random_draft(eagle_like(subject.target.config), subject.target)
    return subject


def eagle_like(target: ModelConfig) -> EagleConfig:
    """An EAGLE head as wide as the target, over features of layers at the beginning of each third."""
    return EagleConfig(
        hidden_size=target.hidden_size,
        num_attention_heads=target.num_attention_heads,
        num_key_value_heads=target.num_key_value_heads,
        head_dim=target.head_dim,
        intermediate_size=target.intermediate_size,
        rope_theta=target.rope_theta,
        rms_norm_eps=target.rms_norm_eps,
        max_position_embeddings=target.max_position_embeddings,
        feature_layers=tuple((target.num_hidden_layers - 1) * at // EAGLE_FEATURES for at in range(EAGLE_FEATURES)),
        num_steps=EAGLE_STEPS,
    )
