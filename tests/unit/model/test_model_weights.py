import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from refimpl.model import weights_io
from refimpl.model.config_io import load_family, save_family
from refimpl.model.registry import load_draft, load_target, random_draft, random_target
from refimpl.model.shapes import FAMILIES
from refimpl.model.weights_io import WeightsError, load_weights, save_weights

NANO = FAMILIES["nano"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the trained one, with random nano weights."""
    folder = tmp_path_factory.mktemp("weights")
    target = random_target(NANO.target)
    save_family(NANO, folder / "nano" / "config.json")
    save_weights(target, folder / "nano" / "target.safetensors")
    for kind, config in NANO.drafts().items():
        save_weights(random_draft(config, target), folder / "nano" / f"{kind}.safetensors")
    return folder


def test_a_target_on_disk_has_the_names_and_dtype_of_hugging_face(weights: Path) -> None:
    stored = safetensors.torch.load_file(weights / "nano" / "target.safetensors")
    assert {name for name in stored if ".layers." not in name} == {"model.embed_tokens.weight", "model.norm.weight"}
    assert {name.removeprefix("model.layers.0.") for name in stored if ".layers.0." in name} == {
        "input_layernorm.weight",
        "post_attention_layernorm.weight",
        *(f"self_attn.{part}.weight" for part in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")),
        *(f"mlp.{part}.weight" for part in ("gate_proj", "up_proj", "down_proj")),
    }
    assert {tensor.dtype for tensor in stored.values()} == {torch.bfloat16}
    assert stored["model.layers.0.self_attn.k_proj.weight"].shape == (32, 96)


def test_a_dflash_draft_on_disk_has_the_names_of_z_lab(weights: Path) -> None:
    stored = safetensors.torch.load_file(weights / "nano" / "dflash.safetensors")
    assert {name for name in stored if not name.startswith("layers.")} == {
        "fc.weight",
        "hidden_norm.weight",
        "norm.weight",
    }
    assert "layers.1.self_attn.q_proj.weight" in stored


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_saved_is_loaded_rounded_to_bf16_and_cast(weights: Path, dtype: torch.dtype) -> None:
    made, loaded = random_target(NANO.target), load_target("nano", dtype=dtype, weights=weights)
    assert loaded.dtype is dtype
    for name, parameter in made.named_parameters():
        assert torch.equal(loaded.get_parameter(name), parameter.bfloat16().to(dtype)), name
    for kind, config in NANO.drafts().items():
        made_draft, draft = random_draft(config, made), load_draft(kind, "nano", loaded, weights=weights)
        for name, parameter in made_draft.named_parameters():
            assert torch.equal(draft.get_parameter(name), parameter.bfloat16().to(dtype)), (kind, name)


def test_a_loaded_model_is_frozen(weights: Path) -> None:
    target = load_target("nano", weights=weights)
    assert not target.training
    assert not any(parameter.requires_grad for parameter in target.parameters())


def test_sliding_is_asked_for_at_load(weights: Path) -> None:
    assert load_target("nano", weights=weights, sliding_window=16).config.sliding_layers == (1, 3)


def rewritten(source: Path, to: Path, change) -> Path:
    stored = safetensors.torch.load_file(source)
    change(stored)
    safetensors.torch.save_file(stored, to)
    return to


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda stored: stored.pop("model.norm.weight"), r"1 tensors .* missing, model\.norm\.weight first"),
        (lambda stored: stored.update(more=torch.zeros(1)), r"1 tensors .* no place for, more first"),
        (
            lambda stored: stored.update({"model.norm.weight": torch.zeros(97)}),
            r"model\.norm\.weight has shape \[97\], and this Qwen3 wants \[96\]",
        ),
    ],
)
def test_weights_that_do_not_fit_change_nothing(weights: Path, tmp_path: Path, change, sentence: str) -> None:
    path = rewritten(weights / "nano" / "target.safetensors", tmp_path / "t.safetensors", change)
    target = random_target(NANO.target, seed=9)
    before = {name: parameter.clone() for name, parameter in target.named_parameters()}
    with pytest.raises(WeightsError, match=sentence) as caught:
        load_weights(target, path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert all(torch.equal(parameter, before[name]) for name, parameter in target.named_parameters())


def test_a_file_cut_short_is_one_sentence(weights: Path, tmp_path: Path) -> None:
    whole = (weights / "nano" / "target.safetensors").read_bytes()
    (tmp_path / "t.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WeightsError, match="not a whole safetensors file"):
        load_weights(random_target(NANO.target), tmp_path / "t.safetensors")


def test_no_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no weights there"):
        load_weights(random_target(NANO.target), tmp_path / "t.safetensors")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.safetensors"
    save_weights(random_target(NANO.target), path)
    before = path.read_bytes()

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(weights_io.os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        save_weights(random_target(NANO.target, seed=2), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_family_comes_back_as_it_was_written(weights: Path) -> None:
    assert load_family(weights / "nano" / "config.json") == NANO


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda content: content["target"].update(colour=1), "ModelConfig does not fit .*colour"),
        (lambda content: content["target"].pop("vocab_size"), "ModelConfig does not fit .*vocab_size"),
        (lambda content: content["target"].update(hidden_size="wide"), "ModelConfig does not fit"),
        (lambda content: content["drafts"].update(medusa={}), "drafts must be a table of eagle, mtp, dflash; .*medusa"),
        (lambda content: content.update(drafts=[]), "drafts must be a table"),
        (lambda content: content.update(target=3), "ModelConfig must be a table"),
        (lambda content: content.update(extra=1), "must hold the keys"),
    ],
)
def test_a_config_that_does_not_fit_is_one_sentence(weights: Path, tmp_path: Path, change, sentence: str) -> None:
    content = json.loads((weights / "nano" / "config.json").read_text())
    change(content)
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(WeightsError, match=sentence) as caught:
        load_family(tmp_path / "config.json")
    assert "\n" not in str(caught.value)


def test_a_config_that_is_not_json_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(WeightsError, match="not JSON"):
        load_family(tmp_path / "config.json")
