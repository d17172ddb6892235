"""The kernels under the names of the ops."""

from refimpl.model.ops.triton_attention import paged_attention
from refimpl.model.ops.triton_norm import add_rms_norm, rms_norm, silu_and_mul
from refimpl.model.ops.triton_rope import qk_norm_rope, qk_norm_rope_store
from refimpl.model.ops.triton_tables import load_rows, store_kv

__all__ = [
    "add_rms_norm",
    "load_rows",
    "paged_attention",
    "qk_norm_rope",
    "qk_norm_rope_store",
    "rms_norm",
    "silu_and_mul",
    "store_kv",
]
