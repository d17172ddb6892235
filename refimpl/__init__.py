"""Stream Order: an executable reference for GPU stream ordering in overlapped speculative decoding.

Every room of the house is imported by its own name: `from refimpl.program import Program`. Importing `refimpl` itself
imports nothing, so a proof never waits for torch.
"""

__version__ = "0.1.0"
