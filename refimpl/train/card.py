"""The model card, written from a run's report: every number in it was measured by that run."""

from collections.abc import Mapping, Sequence
from typing import Any

NAMES = {
    "target": "target",
    "eagle": "EAGLE-3 head",
    "mtp": "multi-layer EAGLE",
    "dflash": "DFLASH block",
}

_HEAD = """# Model card: the targets and drafts of this folder

This file is made by `python -m refimpl train card` from the reports of the runs that made the weights, which are
also in `results/training.json`. Do not edit it.

{runs}
**What they are for.** They make speculative decoding measurable: targets small enough to ship, with drafts that were
trained for them. They write text that looks like Python or like a play. They know nothing, and what they write does
not run.

**How they were made.** A byte-level BPE of {vocab_size:,} ids. A target learns the next token of the corpus. Small
models that always take the likeliest token soon loop, so late in its training it also reads its own greedy text:
what is new there is learned, what repeats itself is unlearned, no further than needed (unlikelihood training,
arXiv 1908.04319). That makes it surer of itself, and its loss over held-out text higher. The tables below say which
run a target is of. The last run trained as described here. Earlier ones differed in three ways: their targets learned
nothing from their own text, they unlearned repetition at full strength, and transformers' source was not in the
corpus.

The weights are rounded to bf16, and that is *the* target. It then writes text, from prompts of the training split, at
temperatures 0, 0.7 and 1.0. The drafts learn from the corpus until that text appears, and then mostly from it: the
target's distribution, the token that followed, or a mixture of the two.
"""
_RUNS = {"run": "run", "date": "date", "device": "device", "gpus": "GPUs", "torch": "torch", "seconds": "seconds"}
_FILES = """Split by file, by a hash of its path. Folders of tests, files above 200 kB and files that repeat
themselves are left out.
"""
_ACCEPTANCE = """Acceptance, by decoding held-out prompts as they are served. `unique` is the share of different runs
of 8 tokens within a text: it is low where the target loops, which makes drafting easy; `among all` counts them over
all texts together.
"""
_LICENCE = """## Licence

The weights are under this repository's licence, Apache-2.0. The texts that they were trained on are under the
licences in the table; of it are shipped the tokenizer's vocabulary and the held-out prompts
of the benchmark, with their licences.
"""


def text(results: Mapping[str, Any]) -> str:
    """The card of what `figures.results` found, which is `results/training.json`."""
    sizes = list(dict.fromkeys(row["size"] for row in results["losses"]))
    head = _HEAD.format(runs=table(results["runs"], _RUNS), vocab_size=results["corpus"]["vocab_size"])
    return "\n".join([head, _data(results["corpus"]), *(_size(size, results) for size in sizes), _LICENCE])


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """Rows as a Markdown table, figures to the right; `columns` names the keys that are shown and what they are called.

    Example:
        >>> print(table([{"name": "eagle", "tokens": 12000}], {"name": "draft", "tokens": "tokens seen"}), end="")
        | draft | tokens seen |
        | --- | ---: |
        | EAGLE-3 head | 12,000 |
    """
    figures = (all(isinstance(row[key], int | float) for row in rows) for key in columns)
    lines = [list(columns.values()), ["---:" if right else "---" for right in figures]]
    lines += [[_shown(row[key]) for key in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else NAMES.get(value, str(value))


def _data(corpus: Mapping[str, Any]) -> str:
    sources = [
        {**each, "name": f"{each['name']} {each['version']}", "megabytes": each["bytes"] / 1e6}
        for each in corpus["sources"]
    ]
    columns = {
        "name": "source",
        "domain": "text",
        "licence": "licence",
        "files": "files",
        "trained_files": "trained on",
    }
    splits = [{"name": name, **split} for name, split in corpus["splits"].items()]
    return "\n".join(
        [
            "## Data\n",
            table(sources, {**columns, "megabytes": "MB"}),
            _FILES,
            table(splits, {"name": "split", "files": "files", "tokens": "tokens", "bytes": "bytes"}),
        ]
    )


def _size(size: str, results: Mapping[str, Any]) -> str:
    def mine(name: str) -> list[Mapping[str, Any]]:
        return [row for row in results[name] if row["size"] == size]

    trained = {
        "model": "model",
        "run": "run",
        "began": "began with",
        "parameters": "parameters",
        "steps": "steps",
        "tokens": "tokens seen",
    }
    parts = [f"## {size}\n", table(mine("models"), {**trained, "seconds": "seconds", "loss": "last loss"})]
    parts += [f"The target wrote {row['tokens']:,} tokens for its drafts.\n" for row in mine("written")]
    losses = {"text": "held-out text", "nats_per_token": "nats a token", "bits_per_byte": "bits a byte"}
    parts.append(table(mine("losses"), losses))
    if measured := mine("acceptance"):
        columns = {"draft": "draft", "drafts": "drafts", "temperature": "temperature", "text": "text"}
        columns |= {"accept_len": "tokens a verify", "verifies": "verifies"}
        columns |= {"unique_8grams": "unique", "unique_8grams_among_all": "among all"}
        parts += [_ACCEPTANCE, table(measured, columns)]
    return "\n".join(parts)
