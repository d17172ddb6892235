"""The jobs of a run, by name. Each reads and writes files of one folder and knows nothing of the others' processes."""

import json
import time
from typing import Any

import torch

from refimpl.model import ops, registry
from refimpl.model.config_io import save_family
from refimpl.model.qwen3 import Qwen3
from refimpl.model.shapes import FAMILIES
from refimpl.model.weights_io import save_weights
from refimpl.train import compiling, corpus
from refimpl.train.drafts import train_draft
from refimpl.train.evaluate import acceptance, decode, held_out_loss, unique_ngrams
from refimpl.train.initial import initialize
from refimpl.train.loop import train_until, trainable
from refimpl.train.plan import SizePlan
from refimpl.train.propose import drafter
from refimpl.train.selfgen import write_until
from refimpl.train.sources import Domain
from refimpl.train.target import TargetBatches
from refimpl.train.target import loss as target_loss
from refimpl.train.text import CorpusText
from refimpl.train.workplace import Say, Workplace, wait_for_file

KINDS = registry.DRAFT_KINDS


def run(job: str, size: str, plan: SizePlan, place: Workplace, deadline: float) -> None:
    """One job: `target`, `selfgen`, `draft-<kind>` or `evaluate-<kind>`.

    Args:
        job: which.
        size: `nano` or `small`.
        plan: of the size.
        place: files and device.
        deadline: when it should be over, in seconds of `time.time()`.

    Raises:
        ValueError: no such job.
    """
    stage, _, kind = job.partition("-")
    say = _speaker(f"{size} {job}")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    with ops.reference():
        match stage:
            case "target" if not kind:
                place.report(job, size, _train_target(size, plan, place, deadline, say))
            case "selfgen" if not kind:
                place.report(job, size, _write(size, plan, place, deadline, say))
            case "draft" if kind in KINDS:
                place.report(job, size, train_draft(kind, size, plan, place, deadline, say))
            case "evaluate" if kind in KINDS:
                _evaluate(kind, size, plan, place, deadline, say)
            case _:
                raise ValueError(f"there is no job {job!r}: the schedule in refimpl.train.plan names them all")


def _train_target(size: str, plan: SizePlan, place: Workplace, deadline: float, say: Say) -> dict[str, Any]:
    config = FAMILIES[size].target
    save_family(FAMILIES[size], place.weights / size / "config.json")
    target = Qwen3(config).to(place.device)
    initialize(target, config.num_hidden_layers, seed=0)
    resumed = place.resume(target, size, "target", say)
    batches = TargetBatches(target, CorpusText(place.corpus, corpus.TRAIN, place.device, seed=1), plan)
    loss = compiling.ready(lambda *batch: target_loss(target, *batch), trainable(target), batches.plain(), place, say)
    batches.begin(time.time(), deadline)
    tokens = plan.target.rows * plan.context
    history = train_until(
        trainable(target), lambda: loss(*batches.next()), plan.target.optimizing, deadline, tokens, say
    )
    save_weights(target, place.weights_file(size, "target"))
    say(f"saved after {history.steps} steps, {history.tokens:,} tokens; repeats itself {batches.repeated_share}")
    parameters = sum(parameter.numel() for parameter in target.parameters())
    own = {"repeated_share_of_own_text": batches.repeated_share, "resumed": resumed}
    return {"parameters": parameters, **history.to_json(), **own, "held_out": _held_out(size, plan, place)}


def _held_out(size: str, plan: SizePlan, place: Workplace) -> dict[str, Any]:
    """Losses of the target on disk, rounded as it is: that one is the target."""
    target = registry.load_target(size, place.device, weights=place.weights)
    splits = json.loads((place.corpus / corpus.CORPUS).read_text())["splits"]
    found = {}
    for domain in Domain:
        text, split = CorpusText(place.corpus, domain, place.device, seed=3), splits[domain.value]
        windows = text.batch(plan.evaluation.prompts, plan.context + 1)
        found[domain.value] = held_out_loss(target, windows, split["bytes"] / split["tokens"])
    return found


def _write(size: str, plan: SizePlan, place: Workplace, deadline: float, say: Say) -> dict[str, Any]:
    wait_for_file(place.weights_file(size, "target"), deadline)
    dtype = torch.bfloat16 if place.on_gpu else torch.float32
    target = registry.load_target(size, place.device, dtype, weights=place.weights)
    prompts = CorpusText(place.corpus, corpus.TRAIN, place.device, seed=2)
    return write_until(target, prompts, plan.writing, place.shards(size), deadline, say)


def _evaluate(kind: str, size: str, plan: SizePlan, place: Workplace, deadline: float, say: Say) -> None:
    """Reports after each temperature, so that a run that is cut short has said something."""
    wait_for_file(place.weights_file(size, kind), deadline)
    target = registry.load_target(size, place.device, weights=place.weights)
    draft = registry.load_draft(kind, size, target, weights=place.weights)
    wanted, guess = plan.evaluation, drafter(draft)
    texts = [CorpusText(place.corpus, domain, place.device, seed=6) for domain in Domain]
    prompts = torch.cat([text.batch(wanted.prompts, wanted.prompt_tokens) for text in texts])
    report: dict[str, Any] = {"drafts": guess.num_drafts, "by_temperature": {}}
    for heat in wanted.temperatures:
        start = time.time()
        decoded = decode(target, guess, prompts, draft.config.feature_layers, wanted.new_tokens, heat)
        found = {}
        for number, domain in enumerate(Domain):
            rows = slice(number * wanted.prompts, (number + 1) * wanted.prompts)
            written = [row[wanted.prompt_tokens :][: wanted.new_tokens] for row in decoded.tokens[rows].tolist()]
            found[domain.value] = {**acceptance(decoded.counts[rows]), "unique_8grams": unique_ngrams(written)}
        report["by_temperature"][str(heat)] = found
        place.report(f"evaluate-{kind}", size, report)
        say(f"T={heat}: {_line(found)} ({time.time() - start:.1f} s)")


def _line(found: dict[str, Any]) -> str:
    return ", ".join(
        f"{domain} {each['accept_len']:.2f} (unique {each['unique_8grams']['within_a_text']:.2f})"
        for domain, each in found.items()
    )


def _speaker(name: str) -> Say:
    start = time.time()

    def say(words: str) -> None:
        print(f"[{name} {time.time() - start:5.1f} s] {words}", flush=True)

    return say
