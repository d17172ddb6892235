"""``Hands``: a few processes, among which tasks are dealt out; rows come back as they are ready."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from queue import SimpleQueue
from threading import Thread

from refimpl.lessons.history.apart import Apart
from refimpl.lessons.history.tasks import Row, Task

News = tuple[Task, Row | Exception | None]
"""A row of a task; or the error in which it ended; or None behind its last row."""


class Hands:
    """Processes that work side by side, started when they are first needed.

    Args:
        workers: how many.
    """

    def __init__(self, workers: int) -> None:
        self.closed = False
        self._hands = [Apart(number) for number in range(workers)]

    def done(self, tasks: Sequence[Task]) -> Generator[News, None, None]:
        """Does tasks, one call at a time.

        Args:
            tasks: begun in this order.

        Yields:
            Each row with its task, in the order in which they come; an error in the place of rows; None behind the
            last row of a task. A generator that is closed before ends the processes.
        """
        todo, news = SimpleQueue[Task](), SimpleQueue[News]()
        for task in tasks:
            todo.put(task)
        for hand in self._hands[: len(tasks)]:
            Thread(target=_work, args=(hand, todo, news), daemon=True).start()
        open_tasks = len(tasks)
        try:
            while open_tasks:
                told = news.get()
                open_tasks -= told[1] is None
                yield told
        finally:
            if open_tasks:
                while not todo.empty():
                    todo.get()
                self.close()

    def close(self) -> None:
        """Ends the processes."""
        self.closed = True
        for hand in self._hands:
            hand.close()


def _work(hand: Apart, todo: SimpleQueue[Task], news: SimpleQueue[News]) -> None:
    while not todo.empty():
        task = todo.get()
        try:
            for row in hand.rows(task):
                news.put((task, row))
        except Exception as error:
            # Told where the tasks are waited for: a thread that ends in silence would be waited for in vain.
            news.put((task, error))
        news.put((task, None))
