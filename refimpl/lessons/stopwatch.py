"""Host time of a loop's iteration, and the part of it spent in calls that block, kept out of the loop's own lines."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from refimpl import device as devices

Method = TypeVar("Method", bound=Callable[..., Any])


class Stopwatch:
    """The host's clock over one iteration; what is held before the launch is told from what is held after it."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.restart()

    def restart(self) -> None:
        """An iteration begins."""
        self._held_us = self._held_before_us = 0.0
        self._begin_us = devices.host_clock_us(self._device)

    def launched(self) -> None:
        """The forward was launched: what follows is after it."""
        self._held_before_us, self._held_us = self._held_us, 0.0

    def hold(self, us: float) -> None:
        """A call that may block took this long."""
        self._held_us += us

    def read(self) -> tuple[float, float, float]:
        """Microseconds since the iteration began, and held before and after the launch."""
        return devices.host_clock_us(self._device) - self._begin_us, self._held_before_us, self._held_us


def named(form: str) -> Callable[[Method], Method]:
    """Names what a method issues for profiles and timelines; ``form`` is filled with the method's arguments.

    The method's object has ``device`` and ``stopwatch``.
    """

    def wrap(method: Method) -> Method:
        @wraps(method)
        def run(self: Any, *args: Any) -> Any:
            with devices.cost(self.device, form.format(*args)):
                return method(self, *args)

        return cast(Method, run)

    return wrap


def held(form: str) -> Callable[[Method], Method]:
    """Names a method that may block the host, and counts its time as held."""

    def wrap(method: Method) -> Method:
        inner = named(form)(method)

        @wraps(method)
        def run(self: Any, *args: Any) -> Any:
            begin = devices.host_clock_us(self.device)
            try:
                return inner(self, *args)
            finally:
                self.stopwatch.hold(devices.host_clock_us(self.device) - begin)

        return cast(Method, run)

    return wrap
