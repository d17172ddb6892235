"""`python -m refimpl history`: every preset and experiment of the fences' history run and judged, beside its table."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from refimpl.commands import overwriting
from refimpl.commands.terminal import StatusLine, filled
from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.fences import Preset
    from refimpl.lessons.history.outcome import Outcome
    from refimpl.lessons.history.presets import Plan
    from refimpl.lessons.provenance import Machine
    from refimpl.lessons.results import Result

COMMAND = "python -m refimpl history"
AGREES, DIFFERS = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which presets, where, how often, and the form of the answer."""
    parser.add_argument("--device", choices=["sim", "cuda"], help="default: the best one here")
    parser.add_argument("--runs", "--seeds", type=int, default=20, metavar="N", help="of each preset (default: 20)")
    parser.add_argument("--racy-runs", type=int, metavar="N", help="of each preset with a race (default: as --runs)")
    parser.add_argument("--only", metavar="NAMES", help="presets, comma-separated (default: all, experiments too)")
    parser.add_argument("--models", default="tiny", help="tiny (made here), nano or small (default: tiny)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes side by side (default: 2)")
    parser.add_argument("--json", action="store_true", help='one object: {"runs": ..., "rows": [...]}')
    parser.add_argument("--save", metavar="NAME", help="also write results/NAME.json, anew behind each preset")
    parser.add_argument("--resume", action="store_true", help="keep the rows that results/NAME.json has of such runs")
    parser.epilog = "Exit code: 0 each preset is as the table expects, 1 some is not, 2 bad input."


def run(args: argparse.Namespace) -> int:
    """Run them, print a row each."""
    from refimpl.lessons import results

    if args.save is not None:
        results.check_writable(args.save)
    elif args.resume:
        raise UserError("--resume: say with --save which result to go on with")
    chosen = _chosen(args.only)
    if args.save is not None and not args.resume:
        refuse_loss(args.save, [preset.name for preset in chosen])
    status = StatusLine(beneath_text=False)
    try:
        rows = _measured(args, chosen, status)
    finally:
        status.erase()
    print(json.dumps({"runs": args.runs, "rows": rows}, indent=1) if args.json else _table(rows))
    differ = [row["preset"] for row in rows if not row["agrees"]]
    if differ:
        print(f"not as the table expects: {', '.join(differ)}", file=sys.stderr)
    return DIFFERS if differ else AGREES


def refuse_loss(name: str, chosen: Sequence[str]) -> None:
    """Sees to it that a run of some presets does not take the place of a campaign of more.

    Raises:
        UserError: the result has rows of presets that this run does not make.
    """
    from refimpl.lessons import results

    overwriting.refuse_other(name, COMMAND, options=False)
    if not results.file_of(name).is_file():
        return
    rows = results.load(name).data.get("rows", [])
    lost = [row["preset"] for row in rows if isinstance(row, dict) and row.get("preset", "") not in ("", *chosen)]
    overwriting.refuse_loss(name, lost, "--resume")


def _chosen(only: str | None) -> list["Preset"]:
    from refimpl.fences import history, preset

    if only is None:
        return list(history())
    try:
        return [preset(name) for name in dict.fromkeys(name.strip() for name in only.split(","))]
    except KeyError as error:
        raise UserError(str(error.args[0])) from error


def _measured(args: argparse.Namespace, chosen: Sequence["Preset"], status: StatusLine) -> list[dict[str, Any]]:
    """A row for each preset, in the table's order; kept as they come."""
    from refimpl import device as devices
    from refimpl.commands import chosen as choice
    from refimpl.fences import history
    from refimpl.lessons import results
    from refimpl.lessons.history.presets import Plan, machine_of, run_presets

    device = choice.device(args.device) or devices.best()
    plan = Plan(device, args.models, args.runs, args.workers, args.racy_runs)
    machine = machine_of(plan) if args.save is not None else None
    places = {preset.name: place for place, preset in enumerate(history())}
    there_already = args.resume and results.file_of(args.save).is_file()
    rows = kept(results.load(args.save), device, plan) if there_already else []
    if rows and machine is not None:
        overwriting.refuse_other_machine(results.load(args.save), machine)
    there = {row["preset"] for row in rows}
    missing = [preset for preset in chosen if preset.name not in there]
    for outcome in run_presets(missing, plan, lambda done, of: status.draw(f"{filled(done, of)} {done} of {of} runs")):
        rows.append(outcome.to_json())
        rows.sort(key=lambda row: places[row["preset"]])
        status.say(_said(outcome))
        if machine is not None:
            _save(args, machine, rows)
    return rows


def kept(found: "Result", device: str, plan: "Plan") -> list[dict[str, Any]]:
    """The rows of an earlier run of the same kind, which was cut; without those of which the table says other now.

    Raises:
        UserError: the result is of another command, of another kind of run, or damaged.
    """
    if not found.command.startswith(COMMAND):
        raise UserError(f"--resume: {found.name} is the result of `{found.command}`: save under another name")
    try:
        rows = _same_kind(found, device, plan)
        _table(rows)
    except (KeyError, TypeError) as error:
        raise UserError(f"--resume: {found.name} is damaged ({error!r}): save under another name") from error
    return rows


def _same_kind(found: "Result", device: str, plan: "Plan") -> list[dict[str, Any]]:
    from refimpl.fences import Expect, history

    data = found.data
    racy = any(row["expect"] != Expect.RIGHT for row in data["rows"])
    there = (data["runs"], data["models"], (data.get("racy_runs") or data["runs"]) if racy else "no")
    asked = (plan.runs, plan.models, (plan.racy_runs or plan.runs) if racy else "no")
    if there != asked:
        raise UserError(
            f"--resume: {found.name} has {there[0]} runs ({there[2]} of presets with a race) with {there[1]} weights, "
            f"not {asked[0]} ({asked[2]}) with {asked[1]}: ask for the same, or save under another name"
        )
    expected = {(one.name, str(one.expect)) for one in history()}
    rows = {row["preset"]: row for row in data["rows"] if (row["preset"], row["expect"]) in expected}
    return [row for row in rows.values() if row["device"] == device]


def _said(outcome: "Outcome") -> str:
    wrong, dropped, runs = len(outcome.wrong), len(outcome.unmasked_wrong), outcome.runs
    verdict = "as expected" if outcome.agrees else "NOT as expected"
    return f"{outcome.preset.name}: {wrong} of {runs} wrong, {dropped} with dropped tokens, {verdict}"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    from refimpl.commands import tables

    faults = any(row.get("faults") for row in rows)
    return tables.text([_line(row, faults) for row in rows])


def _line(row: dict[str, Any], faults: bool) -> dict[str, Any]:
    from refimpl.lessons.history.hazards import few, named

    return {
        "date": row["date"],
        "preset": row["preset"],
        "expect": row["expect"],
        "agrees": "yes" if row["agrees"] else "NO",
        "runs": row["runs"],
        "wrong": row["wrong_runs"],
        **({"faults": row.get("faults", 0)} if faults else {}),
        "dropped too": row["unmasked_wrong_runs"],
        "accept": row["accept_len"] or "",
        "control": row["control_accept_len"] or "",
        "races": few(named((race["kind"], race["buffer"]) for race in row["races"])),
    }


def _save(args: argparse.Namespace, machine: "Machine", rows: Sequence[dict[str, Any]]) -> None:
    from refimpl.lessons import results

    options = {"device": machine.kind, "runs": args.runs, "models": args.models}
    options |= {"racy-runs": args.racy_runs} if args.racy_runs else {}
    options |= {"only": args.only} if args.only else {}
    words = " ".join([COMMAND, *(f"--{name} {value}" for name, value in options.items())])
    data = {"runs": args.runs, "racy_runs": args.racy_runs, "models": args.models, "rows": list(rows)}
    results.write(args.save, data, command=words, device=machine.device, driver=machine.driver, torch=machine.torch)
