"""The other end of ``Apart``: a process that does the tasks that come in, line by line, and answers in lines."""

import json
import os
import sys
import time
from threading import Thread

from refimpl.lessons.history.tasks import END, Task, answers

LOOKS_EVERY_S = 1.0
"""Between two looks at whether the process that asks is still there."""


def serve() -> None:
    """Does what is asked on stdin, until nothing more is."""
    # What others print goes where errors go: the answers alone belong on stdout.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        for row in answers(Task.from_json(json.loads(line))):
            print(json.dumps(row), file=out, flush=True)
        print(json.dumps(END), file=out, flush=True)


def end_with_parent(parent: int) -> None:
    """Ends this process soon after the one that started it has died, whatever of: nobody reads its rows any more.

    Args:
        parent: the id of that one, which may have died by now.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOKS_EVERY_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    import torch

    end_with_parent(int(sys.argv[1]))
    # One process a core: a second thread would cost each more than it takes off.
    torch.set_num_threads(1)
    serve()
