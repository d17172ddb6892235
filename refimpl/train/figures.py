"""A run's report as rows that prose and timing runs quote: one a model, one a draft, temperature and kind of text."""

from collections.abc import Mapping, Sequence
from typing import Any

SIZES = ("nano", "small")
KINDS = ("eagle", "mtp", "dflash")


def results(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is true of the weights after several runs, each of which went on from the one before.

    Args:
        reports: the runs' `training.json`, oldest first.

    Returns:
        `runs`, `models` (how each run trained each), and of the weights as they are now `losses`, `acceptance`,
        `written` (tokens that each target wrote for its drafts), and the `corpus` of the last run.

    Raises:
        ValueError: no run trained a target.
    """
    jobs = {name: job for report in reports for name, job in report["jobs"].items()}
    numbered = list(enumerate(reports, 1))
    written = [(size, jobs[f"{size}-selfgen"]) for size in SIZES if f"{size}-selfgen" in jobs]
    if not losses(jobs):
        raise ValueError("no target was trained: give the report of a run that trained one")
    return {
        "runs": [{"run": number, **report["machine"], "seconds": report["seconds"]} for number, report in numbered],
        "models": [row for number, report in numbered for row in models(report["jobs"], number)],
        "losses": losses(jobs),
        "acceptance": acceptance(jobs),
        "written": [{"size": size, "tokens": report["tokens"]} for size, report in written],
        "corpus": reports[-1]["corpus"],
    }


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
