"""Stream programs as JSON: what is right comes back the same, what is wrong is one sentence that names its place."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.program import OPS, ProgramError, UserError, program_from_json, program_to_json, read_programs
from tests.property.programs import WITH_FLAGS, random_program

CASES = Path(__file__).parents[2] / "cases" / "stream-programs.json"

WHOLE = {"off": 0, "len": 64}

GOOD: dict[str, Any] = {
    "schema": 1,
    "id": "small",
    "streams": {"s": {"kind": "nonblocking"}},
    "buffers": {"x": {"mem": "device", "bytes": 64}, "h": {"mem": "pinned", "bytes": 64}},
    "ops": [
        {"op": "launch", "stream": "s", "name": "k", "reads": [{"buf": "x", **WHOLE}], "writes": []},
        {
            "op": "memcpy",
            "api": "async",
            "kind": "D2H",
            "stream": "s",
            "src": {"buf": "x", **WHOLE},
            "dst": {"buf": "h", **WHOLE},
        },
        {"op": "stream_sync", "stream": "s"},
        {"op": "host_read", "range": {"buf": "h", **WHOLE}},
        {"op": "graph_launch", "stream": "s", "nodes": [{"name": "a"}, {"name": "b", "deps": ["a"]}]},
        {"op": "stream_wait_stream", "stream": "s", "on": "s"},
        {"op": "set_device", "device": 0},
    ],
    "expect": "ok",
    "racing_ops": [],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """``GOOD`` with the value at a dotted path replaced; a value of ``...`` removes it."""
    data = copy.deepcopy(GOOD)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = data
    for part in way:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return data


def written(tmp_path: Path, raw: bytes) -> Path:
    path = tmp_path / "bad.json"
    path.write_bytes(raw)
    return path


def sentence(path: Path) -> str:
    """The one line that reading the file fails with."""
    with pytest.raises(UserError) as caught:
        read_programs(path)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(path)), "an error begins with its file"
    text.encode()
    return text.removeprefix(str(path))


@pytest.mark.parametrize("program", read_programs(CASES), ids=lambda program: program.id)
def test_every_case_survives_a_round_trip(program: Any) -> None:
    again = json.loads(json.dumps(program_to_json(program)))
    assert program_from_json(again) == program


DEFAULTS = ([], "", 0, 1, False, "legacy", "async", "Default", "kernel", "graph", "nonblocking", "device")


def bare(value: Any) -> Any:
    """JSON without the fields that hold a default, as far as one value tells."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if item not in DEFAULTS or key in ("off", "id", "buf")}
    return [bare(item) for item in value] if isinstance(value, list) else value


def test_no_case_loses_a_field_that_the_file_gave() -> None:
    given_cases = json.loads(CASES.read_text())["cases"]
    for given_case, program in zip(given_cases, read_programs(CASES), strict=True):
        assert bare(program_to_json(program)) == bare(given_case)


@pytest.mark.parametrize("seed", range(200))
def test_every_op_survives_a_round_trip(seed: int) -> None:
    program = random_program(seed, kinds=tuple(OPS), length=30)
    assert program_from_json(json.loads(json.dumps(program_to_json(program)))) == program


def test_the_random_programs_use_every_op() -> None:
    used = {op.op for seed in range(200) for op in random_program(seed, kinds=tuple(OPS), length=30).ops}
    assert used == set(OPS)
    assert set(WITH_FLAGS) < used


def test_one_program_is_a_file_and_so_is_a_list_of_cases(tmp_path: Path) -> None:
    one = written(tmp_path, json.dumps(GOOD).encode())
    assert [program.id for program in read_programs(one)] == ["small"]
    many = written(tmp_path, json.dumps({"title": "two", "cases": [GOOD, {**GOOD, "id": "other"}]}).encode())
    assert [program.id for program in read_programs(many)] == ["small", "other"]


def test_our_extension_fields_survive_a_round_trip() -> None:
    more = {"us": 12.5, "site": "loop.py:41", "step": 3, "param": "host", "value": "lengths of step 3"}
    program = program_from_json(changed("ops.0", {**GOOD["ops"][0], **more}))
    assert program_to_json(program)["ops"][0].items() >= more.items()


RANGE = {"buf": "x", "off": 0, "len": 64}

# Path of what is changed, its new value, and the words that the error must contain: op, field and what was given.
WRONG: list[tuple[str, Any, list[str]]] = [
    ("ops.0.op", "lunch", ["op 0", "'op'", "lunch"]),
    ("ops.0.op", None, ["op 0", "'op'"]),
    ("ops.0.op", ["launch"], ["op 0", "'op'"]),
    ("ops.2", "stream_sync", ["op 2", "stream_sync"]),
    ("ops.0.blocks", 3, ["op 0", "'blocks'"]),
    ("ops.0.stream", ..., ["op 0", "'stream'"]),
    ("ops.1.src", ..., ["op 1", "'src'"]),
    ("ops.3.range", ..., ["op 3", "'range'"]),
    ("ops.0.stream", "forward", ["op 0", "'stream'", "forward"]),
    ("ops.5.on", "forward", ["op 5", "'on'", "forward"]),
    ("ops.0.stream", 1, ["op 0", "'stream'"]),
    ("ops.0.reads.0.buf", "y", ["op 0", "'reads'", "'y'"]),
    ("ops.0.reads.0.len", 65, ["op 0", "'reads'", "'x'", "65", "64"]),
    ("ops.0.reads.0.off", -1, ["op 0", "'reads'"]),
    ("ops.0.reads.0.len", 0, ["op 0", "'reads'"]),
    ("ops.0.reads.0.len", -8, ["op 0", "'reads'"]),
    ("ops.0.reads.0", {"buf": "x", "off": 0, "len": 4, "rows": 5, "stride": 16}, ["op 0", "'reads'", "68", "64"]),
    ("ops.0.reads.0", {"buf": "x", "off": 0, "len": 4, "rows": 0, "stride": 16}, ["op 0", "'reads'"]),
    ("ops.0.reads.0", {"buf": "x", "off": 60, "len": 4, "rows": 2, "stride": -16}, ["op 0", "'reads'"]),
    ("ops.0.reads.0", {"buf": "x", "off": 0, "len": 4, "width": 2}, ["op 0", "'reads'", "width"]),
    ("ops.0.reads.0", {"buf": "x", "off": 0}, ["op 0", "'reads'", "len"]),
    ("ops.0.reads.0.len", True, ["op 0", "'reads'"]),
    ("ops.0.reads.0.len", 8.0, ["op 0", "'reads'"]),
    ("ops.0.reads.0.len", "8", ["op 0", "'reads'"]),
    ("ops.0.reads", RANGE, ["op 0", "'reads'"]),
    ("ops.0.reads.0", "x", ["op 0", "'reads'"]),
    ("ops.1.dst.off", 1, ["op 1", "'dst'", "65"]),
    ("ops.1.kind", "D2X", ["op 1", "'kind'", "D2X"]),
    ("ops.1.api", "later", ["op 1", "'api'", "later"]),
    ("ops.3.range.off", 60, ["op 3", "'range'"]),
    ("ops.4.nodes.1.name", "a", ["op 4", "'nodes'"]),
    ("ops.4.nodes.0.deps", ["b"], ["op 4", "circle"]),
    ("ops.4.nodes.0.deps", ["a"], ["op 4", "circle"]),
    ("ops.4.nodes.0.deps", ["c"], ["op 4", "'c'"]),
    ("ops.4.nodes.0.deps", "b", ["op 4", "'deps'"]),
    ("ops.4.nodes.0.reads", [{**RANGE, "len": 65}], ["op 4", "'nodes'", "65"]),
    ("ops.4.nodes.0.kernel", 1, ["op 4", "'kernel'"]),
    ("ops.4.nodes", ..., ["op 4", "'nodes'"]),
    ("ops.6.device", True, ["op 6", "'device'"]),
    ("ops.6.device", -1, ["op 6", "'device'"]),
    ("ops.0.us", -1, ["op 0", "'us'"]),
    ("ops.0.us", True, ["op 0", "'us'"]),
    ("ops.0.us", 10**400, ["op 0", "'us'"]),
    ("ops.0.site", 41, ["op 0", "'site'"]),
    ("schema", 2, ["'schema'", "2"]),
    ("schema", True, ["'schema'"]),
    ("schema", "1", ["'schema'"]),
    ("ops", ..., ["'ops'"]),
    ("ops", {}, ["'ops'"]),
    ("steps", [], ["'steps'"]),
    ("streams.s.kind", "fast", ["'kind'", "fast"]),
    ("streams.s.colour", "red", ["'colour'"]),
    ("streams.s", "nonblocking", ["'streams.s'"]),
    ("buffers.x.bytes", -64, ["'bytes'"]),
    ("buffers.x.bytes", ..., ["'bytes'"]),
    ("buffers.x.mem", "flash", ["'mem'", "flash"]),
    ("buffers", [], ["'buffers'"]),
    ("expect", "fine", ["'expect'", "fine"]),
    ("disputed", 1, ["'disputed'"]),
    ("racing_ops", [[0, 7]], ["'racing_ops'", "7"]),
    ("racing_ops", [[-1, 0]], ["'racing_ops'"]),
    ("racing_ops", [[0]], ["'racing_ops'"]),
    ("racing_ops", [[False, 1]], ["'racing_ops'"]),
    ("racing_ops", 3, ["'racing_ops'"]),
    ("id", 7, ["'id'"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "words"), WRONG, ids=[f"{k}-{path}" for k, (path, _, _) in enumerate(WRONG)])
def test_a_bad_program_is_one_sentence_with_its_place(tmp_path: Path, path: str, value: Any, words: list[str]) -> None:
    text = sentence(written(tmp_path, json.dumps(changed(path, value)).encode()))
    for word in words:
        assert word in text
    if path != "id":
        assert "case 'small'" in text


def test_a_case_without_an_id_is_named_by_its_number(tmp_path: Path) -> None:
    nameless = changed("ops.0.op", "lunch")
    del nameless["id"]
    text = sentence(written(tmp_path, json.dumps({"cases": [GOOD, nameless]}).encode()))
    assert text.startswith(", case number 1, op 0,")


def test_a_file_without_a_name_is_one_sentence() -> None:
    with pytest.raises(ProgramError, match="a file's name is empty"):
        read_programs("")


def test_a_name_that_is_given_twice_is_an_error_since_either_value_could_be_meant(tmp_path: Path) -> None:
    for once, twice in (('"off": 0', '"off": 0, "off": 8'), ('"id": "small"', '"id": "small", "id": "small"')):
        assert "stands more than once in one JSON object" in sentence(
            written(tmp_path, TEXT.replace(once, twice, 1).encode())
        )


def test_a_stream_of_high_priority_has_a_negative_one(tmp_path: Path) -> None:
    high = program_from_json(changed("streams.s.priority", -5))
    assert high.streams["s"].priority == -5
    assert program_from_json(program_to_json(high)) == high
    for wrong in (1.0, True, "-1", -(2**63) - 1):
        raw = json.dumps(changed("streams.s.priority", wrong)).encode()
        assert "field 'streams.s'" in sentence(written(tmp_path, raw)) or "'priority'" in sentence(
            written(tmp_path, raw)
        )


TEXT = json.dumps(GOOD)

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank": (b" \n\t ", "empty"),
    "truncated": (TEXT[: len(TEXT) // 2].encode(), "not JSON"),
    "two values": (b"{} {}", "not JSON"),
    "not UTF-8": (TEXT.encode().replace(b"small", b"sm\xffll"), "UTF-8"),
    "binary": (bytes(range(256)), ""),
    "NaN": (TEXT.replace('"off": 0', '"off": NaN', 1).encode(), "NaN"),
    "Infinity": (TEXT.replace('"off": 0', '"off": -Infinity', 1).encode(), "Infinity"),
    "offset 1e400": (TEXT.replace('"off": 0', '"off": 1e400', 1).encode(), "op 0"),
    "duration 1e400": (TEXT.replace('"name": "k"', '"us": 1e400', 1).encode(), "'us'"),
    "a number of 5,000 digits": (TEXT.replace('"off": 0', '"off": ' + "9" * 5000, 1).encode(), ""),
    "an array": (b"[]", "object"),
    "a number": (b"7", "object"),
    "null": (b"null", "object"),
    "no cases": (b'{"cases": []}', "'cases'"),
    "cases are no list": (b'{"cases": {}}', "'cases'"),
    "a case is no object": (b'{"cases": [7]}', "number 0"),
    "unknown field beside cases": (b'{"cases": [{"ops": []}], "author": 1}', "'author'"),
    "wrong schema of a file": (b'{"schema": 9, "cases": [{"ops": []}]}', "'schema'"),
    "100,000 open brackets": (b"[" * 100_000, "nested"),
    "100,000 nested objects": (b'{"a":' * 100_000, "nested"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_one_sentence(tmp_path: Path, name: str) -> None:
    raw, word = FILES[name]
    assert word in sentence(written(tmp_path, raw))


def test_a_directory_and_a_missing_file_are_one_sentence(tmp_path: Path) -> None:
    assert "directory" in sentence(tmp_path)
    assert "cannot be read" in sentence(tmp_path / "none.json")


@pytest.mark.parametrize("depth", range(800, 1000, 5))
def test_nesting_near_the_interpreter_s_limit_is_one_sentence(tmp_path: Path, depth: int) -> None:
    """A value that the parser takes may still be too deep to be shown in a message."""
    raw = json.dumps(changed("ops.0.name", "DEEP")).replace('"DEEP"', "[" * depth + "]" * depth)
    sentence(written(tmp_path, raw.encode()))


def test_a_name_that_cannot_be_printed_does_not_break_the_message(tmp_path: Path) -> None:
    data = changed("ops.0.reads.0.len", 65)
    data["buffers"]["\ud800\n"] = data["buffers"].pop("x")
    raw = json.dumps(data).replace('"buf": "x"', '"buf": "\\ud800\\n"')
    sentence(written(tmp_path, raw.encode()))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, derandomize=True, database=None)
@given(st.sampled_from([path for path, value, _ in WRONG if value is not ...]), JSON_VALUES)
def test_any_json_in_any_place_is_read_or_refused_in_one_line(path: str, value: Any) -> None:
    try:
        program_from_json(changed(path, value))
    except ProgramError as error:
        assert "\n" not in str(error)  # noqa: PT017
