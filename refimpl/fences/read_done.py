"""``read_done``: where in a step the graph runner says that it has read the shared tables for the last time.

``load_batch`` copies the batch's rows of ``req_to_token`` into the graph's static page table; the replay reads that
snapshot. So the table may be overwritten while the replay runs, if the event is recorded behind ``load_batch``.

Source: sgl-project/sglang, ``DecodeCudaGraphRunner.execute``: pull requests 28363 and 29541 (June 2026).
"""

from enum import StrEnum


class ReadDone(StrEnum):
    """Where the event is recorded.

    ``COARSE`` records none, so that the barrier waits for the tail of the forward stream; ``PRE_REPLAY`` records it
    behind ``load_batch``.
    """

    COARSE = "coarse"
    PRE_REPLAY = "pre_replay"
