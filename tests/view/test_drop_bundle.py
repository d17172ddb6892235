"""The scripts of the page that traces are dropped on."""

import base64
import gzip
import json
import re
from pathlib import Path

from refimpl.view.bundle import COMPONENTS, modules, source
from refimpl.view.drop_bundle import ENTRY, drop_script, examples_script


def test_the_page_carries_less_than_300_kilobytes() -> None:
    assert len(drop_script().encode()) < 300_000


def test_the_worker_is_given_the_text_of_the_function_that_the_page_runs() -> None:
    script = drop_script()
    assert script.count("function whole() {") == 1
    assert "(${whole})().serve(self)" in script
    assert not re.findall(r"^(?:import|export) .*", script, re.MULTILINE)


def test_every_export_of_a_view_names_one_thing_since_a_bundle_takes_the_first_alone() -> None:
    for name in {name for entry in (*COMPONENTS, ENTRY) for name in modules(entry)}:
        assert not re.findall(r"^export (?:const|let) \w+ = [\w.\"]+, \w+ =.*", source(name), re.MULTILINE), name


def test_an_example_is_packed_once_and_keeps_its_name_and_words(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.json", tmp_path / "b.json.gz"
    plain.write_bytes(b"[1]")
    packed.write_bytes(gzip.compress(b"[2]"))
    text = examples_script({plain: "the first", packed: "the second"})
    made = json.loads(text.removeprefix("window.streamOrderExamples = ").removesuffix(";\n"))
    assert [(one["name"], one["words"]) for one in made] == [("a.json", "the first"), ("b.json.gz", "the second")]
    assert [gzip.decompress(base64.b64decode(one["gz"])) for one in made] == [b"[1]", b"[2]"]
