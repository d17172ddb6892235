"""A timed step, from which tests make others."""

from refimpl.lessons.history_timing.cases import DFLASH, LATEST
from refimpl.lessons.history_timing.rows import FenceRow

ROW = FenceRow(
    model="8b",
    draft=DFLASH,
    preset=LATEST,
    needs_cpu_seq_lens=False,
    again=False,
    batch=16,
    added_host_ms=0.0,
    added_schedule_ms=0.0,
    item=False,
    step_ms=13.5,
    step_p10_ms=13.4,
    step_p90_ms=13.6,
    before_us=0.0,
    before_p10_us=0.0,
    before_p90_us=0.0,
    after_us=12250.0,
    launch_ms=0.7,
    host_ms=1.25,
    forward_ms=13.5,
    over_lower=1.0,
    over_upper=0.91,
    idle_share=0.002,
    reference_us=31.0,
    n=36,
)
