"""`python -m refimpl demo`: the two-stream loop with no fence, with synchronize and with wait, live."""

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the device and the form of the answer."""
    parser.add_argument("--device", choices=["cuda", "sim"], help="the device (default: the best one present)")
    parser.add_argument("--json", action="store_true", help="one object: device and rows")


def run(args: argparse.Namespace) -> int:
    """Run the loop for a few seconds and print one row a variant."""
    from refimpl import device as devices
    from refimpl.commands import chosen, tables
    from refimpl.lessons import measure_overlap

    device = chosen.device(args.device) or devices.best()
    rows = measure_overlap.demo(device)
    if args.json:
        print(json.dumps({"device": str(device), "rows": rows}, indent=1))
    else:
        print(f"The two-stream loop on {device}:")
        print(tables.text(rows))
        print("stale steps: began with the lengths of the step before. Blocked: the host stood still, before or after")
        print(
            "the launch of the next forward. " + ("Times are modelled." if device == "sim" else "Times are measured.")
        )
    return 0
