"""An overlapped speculative-decoding engine, small enough to read.

The host runs ahead of the device: while step N runs on ``forward_stream``, step N+1 is prepared on ``schedule_stream``,
and the results of step N-1 are read. What that needs is here by SGLang's names, so that a reader finds it there.
"""

from refimpl.engine.completion import Completion, Piece
from refimpl.engine.config import EngineConfig
from refimpl.engine.engine import Engine
from refimpl.engine.errors import EngineError
from refimpl.engine.request import FinishReason, SamplingParams

__all__ = ["Completion", "Engine", "EngineConfig", "EngineError", "FinishReason", "Piece", "SamplingParams"]
