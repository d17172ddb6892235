"""The checker on recorded code: each classic hazard is found in PyTorch code, and its fix is proved."""

from typing import Any

import pytest

import refimpl
from refimpl.order import check
from refimpl.program import Verdict
from tests.device.hazards import BODIES


@pytest.mark.parametrize("name", BODIES)
def test_a_hazard_in_recorded_code_is_found_and_its_fix_is_proved(dev: Any, name: str) -> None:
    body, kind = BODIES[name]
    for fixed in (False, True):
        with refimpl.record("sim") as program:
            body("sim", dev, fixed)
        found = check(program)
        if fixed:
            assert found.verdict is Verdict.OK
        else:
            assert [race.kind for race in found.races] == [kind]
            assert all(name in (race.first.site or "") + (race.second.site or "") for race in found.races)
