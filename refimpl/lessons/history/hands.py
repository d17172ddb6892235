"""``done_apart``: many tasks, dealt out to a few processes; rows come back as they are ready."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from queue import SimpleQueue
from threading import Thread

from refimpl.lessons.history.apart import Apart
from refimpl.lessons.history.tasks import Row, Task

News = tuple[Task, Row | Exception | None]
"""A row of a task; or the error in which it ended; or None behind its last row."""


def done_apart(tasks: Sequence[Task], workers: int) -> Generator[News, None, None]:
    """Does tasks in processes of their own.

    Args:
        tasks: begun in this order.
        workers: processes that work side by side.

    Yields:
        Each row with its task, in the order in which they come; an error in the place of rows; None behind the last
        row of a task. Closing the generator ends the processes.
    """
    todo, news = SimpleQueue[Task](), SimpleQueue[News]()
    for task in tasks:
        todo.put(task)
    hands = [Apart(number) for number in range(min(workers, len(tasks)))]
    threads = [Thread(target=_work, args=(hand, todo, news), daemon=True) for hand in hands]
    for thread in threads:
        thread.start()
    try:
        open_tasks = len(tasks)
        while open_tasks:
            told = news.get()
            open_tasks -= told[1] is None
            yield told
    finally:
        while not todo.empty():
            todo.get()
        for hand in hands:
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
