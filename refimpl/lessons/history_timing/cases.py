"""What is compared: engines as of moments of the history, and what their scheduler does beside its own work."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from refimpl.lessons.history_timing.plan import Amounts, Share

DFLASH, EAGLE = "dflash", "eagle"
SELF_FENCE, SELF_FENCE_WAIT = "before-29556", "self-fence-wait"
COARSE, LATEST, EAGLE_LATEST = "coarse", "latest", "35748"
BARRIERS = ("29556", "29541", LATEST, COARSE)
"""DFLASH behind the barrier, oldest first, and with the coarse one at its later place."""
CONTROL = "one-at-a-time"
"""Each step is read before the next one is prepared."""
PLANS = ("plan-wait-stream", "plan-event", "latest-plan")
"""With a plan stream, and right; without one it is `EAGLE_LATEST`."""


@dataclass(frozen=True)
class Case:
    """One engine, and what is added to each turn of its scheduler.

    Args:
        preset: a row of the history; its window is left out, since no step here is long enough to fill one.
        draft: which draft decodes under its fences.
        needs_cpu_seq_lens: whether the host has to know the lengths before the launch.
        again: a second engine of the same preset: what differs between the two is no fence.
        added_host_ms: host work in front of schedule's own.
        added_schedule_ms: device work on `schedule_stream`, in front of schedule's own.
        item: whether the host then reads one cell from the device, with `.item()` on `schedule_stream`.
    """

    preset: str
    draft: str
    needs_cpu_seq_lens: bool = False
    again: bool = False
    added_host_ms: float = 0.0
    added_schedule_ms: float = 0.0
    item: bool = False

    @property
    def engine(self) -> "Case":
        """The case without what is added: cases of one engine share it."""
        return replace(self, added_host_ms=0.0, added_schedule_ms=0.0, item=False)


@dataclass(frozen=True)
class Pair:
    """A case beside its control; both are of one group."""

    case: Case
    control: Case


@dataclass(frozen=True)
class Group:
    """Cases that take turns, so that a device or a host that slows down slows all of them.

    Args:
        share: how many requests, and how long.
        cases: each once.
        pairs: whose steps are set against each other, round by round.
    """

    share: Share
    cases: tuple[Case, ...]
    pairs: tuple[Pair, ...] = ()


def groups(part: str, amounts: Amounts) -> list[Group]:
    """What a part measures.

    Args:
        part: one of `PARTS`.
        amounts: batches and drafts.
    """
    return PARTS[part](amounts)


def _self_fence(amounts: Amounts) -> list[Group]:
    """DFLASH's own fence and the barrier that took its place; beside both the kernel that needs lengths on the host."""
    free = [Case(preset, DFLASH) for preset in (SELF_FENCE, SELF_FENCE_WAIT, *BARRIERS)]
    bound = [Case(preset, DFLASH, needs_cpu_seq_lens=True) for preset in (SELF_FENCE, LATEST)]
    return [Group(share, (*free, *bound)) for share in amounts.shares]


def _wait_or_synchronize(amounts: Amounts) -> list[Group]:
    found = []
    for share in amounts.shares:
        swept = (0.0, *amounts.waited_ms) if share.batch == amounts.swept else (0.0,)
        for added in swept:
            cases: list[Case] = []
            pairs = []
            for draft in (EAGLE, DFLASH):
                old, new, control = (
                    Case(preset, draft, added_host_ms=added)
                    for preset in (f"{draft}-synchronize", f"{draft}-wait", CONTROL)
                )
                cases += old, new, control
                pairs.append(Pair(new, old))
            found.append(Group(share, tuple(cases), tuple(pairs)))
    return found


def _read_done(amounts: Amounts) -> list[Group]:
    """The event beside the coarse barrier: bare, with more work of the host or of schedule, and with one `.item()`."""
    found = [_against_coarse(share.repeated(amounts.pair_rounds), (DFLASH, EAGLE)) for share in amounts.shares]
    swept = next(share for share in amounts.shares if share.batch == amounts.swept)
    for added in amounts.added_ms:
        found.append(_against_coarse(swept, (DFLASH,), added_host_ms=added))
        found.append(_against_coarse(swept, (DFLASH,), added_schedule_ms=added))
    return [*found, _against_coarse(swept, (DFLASH, EAGLE), item=True)]


def _against_coarse(
    share: Share,
    drafts: Sequence[str],
    added_host_ms: float = 0.0,
    added_schedule_ms: float = 0.0,
    item: bool = False,
) -> Group:
    pairs = []
    for draft in drafts:
        event, coarse = (
            Case(
                preset,
                draft,
                added_host_ms=added_host_ms,
                added_schedule_ms=added_schedule_ms,
                item=item,
            )
            for preset in (LATEST, COARSE)
        )
        pairs.append(Pair(event, coarse))
    return Group(share, tuple(case for pair in pairs for case in (pair.case, pair.control)), tuple(pairs))


def _chain(amounts: Amounts) -> list[Group]:
    """A chained record beside a plain one, where nobody seeds; and a plain one beside itself."""
    found = []
    for share in amounts.shares:
        for draft in amounts.chained:
            plain = Case(f"seed-overwrite-barrier-{draft}", draft)
            again, chained = replace(plain, again=True), Case(f"seed-chain-barrier-{draft}", draft)
            pairs = Pair(chained, plain), Pair(again, plain)
            found.append(Group(share.repeated(amounts.pair_rounds), (plain, chained, again), pairs))
    return found


def _plan_stream(amounts: Amounts) -> list[Group]:
    """Without a plan stream, with the same fence in two spellings, and with an early event."""
    off, *on = (Case(preset, EAGLE) for preset in (EAGLE_LATEST, *PLANS))
    pairs = tuple(Pair(case, off) for case in on)
    return [Group(share, (off, *on), pairs) for share in amounts.shares]


PARTS = {
    "self_fence": _self_fence,
    "read_done": _read_done,
    "wait_or_synchronize": _wait_or_synchronize,
    "plan_stream": _plan_stream,
    "chain": _chain,
}
"""In the order in which they are measured: a run that is cut short has the first ones."""
