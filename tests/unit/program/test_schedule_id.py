"""The text that names one order of execution."""

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.program import HOST, Turn, UserError, schedule_id, turns_of

turns = st.lists(
    st.one_of(
        st.just(Turn(HOST)),
        st.builds(Turn, st.integers(-9, 40).filter(bool)),
        st.builds(Turn, st.integers(-9, 40).filter(bool), st.integers(2, 5)),
    )
)


@given(turns)
def test_an_order_is_read_back_from_its_text(order: list[Turn]) -> None:
    assert list(turns_of(schedule_id(order))) == order


def test_a_long_order_is_packed_and_read_back() -> None:
    order = [Turn(lane) for lane in range(1, 2001)]
    text = schedule_id(order)
    assert text.startswith("z:")
    assert list(turns_of(text)) == order


@pytest.mark.parametrize(
    "text", ["h0", "x", "1x", "1/0", "h..1", "1/2x3", " h", "1\n", "z:abc", "z:é", "h1٣", "-0", "00", "9" * 5000]
)
def test_what_names_no_order_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match="schedule") as refused:
        turns_of(text)
    assert "\n" not in str(refused.value)


def test_an_absurdly_long_order_is_refused_and_not_built() -> None:
    with pytest.raises(UserError, match="longer than"):
        turns_of("h999999999")
    with pytest.raises(UserError, match="more than 10,000 pieces"):
        turns_of("1/999999999")
    bomb = "z:" + base64.urlsafe_b64encode(zlib.compress(b"h." * 10**8)).decode()
    with pytest.raises(UserError, match="too long"):
        turns_of(bomb)
