"""How paged attention is cut: enough programs for the device, no more splits than there are entries to share."""

from hypothesis import given
from hypothesis import strategies as st

from refimpl.model.ops.attention_plan import LEAST_ROWS, MOST_ROWS, MOST_SPLITS, PROGRAMS_OF_FEW_ROWS, plan_of

H200 = 132


@given(
    requests=st.integers(1, 256),
    kv_heads=st.sampled_from([1, 2, 8]),
    rows=st.integers(1, 4096),
    width=st.integers(1, 8192),
    head_dim=st.sampled_from([32, 64, 128]),
    element_bytes=st.sampled_from([2, 4]),
)
def test_blocks_and_splits_are_powers_of_two_within_their_bounds(
    requests: int, kv_heads: int, rows: int, width: int, head_dim: int, element_bytes: int
) -> None:
    plan = plan_of(requests, kv_heads, rows, width, head_dim, element_bytes, H200)
    for size in (plan.block_m, plan.block_n, plan.splits):
        assert size & (size - 1) == 0
    assert LEAST_ROWS <= plan.block_m <= MOST_ROWS
    assert plan.splits <= MOST_SPLITS
    assert plan.splits == 1 or (plan.splits // 2) * plan.block_n < width  # each split can get entries


def test_a_batch_that_fills_the_device_is_not_split() -> None:
    requests = H200 * PROGRAMS_OF_FEW_ROWS
    assert plan_of(requests, 1, 1, 4096, 128, 2, H200).splits == 1


def test_one_request_is_split_until_the_device_is_busy() -> None:
    plan = plan_of(1, 8, 4, 4096, 128, 2, H200)
    assert 8 * plan.splits > H200 // 2
