"""The other end of ``Apart``: a process that does the tasks that come in, line by line, and answers in lines."""

import json
import sys

from refimpl.lessons.history.tasks import END, Task, answers


def serve() -> None:
    """Does what is asked on stdin, until nothing more is."""
    # What others print goes where errors go: the answers alone belong on stdout.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        for row in answers(Task.from_json(json.loads(line))):
            print(json.dumps(row), file=out, flush=True)
        print(json.dumps(END), file=out, flush=True)


if __name__ == "__main__":
    import torch

    # One process a core: a second thread would cost each more than it takes off.
    torch.set_num_threads(1)
    serve()
