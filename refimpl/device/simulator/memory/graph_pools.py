"""The memory that graph captures allocate from: a pool of one graph, or of several that name it.

A captured op runs on the memory it was captured with, at each replay. So nothing but captures of the same pool may have
that memory, also after the tensors of the capture are gone. A capture that shares the pool may get what an earlier one
has freed: replays of the two then overwrite each other's results, and are right only in the order of the captures, with
results cloned before the next replay.

Source: pytorch `aten/src/ATen/cuda/CUDAGraph.cpp` and `c10/cuda/CUDACachingAllocator.cpp` (`beginAllocateToPool`,
    `releasePool`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from refimpl.device.simulator.memory.free_blocks import Pool

PoolId = tuple[int, int]
"""What `graph_pool_handle()` and `CUDAGraph.pool()` give, as on CUDA."""


class PoolUse:
    """One graph's use of a pool; when the last is gone the pool's memory goes back as it gets free.

    Args:
        pools: Where the pool is known.
        id_: Its id.
        pool: The pool.
    """

    __slots__ = ("_pools", "id", "pool")

    def __init__(self, pools: GraphPools, id_: PoolId, pool: Pool) -> None:
        self._pools, self.id, self.pool = pools, id_, pool
        pool.uses += 1

    def __del__(self) -> None:
        self.pool.uses -= 1
        if not self.pool.uses:
            self._pools.end(self.id)


class GraphPools:
    """The pools that graphs use now.

    Args:
        make: Makes a pool.
        retire: Is told when a pool's last graph is gone.
    """

    def __init__(self, make: Callable[[], Pool], retire: Callable[[Pool], None]) -> None:
        self._make, self._retire = make, retire
        self._pools: dict[PoolId, Pool] = {}
        self._own, self._shared = count(1), count(1)

    def new_id(self) -> PoolId:
        """An id under which captures can share a pool."""
        return (0, next(self._shared))

    def use(self, id_: object) -> PoolUse:
        """A graph begins to allocate from the pool of this id; None is a pool of its own.

        Raises:
            TypeError: It is not an id.
        """
        if id_ is None:
            id_ = (next(self._own), 0)
        if not (isinstance(id_, tuple) and len(id_) == 2 and all(isinstance(part, int) for part in id_)):
            raise TypeError(f"sim: pool={id_!r}: use graph_pool_handle(), or pool() of another graph")
        pool = self._pools.get(id_)
        if pool is None:
            pool = self._pools[id_] = self._make()
        return PoolUse(self, id_, pool)

    def end(self, id_: PoolId) -> None:
        """The last graph that used the pool is gone."""
        self._retire(self._pools.pop(id_))
