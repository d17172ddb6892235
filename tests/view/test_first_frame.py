"""The still picture: the words of hazards lie apart, and stand for all of them."""

import re
from xml.etree import ElementTree

import pytest

from refimpl.order import check
from refimpl.program import Buffer, Launch, Program, Range, Stream
from refimpl.view import first_frame

SVG = "{http://www.w3.org/2000/svg}"


def racy(steps: int, us: float) -> Program:
    """In each step a write and a read of one buffer, on two streams that nothing orders."""
    lens = (Range("lens", 0, 8),)
    write = Launch(stream="forward", name="write", writes=lens, us=us)
    read = Launch(stream="schedule", name="read", reads=lens, us=us)
    streams = {"schedule": Stream(), "forward": Stream()}
    return Program(id="racy", streams=streams, buffers={"lens": Buffer(8)}, ops=(write, read) * steps)


def pills(program: Program) -> list[tuple[float, float, float, str]]:
    """Each word of a hazard: left, right, top, text."""
    root = ElementTree.fromstring(first_frame(program))
    boxes = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "pill"]
    words = [one.text or "" for one in root.iter(f"{SVG}text") if one.get("class") == "word"]
    lefts = [(float(one.attrib["x"]), float(one.attrib["width"]), float(one.attrib["y"])) for one in boxes]
    return [(x, x + width, y, word) for (x, width, y), word in zip(lefts, words, strict=True)]


@pytest.mark.parametrize("us", [3.0, 50.0, 400.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 9])
def test_words_of_hazards_lie_apart_and_count_all(steps: int, us: float) -> None:
    program = racy(steps, us)
    found = pills(program)
    assert found[0][3].startswith(("RAW lens", "WAR lens"))
    for k, (left, right, y, _) in enumerate(found):
        assert left >= 0
        assert all(other[2] != y or other[0] >= right or other[1] <= left for other in found[k + 1 :])
    told = sum(1 + int((re.search(r"\+(\d+)$", word) or ["", "0"])[1]) for *_, word in found)
    assert told == len(check(program).races) > 0
