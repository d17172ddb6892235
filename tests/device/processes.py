"""Code in a process of its own: what a device does to a whole process, or what could end it."""

import subprocess
import sys


def in_a_fresh_process(code: str) -> str:
    """What it printed, errors too."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr
