"""A run's report as rows that prose and timing runs quote: one a model, one a draft, temperature and kind of text."""

from collections.abc import Mapping
from typing import Any

SIZES = ("nano", "small")
KINDS = ("eagle", "mtp", "dflash")


def models(jobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How each target and draft was trained: size, parameters, steps, tokens seen, seconds, last mean loss."""
    found = []
    for size in SIZES:
        for model in ("target", *KINDS):
            report = jobs.get(f"{size}-target" if model == "target" else f"{size}-draft-{model}")
            if report is not None:
                row = {key: report[key] for key in ("parameters", "steps", "tokens", "seconds", "loss")}
                found.append({"size": size, "model": model, **row})
    return found


def losses(jobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The loss of each target over held-out text of each domain."""
    return [
        {"size": size, "text": domain, **figures}
        for size in SIZES
        if f"{size}-target" in jobs
        for domain, figures in jobs[f"{size}-target"]["held_out"].items()
    ]


def acceptance(jobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What verifies accepted; `histogram` counts them by accept_len, from 1 on."""
    return [
        {
            "size": size,
            "draft": kind,
            "drafts": report["drafts"],
            "temperature": float(heat),
            "text": domain,
            "accept_len": figures["accept_len"],
            "verifies": figures["verifies"],
            "unique_8grams": figures["unique_8grams"]["within_a_text"],
            "unique_8grams_among_all": figures["unique_8grams"]["among_all"],
            "conditional_acceptance": figures["conditional_acceptance"],
            "histogram": figures["histogram"],
        }
        for size in SIZES
        for kind in KINDS
        if (report := jobs.get(f"{size}-evaluate-{kind}")) is not None
        for heat, domains in report["by_temperature"].items()
        for domain, figures in domains.items()
    ]
