"""The folders of the views' JavaScript: each imports only from those that the room names; nothing is left over."""

import posixpath
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import refimpl.view
from refimpl.view import bundle, drop_bundle

VIEW = Path(refimpl.view.__file__).parent
PATH = re.compile(r"""["'](\.{1,2}/[^"']+\.js)["']""")
"""Of imports, and of types in comments."""


def arrows() -> dict[str, set[str]]:
    """The table in the room's docstring: a folder, and those that it may import from."""
    lines = re.findall(r"^    (\w+) +-> ?((?:\w+ )*)(?: |$)", refimpl.view.__doc__ or "", re.MULTILINE)
    return {folder: set(others.split()) for folder, others in lines}


def files() -> dict[str, str]:
    """Every module by its place in the room."""
    found = sorted(VIEW.rglob("*.js"))
    return {file.relative_to(VIEW).as_posix(): file.read_text(encoding="utf-8") for file in found}


def breaches(texts: Mapping[str, str], allowed: Mapping[str, set[str]]) -> Iterator[str]:
    """What imports from where it may not, or from nowhere."""
    for name, text in texts.items():
        folder = posixpath.dirname(name)
        for path in PATH.findall(text):
            asked = posixpath.normpath(posixpath.join(folder, path))
            if asked not in texts or posixpath.dirname(asked) not in {folder} | allowed[folder]:
                yield f"{name} imports {asked}"


def test_every_module_lies_in_a_folder_of_the_table() -> None:
    assert {posixpath.dirname(name) for name in files()} == set(arrows())


def test_a_folder_imports_only_from_those_behind_its_arrow() -> None:
    assert list(breaches(files(), arrows())) == []


def test_no_arrow_leads_back() -> None:
    rest = arrows()
    while rest:
        ends = {folder for folder, others in rest.items() if not others & set(rest)}
        assert ends, f"these import from each other: {sorted(rest)}"
        rest = {folder: others for folder, others in rest.items() if folder not in ends}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('import { mount } from "../explorable/timeline.js";\n', "model/new.js imports explorable/timeline.js"),
        ('/** @typedef {import("../run/view.js").RunView} View */\n', "model/new.js imports run/view.js"),
        ('import { lost } from "./lost.js";\n', "model/new.js imports model/lost.js"),
    ],
)
def test_an_import_against_the_arrows_is_seen(text: str, says: str) -> None:
    assert list(breaches({**files(), "model/new.js": text}, arrows())) == [says]


def test_every_module_is_part_of_a_page_or_of_the_model_that_tests_ask() -> None:
    entries = (*bundle.COMPONENTS, drop_bundle.ENTRY, "model/model.js")
    assert {name for entry in entries for name in bundle.modules(entry)} == set(files())


def test_files_of_one_name_in_two_folders_are_two_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = {
        "a/words.js": 'import { low } from "../b/words.js";\nexport const high = `${low} and high`;\n',
        "b/words.js": 'export const low = "low";\n',
        "a/all.js": 'import { high } from "./words.js";\nimport { low } from "../b/words.js";\nprint(low, high);\n',
    }
    monkeypatch.setattr(bundle, "source", texts.__getitem__)
    assert bundle.modules("a/all.js") == ("b/words.js", "a/words.js", "a/all.js")
    script = tmp_path / "all.mjs"
    script.write_text(f"const print = console.log;\n{bundle.esm('a/all.js')}", encoding="utf-8")
    told = subprocess.run(["node", script], check=True, capture_output=True, text=True).stdout
    assert told == "low low and high\n"
