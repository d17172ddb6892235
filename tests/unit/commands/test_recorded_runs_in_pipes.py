"""Files that can be read only once, and places where nothing can be written."""

import gzip
import io
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from refimpl.cli import main
from refimpl.timeline.reading import chrome_text
from refimpl.view.write import write_whole

KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"stream": 7}}
PROFILE = json.dumps({"traceEvents": [KERNEL]}).encode()
Said = tuple[int, str, str]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*words: str | Path) -> Said:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def pipe(tmp_path: Path, data: bytes) -> Path:
    """A named pipe that somebody writes into, as a shell makes one for ``<(zcat trace.json.gz)``."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(data,), daemon=True).start()
    return path


@pytest.mark.parametrize("data", [PROFILE, gzip.compress(PROFILE)], ids=["plain", "packed"])
def test_a_pipe_is_read_like_standard_input(say: Callable[..., Said], tmp_path: Path, data: bytes) -> None:
    code, out, err = say("trace", pipe(tmp_path, data), "--json")
    assert (code, err) == (0, "")
    assert [json.loads(out)[key] for key in ("us", "spans")] == [2.0, 1]


def test_a_pipe_has_no_name_to_go_by(say: Callable[..., Said], tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    code, out, err = say("timeline", path)
    assert (code, out) == (2, "")
    assert f"{path} has no name to go by" in err
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]


def test_what_unpacks_to_more_than_fits_is_refused_from_standard_input(
    say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_text, "LIMIT_BYTES", 1 << 16)
    packed = gzip.compress(PROFILE + b" " * (1 << 17))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    code, out, err = say("trace", "-")
    assert (code, out) == (2, "")
    assert "standard input holds more than" in err


def test_a_file_that_cannot_be_written_is_called_by_the_name_that_was_given(tmp_path: Path) -> None:
    out = tmp_path / "missing" / "run.html"
    with pytest.raises(FileNotFoundError) as raised:
        write_whole(b"x", out)
    assert raised.value.filename == str(out)


def test_a_name_as_long_as_a_folder_takes_is_written(tmp_path: Path) -> None:
    out = tmp_path / ("n" * 250 + ".html")
    assert write_whole(b"x", out).read_bytes() == b"x"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("out", ["missing/trace.json", "is.json"])
def test_a_profile_refuses_a_bad_place_before_it_asks_for_a_gpu(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "is.json").mkdir()
    code, said, err = say("profile", "--preset", "latest", "-o", out)
    assert (code, said) == (2, "")
    assert f"-o {out}: " in err
    assert "GPU" not in err
