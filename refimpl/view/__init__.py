"""Pictures of a Program and of its Trace: the timeline that answers back, one-file pages, plots for print."""

from typing import TYPE_CHECKING, Any

from refimpl.view.html import page, write_page
from refimpl.view.svg import first_frame

if TYPE_CHECKING:
    from refimpl.view.widget import Timeline

__all__ = ["Timeline", "first_frame", "page", "write_page"]


def __getattr__(name: str) -> Any:
    """``Timeline`` is imported when it is first asked for: the rest of this room needs no anywidget."""
    if name != "Timeline":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from refimpl.view.widget import Timeline
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets", "ipywidgets"):
            raise
        why = f"refimpl.view.Timeline needs {error.name}, which is not installed: run `pip install anywidget`"
        raise ModuleNotFoundError(why, name=error.name) from error
    return Timeline
