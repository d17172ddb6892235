"""Graphs of the simulated device, with the names and the rules of `torch.cuda`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

from refimpl.device.simulator.capture import Capture
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.memory.graph_pools import PoolId, PoolUse
from refimpl.device.simulator.pool import POOL_SIZE
from refimpl.device.simulator.streams import Stream

_CAPTURE_STREAM = 2 * POOL_SIZE + 1


class CUDAGraph:
    """A captured graph; it has CUDA's name so that code written for `torch.cuda` finds it.

    The capture freezes addresses: each replay runs the captured ops on the same memory, so it reads what its inputs
        hold when it runs, and overwrites its outputs. Memory allocated in the capture comes from a pool, which lives as
        long as a graph that uses it or a tensor in it.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._capture: Capture | None = None
        self._pool: PoolUse | None = None
        self._whole = False

    def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
        """Ops of the current stream are noted from here on, and do not run.

        Args:
            pool: Share the memory of this pool; one of its own if None.
            capture_error_mode: Accepted as on CUDA.
        """
        if DEVICE.capture is not None:
            raise RuntimeError("sim: a second capture in a graph capture: end the first one first")
        if self._whole:
            raise RuntimeError("sim: a capture into a graph that holds one: make a new CUDAGraph, or reset() this one")
        if DEVICE.current.id == 0:
            raise RuntimeError("sim: a graph capture on the default stream: use another stream, as dev.graph(…) does")
        self._pool = DEVICE.memory.graph_pools.use(pool)
        self._capture, self._whole = Capture(DEVICE.current, self._pool.pool), False
        DEVICE.capture = self._capture

    def capture_end(self) -> None:
        """Ends the capture; raises if a stream that joined it was not joined back."""
        capture, DEVICE.capture = DEVICE.capture, None
        if capture is None or capture is not self._capture:
            raise RuntimeError("sim: capture_end of a graph that is not under capture: call capture_begin first")
        capture.close()
        self._whole = True

    def replay(self) -> None:
        """Launches the graph on the current stream. The host does not block."""
        if self._capture is None or not self._whole:
            raise RuntimeError("sim: replay of a graph that holds no finished capture: capture it first")
        DEVICE.replay(self._capture)

    @property
    def capture(self) -> Capture | None:
        """What was captured, as observers are told at each launch."""
        return self._capture

    def reset(self) -> None:
        """Forgets the capture."""
        self._capture, self._pool, self._whole = None, None, False

    def pool(self) -> PoolId:
        """The graph's memory pool, which another capture can share; raises before the capture has ended."""
        if self._pool is None or not self._whole:
            raise RuntimeError("sim: pool() of a graph that holds no finished capture: capture it first")
        return self._pool.id


class graph(AbstractContextManager[None]):
    """Captures what is issued inside into `cuda_graph`; the device is idle and the cache of its memory empty when the
    capture begins, as on CUDA.

    Args:
        cuda_graph: The graph to fill.
        pool: Share the memory of this pool; one of its own if None.
        stream: The stream to capture on; one of its own if None.
        capture_error_mode: Accepted as on CUDA; host blocking is an error in every mode.
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: object = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self._graph, self._pool = cuda_graph, pool
        self._stream = Stream(stream_id=_CAPTURE_STREAM) if stream is None else stream

    def __enter__(self) -> None:
        DEVICE.synchronize()
        DEVICE.memory.empty_cache_blocking()
        DEVICE.pinned.empty_cache()
        self._stream.__enter__()
        try:
            self._graph.capture_begin(self._pool)
        except (RuntimeError, TypeError):
            self._stream.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._graph.capture_end()
            else:
                DEVICE.capture = None
                self._graph.reset()
        finally:
            self._stream.__exit__(kind, error, trace)
