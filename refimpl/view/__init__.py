"""Pictures of a Program and of its Trace: the timeline that answers back, one-file pages, plots for print.

Python stands at the top, pictures for print in ``plot``. The JavaScript has folders, one an idea, and each imports only
from those behind its arrow::

    shared     ->                     what more than one view needs
    model      ->                     what a program means, and when it runs
    explorable -> shared model        the timeline of a Program
    run        -> shared              a whole recorded run
    trace      ->                     a profiler's file read in the browser, and its accounts
    drop       -> shared trace run    the page that such a file is dropped on
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from refimpl.view.html import page, write_page
from refimpl.view.svg import first_frame

if TYPE_CHECKING:
    from refimpl.view.run_widget import Run
    from refimpl.view.widget import Timeline

__all__ = ["Run", "Timeline", "first_frame", "page", "write_page"]

_WIDGETS = {"Timeline": "refimpl.view.widget", "Run": "refimpl.view.run_widget"}


def __getattr__(name: str) -> Any:
    """The widgets are imported when they are first asked for: the rest of this room needs no anywidget."""
    if name not in _WIDGETS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_WIDGETS[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets", "ipywidgets"):
            raise
        why = f"refimpl.view.{name} needs {error.name}, which is not installed: run `pip install anywidget`"
        raise ModuleNotFoundError(why, name=error.name) from error
