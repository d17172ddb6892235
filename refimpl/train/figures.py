"""A run's report as rows that prose and timing runs quote: one a model, one a draft, temperature and kind of text."""

from collections.abc import Mapping, Sequence
from typing import Any

SIZES = ("nano", "small")
KINDS = ("eagle", "mtp", "dflash")


def merged(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is true of the weights after several runs, each of which went on from the one before.

    Args:
        reports: the runs' `training.json`, oldest first.

    Returns:
        The last report, with `jobs` that the last run did not do from the ones before; and `runs`, what each did.
    """
    runs = [
        {**report["machine"], "seconds": report["seconds"], "models": models(report["jobs"], number)}
        for number, report in enumerate(reports, 1)
    ]
    jobs = {name: job for report in reports for name, job in report["jobs"].items()}
    return {**reports[-1], "jobs": jobs, "runs": runs}


def models(jobs: Mapping[str, Any], run: int) -> list[dict[str, Any]]:
    """How a run trained each target and draft: size, parameters, steps, tokens seen, seconds, last mean loss.

    Args:
        jobs: of the run's report.
        run: its number; `resumed` says whether a model went on from the run before.
    """
    found = []
    for size in SIZES:
        for model in ("target", *KINDS):
            report = jobs.get(f"{size}-target" if model == "target" else f"{size}-draft-{model}")
            if report is not None:
                row = {key: report[key] for key in ("parameters", "steps", "tokens", "seconds", "loss")}
                began = "run before" if report.get("resumed") else "anew"
                found.append({"size": size, "model": model, "run": run, "began": began, **row})
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
