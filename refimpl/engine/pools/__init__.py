"""Memory of the engine: rows for requests, slots for tokens, and keys and values in the slots."""

from refimpl.engine.pools.allocator import TokenToKVPoolAllocator
from refimpl.engine.pools.kv_pool import KVPool
from refimpl.engine.pools.req_to_token_pool import ReqToTokenPool
from refimpl.engine.pools.swa import SWAKVPool, SWATokenToKVPoolAllocator

__all__ = ["KVPool", "ReqToTokenPool", "SWAKVPool", "SWATokenToKVPoolAllocator", "TokenToKVPoolAllocator"]
