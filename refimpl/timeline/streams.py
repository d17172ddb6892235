"""The lanes of a program's streams, with the legacy stream of each device and its barrier."""

from refimpl.program import Program, StreamKind
from refimpl.program.ops import LEGACY


class Streams:
    """Names of lanes for streams, under the device that is current.

    Args:
        program: whose streams they are.
    """

    def __init__(self, program: Program) -> None:
        self.device = 0
        self._streams = program.streams
        self._blocking: dict[str, list[str]] = {}
        for name, stream in program.streams.items():
            if stream.kind is not StreamKind.NONBLOCKING:
                self._blocking.setdefault(_legacy(stream.device), []).append(name)

    def lane(self, stream: str) -> str:
        """The lane of a stream; ``legacy`` is that of the current device."""
        return _legacy(self.device) if stream == LEGACY else stream

    def ahead_of(self, lane: str) -> tuple[str, ...]:
        """The lanes whose tails an action on this lane starts after: its own and those behind the legacy barrier."""
        stream = self._streams.get(lane)
        if stream is None:
            return (lane, *self._blocking.get(lane, ()))
        return (lane,) if stream.kind is StreamKind.NONBLOCKING else (lane, _legacy(stream.device))

    def of_device(self) -> tuple[str, ...]:
        """The lanes of all streams of the current device."""
        own = (name for name, stream in self._streams.items() if stream.device == self.device)
        return (_legacy(self.device), *own)


def _legacy(device: int) -> str:
    return LEGACY if device == 0 else f"{LEGACY} {device}"
