import torch

from refimpl.model.rope import RotaryTable, rotary_table


def test_casting_a_model_leaves_its_angles_in_fp32() -> None:
    table = RotaryTable(32, 10_000.0, 64).to(torch.bfloat16)
    assert table.cos_sin.dtype is torch.float32
    assert torch.equal(table.cos_sin, rotary_table(32, 10_000.0, 64))


def test_a_table_made_on_the_meta_device_is_whole_once_it_has_memory() -> None:
    with torch.device("meta"):
        table = RotaryTable(32, 10_000.0, 64)
    assert table.cos_sin.is_meta
    table.to_empty(device="cpu")
    assert torch.equal(table.cos_sin, rotary_table(32, 10_000.0, 64))


def test_the_table_holds_cosines_then_sines_of_position_times_frequency() -> None:
    table = rotary_table(8, 100.0, 5).double()
    frequencies = torch.tensor([100.0 ** (-2 * i / 8) for i in range(4)], dtype=torch.float64)
    angles = torch.arange(5, dtype=torch.float64)[:, None] * frequencies
    torch.testing.assert_close(table, torch.cat([angles.cos(), angles.sin()], dim=1), atol=1e-6, rtol=0)
