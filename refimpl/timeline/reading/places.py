"""Which lane a slice of a profile lies on."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from refimpl.timeline.reading.annotations import lane_of
from refimpl.timeline.reading.calls import Gpu, gpu_of
from refimpl.timeline.reading.chrome_file import CALLS, NOTE, OPERATOR, Event, Thread

HOST = "host"
_THREAD, _PROCESS = "thread ", "process "
_STREAMS = ("schedule", "plan", "forward", "copy")


@dataclass(frozen=True)
class Launched:
    """What one call queued on one stream.

    Args:
        work: its slices, in order of time.
        call: the host's call, where the trace has it.
        around: names of the annotations around the call, innermost first.
    """

    work: Sequence[Event]
    call: Event | None
    around: list[str]


def is_host(lane: str) -> bool:
    """Whether a lane shows a thread of the host.

    Example:
        >>> [lane for lane in ("host", "thread 7", "process 3 thread 7", "forward", "threads") if is_host(lane)]
        ['host', 'thread 7', 'process 3 thread 7']
    """
    return lane == HOST or lane.startswith(_THREAD) or (lane.startswith(_PROCESS) and f" {_THREAD}" in lane)


def gpu_name(lane: str) -> str:
    """The GPU that a stream's lane is of, or an empty string where the trace has only one.

    Example:
        >>> gpu_name("GPU 1 forward"), gpu_name("forward")
        ('GPU 1', '')
    """
    words = lane.split(" ", 2)
    return " ".join(words[:2]) if len(words) == 3 and words[0] == "GPU" and words[1].isdigit() else ""


class StreamLanes:
    """Names of the lanes of GPU work.

    Args:
        launched: all GPU work.
        given: names of streams by number.
    """

    def __init__(self, launched: Iterable[Launched], given: Mapping[int, str]) -> None:
        votes: dict[tuple[Gpu, int | None], Counter[str]] = {}
        for one in launched:
            lane, first = lane_of(one.around), one.work[0]
            votes.setdefault((gpu_of(first), first.stream), Counter()).update({lane: len(one.work)} if lane else {})
        named: dict[int | None, str] = dict(given.items())
        self._names = {
            (gpu, stream): named.get(stream) or (c.most_common(1)[0][0] if c else f"stream {stream}")
            for (gpu, stream), c in votes.items()
        }
        self._prefixes = _prefixes([gpu for gpu, _ in votes])

    def of(self, one: Launched) -> str:
        """The lane that an annotation around the launch names, else that of the stream."""
        gpu = gpu_of(one.work[0])
        return self._prefixes[gpu] + (lane_of(one.around) or self._names[gpu, one.work[0].stream])


def _prefixes(gpus: Iterable[Gpu]) -> dict[Gpu, str]:
    """Nothing before the lanes of an only GPU; else its number, or its process where two have one number."""
    distinct = list(dict.fromkeys(gpus))
    if len(distinct) < 2:
        return dict.fromkeys(distinct, "")
    numbers = {device for _, device in distinct}
    by_number = len(numbers) == len(distinct) and None not in numbers
    return {gpu: f"GPU {gpu[1] if by_number else gpu[0]} " for gpu in distinct}


class HostLanes:
    """Names of the lanes of host threads: ``"host"`` is the one that makes most of the calls.

    Args:
        events: the profiler's slices; without calls, annotations count, and without those operators.
        names: what the trace calls its threads; those of one name are told apart by their numbers.
    """

    def __init__(self, events: Sequence[Event], names: Mapping[Thread, str]) -> None:
        self._names = names
        self._shared = Counter((process, name) for (process, _), name in names.items())
        self._main: Thread | None = None
        for categories in (CALLS, (NOTE,), (OPERATOR,)):
            counts = Counter(event.thread for event in events if event.category in categories)
            if counts:
                self._main = counts.most_common(1)[0][0]
                break

    def of(self, thread: Thread) -> str:
        """The lane of a thread."""
        if thread == self._main:
            return HOST
        name = self._names.get(thread, thread[1])
        number = f" ({thread[1]})" if self._shared[thread[0], name] > 1 else ""
        lane = _THREAD + name.removeprefix(_THREAD) + number
        return lane if self._main is None or thread[0] == self._main[0] else f"{_PROCESS}{thread[0]} {lane}"


def in_order(lanes: Iterable[str]) -> tuple[str, ...]:
    """Lanes top to bottom: the host, its other threads, then each GPU's streams, those of the engine first.

    Args:
        lanes: in order of their first spans.
    """
    used = list(dict.fromkeys([HOST, *lanes]))
    streams = sorted((lane for lane in used if not is_host(lane)), key=_stream_order)
    return (*(lane for lane in used if is_host(lane)), *streams)


def _stream_order(lane: str) -> tuple[int, str, int]:
    gpu = gpu_name(lane)
    name = lane.removeprefix(gpu).strip()
    number = gpu.removeprefix("GPU ")
    return len(number), number, _STREAMS.index(name) if name in _STREAMS else len(_STREAMS)
