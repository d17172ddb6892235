"""Records presets in a process of their own: ``python -m refimpl.lessons.timelines [--load=LOAD] PRESET…``."""

import argparse
import json

import torch

from refimpl.fences import Load, preset
from refimpl.lessons.timelines.steps import recorded_steps
from refimpl.program import program_to_json


def main() -> None:
    """Prints the folded recordings, by preset."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", type=Load)
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    # The simulated device's operators are too small to be shared.
    torch.set_num_threads(1)
    print(json.dumps({name: program_to_json(recorded_steps(preset(name), args.load)) for name in args.names}))


if __name__ == "__main__":
    main()
