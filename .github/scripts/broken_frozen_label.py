"""The gate as it is often written, kept to be tested against: it judges by the labels in the event's payload.

No workflow uses it. It has the same command line as ``require_label.py`` and needs neither token nor network.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pull_request import GateError, Payload, read_payload
from require_label import CANNOT_TELL, PASSES, Answer, arguments, decide, report, variable


def frozen(label: str, payload: Payload) -> Answer:
    """The broken gate: what was true when the event happened."""
    if payload.number is None:
        return Answer(PASSES, "This event belongs to no pull request: there is no label to ask for.")
    # Hazard: stale read; a re-run gets the same payload, so that a label added since is never seen, and one removed
    # since still counts.
    return decide(label, payload, payload.labels, "when the event happened")


def main() -> int:
    """Looks into the payload, and says what came of it in a sentence."""
    args = arguments()
    try:
        payload = read_payload(Path(variable(os.environ, "GITHUB_EVENT_PATH")))
        return report(frozen(args.label, payload), os.environ)
    except GateError as error:
        print(error, file=sys.stderr)
        return CANNOT_TELL


if __name__ == "__main__":
    sys.exit(main())
