"""`python -m refimpl run`: decodes a fixed workload with the fences of a moment of the history, and says what came."""

import argparse
import json
from typing import TYPE_CHECKING

from refimpl.commands.terminal import StatusLine, filled
from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.fences import Preset
    from refimpl.lessons.history.outcome import Outcome

AGREES, DIFFERS = 0, 1
RUNS = {"sim": 16, "cuda": 60}
"""By device; a minute or less, on two cores or on a GPU."""
MODELS = {"sim": "nano", "cuda": "small"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which preset, where, how often, and the form of the answer."""
    parser.add_argument("--preset", required=True, metavar="NAME", help="`python -m refimpl presets --all` lists them")
    parser.add_argument("--device", choices=["sim", "cuda"], help="default: the best one here")
    parser.add_argument("--runs", type=int, metavar="N", help="orders on sim, stalled runs on cuda (default: 16, 60)")
    parser.add_argument(
        "--models", help="tiny (made here), nano or small (trained; default: nano on sim, small on cuda)"
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes side by side (default: 2)")
    parser.add_argument("--json", action="store_true", help="one object instead of lines for people")
    parser.epilog = (
        "On sim each run is decoded under an adversary's order of its own, on cuda with streams that stand still now "
        "and then; every token is compared with an oracle's. Times are of other runs, undisturbed. --json: preset, "
        "device, runs, wrong_runs, accept_len, races, host_blocked_us (before_launch, after_launch), step_us, gpu_idle "
        "(a share of the step), and more. Exit code: 0 it is as the table expects, 1 it is not, 2 bad input. A race "
        "that few orders show needs more --runs."
    )


def run(args: argparse.Namespace) -> int:
    """Run it, and print what came of it."""
    preset = _preset(args.preset)
    status = StatusLine(beneath_text=False)
    try:
        outcome = _outcome(args, preset, status)
    finally:
        status.erase()
    print(json.dumps(outcome.to_json(), indent=1) if args.json else "\n".join(_lines(outcome)))
    return AGREES if outcome.agrees else DIFFERS


def _preset(name: str) -> "Preset":
    from refimpl.fences import preset

    try:
        return preset(name)
    except KeyError as error:
        raise UserError(str(error.args[0])) from error


def _outcome(args: argparse.Namespace, preset: "Preset", status: StatusLine) -> "Outcome":
    from refimpl import device as devices
    from refimpl.commands import chosen
    from refimpl.lessons.history.presets import run_preset

    device = chosen.device(args.device) or devices.best()
    runs = RUNS[device] if args.runs is None else args.runs

    def progress(done: int, of: int) -> None:
        status.draw(f"{filled(done, of)} {done} of {of} runs of {preset.name} on {device}")

    progress(0, runs)
    return run_preset(preset.name, device, args.models or MODELS[device], runs, args.workers, progress)


def _lines(outcome: "Outcome") -> list[str]:
    preset, runs = outcome.preset, outcome.runs
    pr = f", pull request {preset.pr}" if preset.pr else ""
    lines = [
        f"{preset.name} ({preset.date}{pr}): {preset.worker} with {outcome.models} weights on {outcome.device}",
        f"expected       {preset.expect}: {preset.why}",
        f"tokens         {'right in all' if not outcome.wrong else f'wrong in {len(outcome.wrong)} of'} {runs} runs",
        f"dropped too    {len(outcome.unmasked_wrong)} of {runs} runs computed a wrong token or state, dropped or not",
        f"accept length  {_shown(outcome.accept_len)}, of the control {_shown(outcome.control_accept_len)}",
        f"races          {_races(outcome)}",
    ]
    if outcome.cost is None:
        lines.append("step           unknown: the run that was timed ended in a fault")
    else:
        cost = outcome.cost
        blocked = f"{cost.before_us:.1f} us a step before the launch, {cost.after_us:.1f} us after it"
        lines += [f"host blocked   {blocked}", f"step           {cost.step_us:.1f} us, GPU idle {cost.gpu_idle:.0%}"]
    if preset.masked_by:
        lines.append(f"masked by      {preset.masked_by}")
    for title, ran in (("wrong", outcome.wrong), ("dropped", outcome.unmasked_wrong)):
        if ran:
            words = ran[0].fault or (*ran[0].wrong, *ran[0].unmasked)[0]
            lines.append(f"first {title:8} seed {ran[0].seed}: {words}")
    said = "as expected" if outcome.agrees else "not as expected; a race that few orders show needs more --runs"
    return [*lines, f"this is        {said}"]


def _races(outcome: "Outcome") -> str:
    return ", ".join(f"{one.kind} on {one.buffer} ({one.count})" for one in outcome.races) or "none"


def _shown(accept_len: float | None) -> str:
    return "unknown" if accept_len is None else f"{accept_len:.3f}"
