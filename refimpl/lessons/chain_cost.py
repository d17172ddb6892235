"""What a chained record costs where nobody seeds: steps over those of a plain one, and over those of a second engine
that is the same."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from refimpl.lessons.history_timing.cases import Case, Pair
from refimpl.lessons.history_timing.rows import PairRow
from refimpl.lessons.lines import wrapped
from refimpl.view.plot import Picture

INK, HOST, FORWARD = "#1c2127", "#555555", "#0072B2"
LOOKS: dict[bool, dict[str, Any]] = {
    False: {"color": FORWARD, "marker": "o", "label": "chained over plain"},
    True: {"color": HOST, "marker": "s", "label": "plain over plain, the control"},
}
"""By whether both engines are the same."""


def chain_pairs(draft: str) -> tuple[tuple[Case, ...], tuple[Pair, ...]]:
    """Engines that take turns, and whose steps are set against whose.

    Args:
        draft: ``"eagle"`` or ``"dflash"``.
    """
    plain = Case(f"seed-overwrite-barrier-{draft}", draft)
    chained, again = Case(f"seed-chain-barrier-{draft}", draft), replace(plain, again=True)
    return (plain, chained, again), (Pair(chained, plain), Pair(again, plain))


def pairs_words(pairs: Sequence[PairRow]) -> str:
    """The ratios in words, one after another: chained over plain, with the same engine twice beside it."""
    return "\n".join(wrapped(f"{_case(row)}, {_label(row)}: {_ratio(row)}, rounds: {row.rounds}") for row in pairs)


def pairs_markdown(pairs: Sequence[PairRow]) -> str:
    """The ratios as a table for a page; a sentence where nothing was measured."""
    if not pairs:
        return "Not measured in this version."
    lines = ["| case | steps of | ratio (p10 to p90) | difference, µs | rounds |", "|---|---|---|---:|---:|"]
    lines += [
        f"| {_case(row)} | {_label(row)} | {_ratio(row)} | {row.difference_us:+.1f} | {row.rounds} |" for row in pairs
    ]
    return "\n".join(lines)


def pairs_picture(pairs: Sequence[PairRow], device: str) -> Picture:
    """Each ratio with its p10 to p90, the control below it.

    Args:
        pairs: at least one.
        device: in words, for the title.
    """
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7.2, 1.7 + 0.3 * len(pairs)), layout="constrained")
    axes.axvline(1.0, color=INK, lw=0.8)
    for again, look in LOOKS.items():
        mine = [(at, row) for at, row in enumerate(pairs) if row.again is again]
        ends = [[row.ratio - row.ratio_p10 for _, row in mine], [row.ratio_p90 - row.ratio for _, row in mine]]
        axes.errorbar(
            [row.ratio for _, row in mine], [at for at, _ in mine], xerr=ends, ls="none", ms=6, capsize=3, **look
        )
    axes.set_yticks(range(len(pairs)), [_case(row) for row in pairs], fontsize=8)
    axes.invert_yaxis()
    axes.margins(y=0.2)
    axes.set_xlabel("step over step, round by round: median, p10 to p90")
    figure.suptitle(f"What the chain costs in steady state: {device}", fontsize=10, x=0.01, ha="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    plt.close(figure)
    told = "; ".join(f"{_case(row)}, {_label(row)}: {_ratio(row)}" for row in pairs)
    return Picture(figure, f"Step time over that of a plain record on {device}. {told}.")


def _case(row: PairRow) -> str:
    return f"{row.model}, {row.draft}, batch {row.batch}"


def _label(row: PairRow) -> str:
    return str(LOOKS[row.again]["label"])


def _ratio(row: PairRow) -> str:
    return f"{row.ratio:.4f} ({row.ratio_p10:.4f} to {row.ratio_p90:.4f})"


def _pyplot() -> Any:
    import matplotlib.pyplot as plt

    return plt
