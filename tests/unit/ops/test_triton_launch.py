"""What a second launch of a kernel finds again, and what it must not: with a kernel that only notes its launches."""

from typing import Any

import pytest
import torch

from refimpl.model.ops import triton_launch
from refimpl.model.ops.triton_launch import Kernel


class Compiled:
    """What Triton gives back: launched by its `run`."""

    function, packed_metadata = "function", "metadata"

    def __init__(self, launches: list[tuple[Any, ...]]) -> None:
        self._launches = launches

    def run(self, *arguments: Any) -> None:
        self._launches.append(arguments)


class Jit:
    """Triton's dispatch: compiles at every launch."""

    def __init__(self) -> None:
        self.dispatched: list[tuple[Any, ...]] = []
        self.launched: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*arguments: Any, num_warps: int, num_stages: int | None = None) -> Compiled:
            self.dispatched.append((grid, *arguments, num_warps, num_stages))
            return Compiled(self.launched)

        return launch


@pytest.fixture
def jit(monkeypatch: pytest.MonkeyPatch) -> Jit:
    monkeypatch.setattr(triton_launch.torch._C, "_cuda_getCurrentRawStream", lambda device: "stream", raising=False)
    return Jit()


def test_the_second_launch_of_a_kind_goes_past_the_dispatch_with_every_argument_in_its_place(jit: Jit) -> None:
    kernel, x, y = Kernel(jit), torch.zeros(8), torch.zeros(8, dtype=torch.int64)
    kernel.launch((2, 1, 1), (x, y), (3, 0.5), (7,), (16, True), warps=2)
    assert jit.dispatched == [((2, 1, 1), x, y, 3, 0.5, 7, 16, True, False, 2, None)]
    assert jit.launched == []
    kernel.launch((5, 4, 3), (y[:4], x[:4].long()), (3, 0.5), (9,), (16, True), warps=2)
    assert len(jit.dispatched) == 2, "other dtypes are another kind"
    kernel.launch((5, 4, 3), (x, y), (3, 0.5), (9,), (16, True), warps=2)
    addresses = x.data_ptr(), y.data_ptr()
    hooks = (None, None, None)
    assert jit.launched == [(5, 4, 3, "stream", "function", "metadata", *hooks, *addresses, 3, 0.5, 9, 16, True, False)]


@pytest.mark.parametrize(
    "changed",
    [{"numbers": (4,)}, {"constants": (32,)}, {"warps": 8}, {"stages": 1}, {"tensors": (torch.zeros(8).bfloat16(),)}],
    ids=lambda changed: next(iter(changed)),
)
def test_what_triton_compiles_for_is_another_kind(jit: Jit, changed: dict[str, Any]) -> None:
    kernel = Kernel(jit)
    arguments: dict[str, Any] = {
        "tensors": (torch.zeros(8),),
        "numbers": (3,),
        "constants": (16,),
        "warps": 4,
        "stages": None,
    }
    for call in (arguments, arguments | changed, arguments, arguments | changed):
        kernel.launch((1, 1, 1), **call)
    assert (len(jit.dispatched), len(jit.launched)) == (2, 2)


def test_memory_that_is_not_aligned_is_left_to_the_dispatch(jit: Jit) -> None:
    kernel, x = Kernel(jit), torch.zeros(64)
    assert x.data_ptr() % triton_launch.ALIGNED == 0
    for _ in range(2):
        kernel.launch((1, 1, 1), (x,))
        kernel.launch((1, 1, 1), (x[1:],))
    assert (len(jit.dispatched), len(jit.launched)) == (3, 1)
    kernel.launch((1, 1, 1), (x[4:],))
    assert len(jit.launched) == 2, "16 bytes further it is aligned again"


def test_on_amd_every_launch_is_left_to_the_dispatch(jit: Jit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton compiles for the size of each memory there."""
    monkeypatch.setattr(torch.version, "hip", "7.0")
    kernel = Kernel(jit)
    for _ in range(2):
        kernel.launch((1, 1, 1), (torch.zeros(8),))
    assert (len(jit.dispatched), len(jit.launched)) == (2, 0)


def test_an_interpreter_compiles_nothing_and_is_asked_each_time(jit: Jit) -> None:
    asked = []

    class Interpreter:
        def __getitem__(self, grid: Any) -> Any:
            return lambda *arguments, **options: asked.append(arguments)

    kernel = Kernel(Interpreter())
    for _ in range(2):
        kernel.launch((1, 1, 1), (torch.zeros(4),))
    assert len(asked) == 2
