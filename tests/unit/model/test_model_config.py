import dataclasses

import pytest

from refimpl.model.registry import slide_odd_layers
from refimpl.model.shapes import FAMILIES

NANO = FAMILIES["nano"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"num_attention_heads": 4, "num_key_value_heads": 3}, "not a multiple"),
        ({"head_dim": 31}, "odd"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"mask_token_id": 4096}, "mask_token_id 4096 is not below"),
        ({"sliding_window": 8}, "given together"),
        ({"sliding_layers": (1,)}, "given together"),
        ({"sliding_window": 8, "sliding_layers": (4,)}, "must lie in 0..3"),
    ],
)
def test_a_target_that_cannot_be_is_one_sentence(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        dataclasses.replace(NANO.target, **change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("features", [(), (1, 1), (2, 1), (-1, 0)])
def test_feature_layers_are_named_once_and_in_order(features: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="feature_layers"):
        dataclasses.replace(NANO.eagle, feature_layers=features)


def test_a_block_holds_a_draft() -> None:
    with pytest.raises(ValueError, match="block_size is 1"):
        dataclasses.replace(NANO.dflash, block_size=1)


def test_every_odd_layer_slides() -> None:
    assert slide_odd_layers(NANO.target, 16).sliding_layers == (1, 3)
    assert slide_odd_layers(NANO.target, None) is NANO.target


@pytest.mark.parametrize("name", FAMILIES)
def test_no_draft_asks_for_what_the_last_layer_leaves(name: str) -> None:
    family = FAMILIES[name]
    assert all(max(draft.feature_layers) < family.target.num_hidden_layers - 1 for draft in family.drafts().values())
