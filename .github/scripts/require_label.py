"""The gate of a workflow: passes if the pull request carries a label at this moment.

``require_label.py LABEL`` reads the runner's own variables, and the token in ``GH_TOKEN``. A workflow's payload is made
when its event happens, and a re-run gets the same one again. What must be frozen is taken from it: which pull request
this is, and whose commit. Whether somebody allows the run is asked for now.

Exit code: 0 the label is there, or the event belongs to no pull request; 1 it is not there; 2 the gate cannot tell, and
does not pass.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pull_request import Api, GateError, Payload, read_payload

PASSES, REFUSES, CANNOT_TELL = 0, 1, 2


@dataclass(frozen=True)
class Answer:
    """What the gate says.

    Args:
        code: the exit code.
        words: what it found, in sentences.
        labels: the labels that it looked at.
    """

    code: int
    words: str
    labels: tuple[str, ...] = ()


def decide(label: str, payload: Payload, labels: tuple[str, ...], when: str) -> Answer:
    """Whether a pull request with these labels may pass.

    Args:
        label: what it must carry.
        payload: the event's, for the pull request's number and origin.
        labels: the labels to judge by.
        when: when the pull request carried them, in words.
    """
    found = ", ".join(map(repr, labels)) or "none"
    words = f"Pull request {payload.number} needs the label {label!r}; its labels {when}: {found}."
    if label not in labels:
        return Answer(REFUSES, f"{words} Add it, see it on the page, then run this job again.", labels)
    if payload.fork is not None:
        words += f" It comes from {payload.fork}: its jobs get no secrets, and a token that can only read."
    return Answer(PASSES, words, labels)


def live(label: str, payload: Payload, api: Api) -> Answer:
    """The right gate: asks for the labels when it runs.

    Raises:
        GateError: the API gave no answer, or a malformed one.
    """
    if payload.number is None:
        return Answer(PASSES, "This event belongs to no pull request: there is no label to ask for.")
    # Safe because: whoever sees the label on the page before running this job puts its write before this read.
    return decide(label, payload, api.labels_now(payload.number, label), "now")


def api_of(env: Mapping[str, str], wait_s: float) -> Api:
    """The API as the runner's variables name it.

    Raises:
        GateError: a variable is missing.
    """
    return Api(variable(env, "GITHUB_API_URL"), variable(env, "GITHUB_REPOSITORY"), variable(env, "GH_TOKEN"), wait_s)


def variable(env: Mapping[str, str], name: str) -> str:
    """A variable of the runner.

    Raises:
        GateError: it is not set.
    """
    if not env.get(name):
        raise GateError(f"The variable {name} is not set: the gate runs as a step of a workflow, with GH_TOKEN in env.")
    return env[name]


def report(answer: Answer, env: Mapping[str, str]) -> int:
    """Prints the answer, leaves it in the run's summary and the labels in its outputs; returns the exit code."""
    print(answer.words)
    _append(env.get("GITHUB_STEP_SUMMARY"), answer.words)
    _append(env.get("GITHUB_OUTPUT"), f"labels={json.dumps(answer.labels)}")
    return answer.code


def _append(file: str | None, line: str) -> None:
    if file:
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(f"{line}\n")


def arguments() -> argparse.Namespace:
    """The command line of both gates."""
    parser = argparse.ArgumentParser(description="Passes if the pull request carries a label.")
    parser.add_argument("label")
    parser.add_argument("--wait-s", type=float, default=2.0, metavar="S", help="pause before the second try")
    return parser.parse_args()


def main() -> int:
    """Asks, and says what came of it in a sentence."""
    args = arguments()
    try:
        payload = read_payload(Path(variable(os.environ, "GITHUB_EVENT_PATH")))
        return report(live(args.label, payload, api_of(os.environ, args.wait_s)), os.environ)
    except GateError as error:
        print(error, file=sys.stderr)
        return CANNOT_TELL


if __name__ == "__main__":
    sys.exit(main())
