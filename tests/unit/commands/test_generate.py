"""The command `generate`: what it prints, and one sentence for what cannot be done."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import torch

from refimpl import cli
from refimpl.model.tokenizer import Tokenizer
from tests.conftest import ROOT
from tests.unit.commands.random_weights import write_random_nano

Run = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Done:
    """What came of the command in this process."""

    code: int
    out: str
    err: str


Generate = Callable[..., Done]
Refused = Callable[..., str]
PROMPT = "def fib(n):"
NO_GPU = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_nano(tmp_path_factory.mktemp("weights"))


@pytest.fixture
def generate(weights: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Generate]:
    """`generate("hi", "--json")` on `sim`, in this process, which is quicker than a new one each time."""

    def run(*words: str, given: str = "") -> Done:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(given.encode())))
        code = cli.main(["generate", "--device", "sim", "--weights", str(weights), *words])
        return Done(code, *capfd.readouterr())

    threads = torch.get_num_threads()
    yield run
    torch.set_num_threads(threads)


@pytest.fixture
def refused(generate: Generate) -> Refused:
    """`refused("hi", "--batch", "0")` is the one sentence that the command says instead of an answer."""

    def run(*words: str) -> str:
        done = generate(*words)
        assert (done.code, done.out) == (2, ""), done.err
        assert len(done.err.splitlines()) == 1
        assert done.err.startswith("refimpl generate: ")
        return done.err

    return run


@pytest.fixture
def broken(weights: Path, tmp_path: Path) -> Path:
    """A copy of the weights, to be broken."""
    return Path(shutil.copytree(weights, tmp_path / "broken"))


def test_one_prompt_is_one_object_within_45_seconds(refimpl: Run, weights: Path) -> None:
    # Drafts that nobody trained are hardly ever accepted, so that this is as slow as it gets.
    start = time.monotonic()
    done = refimpl("generate", PROMPT, "--json", "--max-new-tokens", "64", "--device", "sim", "--weights", weights)
    assert time.monotonic() - start < 45
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["device"], found["target"], found["draft"]) == ("sim", "nano", "dflash")
    assert len(found["tokens"]) == 64 or found["finish_reason"] == "stop"
    assert found["text"] == Tokenizer.load().decode(found["tokens"])
    # The prefill emits the first token; every other one comes of a verify.
    assert found["num_verify"] * found["accept_len"] >= len(found["tokens"]) - 1
    assert 0 < found["seconds"] < 45


@pytest.mark.parametrize("words", [["--draft", "none"], ["--no-overlap"], ["--plan-stream"]], ids=" ".join)
def test_no_draft_and_no_order_of_the_work_changes_the_tokens(generate: Generate, words: list[str]) -> None:
    short = (PROMPT, "--json", "--max-new-tokens", "12")
    expected, found = (json.loads(generate(*short, *more).out) for more in ([], words))
    assert found["tokens"] == expected["tokens"]


def test_text_comes_without_its_prompt_and_ends_its_line(generate: Generate) -> None:
    few = ("--max-new-tokens", "4")
    text = json.loads(generate(PROMPT, "--json", *few).out)["text"]
    done = generate(PROMPT, *few)
    assert (done.code, done.err) == (0, "")
    assert done.out == (text if text.endswith("\n") else f"{text}\n")


def test_several_prompts_come_in_their_order_each_under_its_name(generate: Generate) -> None:
    words = ("one", "-", "three", "--batch", "2", "--max-new-tokens", "5")
    rows = json.loads(generate(*words, "--json", given="two\nlines").out)["prompts"]
    assert [row["prompt"] for row in rows] == ["one", "two\nlines", "three"]
    done = generate(*words, given="two\nlines")
    names = ("one", r"two\nlines", "three")
    assert done.out == "".join(
        f"== prompt {number} of 3: {name}\n{row['text']}" + ("" if row["text"].endswith("\n") else "\n")
        for number, (name, row) in enumerate(zip(names, rows, strict=True), 1)
    )


def test_a_prompt_of_several_is_continued_as_it_is_alone(generate: Generate) -> None:
    few = ("--json", "--max-new-tokens", "8", "--temperature", "1", "--seed", "5")
    together = json.loads(generate("one", "two", *few).out)["prompts"]
    alone = json.loads(generate("one", *few).out)
    assert together[0]["tokens"] == alone["tokens"]


def test_text_comes_before_the_end_and_ctrl_c_leaves_with_130(weights: Path) -> None:
    words = ["generate", PROMPT, "--device", "sim", "--weights", str(weights), "--max-new-tokens", "900"]
    run = subprocess.Popen(
        [sys.executable, "-m", "refimpl", *words, "--temperature", "1", "--draft", "none"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=NO_GPU,
        start_new_session=True,
    )
    assert run.stdout is not None
    begun = os.read(run.stdout.fileno(), 1)
    run.send_signal(signal.SIGINT)
    rest, said = run.communicate(timeout=60)
    assert (run.returncode, said) == (130, b"")
    assert len(begun) == 1
    assert len(Tokenizer.load().encode((begun + rest).decode(), bos=False)) < 900


def test_a_reader_that_leaves_ends_it_with_141(weights: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "refimpl", "generate", PROMPT, "--device", "sim", "--weights", str(weights)]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, env=NO_GPU, check=False, timeout=120)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--draft", "medusa"], "unknown draft 'medusa': use one of none, eagle, mtp, dflash"),
        (["--target", "large"], "unknown target 'large'; name one of nano, small, 8b"),
        (["--target", "8b"], "use --device cuda"),
        (["--temperature", "-1"], "temperature=-1.0: use 0 (greedy)"),
        (["--temperature", "nan"], "temperature=nan"),
        (["--temperature", "1e-50"], "temperature=1e-50"),
        (["--top-p", "0"], "top_p=0.0"),
        (["--top-k", "-1"], "top_k=-1"),
        (["--top-k", "9" * 30], f"top_k={'9' * 30}"),
        (["--seed", "-1"], "seed=-1"),
        (["--max-new-tokens", "0"], "max_new_tokens=0"),
        (["--batch", "0"], "--batch 0: let at least one prompt decode"),
        (["--max-context", "0"], "max_context=0"),
        (["--max-context", "4096"], "more than the target's 2048 positions"),
        (["--max-context", "4"], "prompt 0 has"),
        (["word " * 2000], "prompt 1 has"),
        ([os.fsdecode(b"\xff")], "is not UTF-8"),
        (["-", "-"], "standard input can be read once"),
    ],
    ids=lambda given: " ".join(given)[:24].strip().replace("\udcff", "FF") if isinstance(given, list) else "",
)
def test_what_cannot_be_done_is_one_sentence_and_exits_with_2(refused: Refused, words: list[str], says: str) -> None:
    assert says in refused(PROMPT, *words)


def _without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def _holding(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _cut(name: str) -> Callable[[Path], object]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def _wider(folder: Path) -> None:
    config = json.loads((folder / "nano/config.json").read_text())
    config["target"]["intermediate_size"] += 8
    (folder / "nano/config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        (shutil.rmtree, "no config there"),
        (_without("nano/config.json"), "no config there"),
        (_holding("nano/config.json", b"{"), "not JSON"),
        (_holding("nano/config.json", b"[]"), "nano/config.json: "),
        (_wider, "has shape [256, 96], and this Qwen3 wants [264, 96]"),
        (_without("nano/target.safetensors"), "no weights there"),
        (_cut("nano/target.safetensors"), "not a whole safetensors file"),
        (_holding("nano/target.safetensors", b""), "not a whole safetensors file"),
        (_cut("nano/dflash.safetensors"), "dflash.safetensors: not a whole safetensors file"),
        (_without("tokenizer.json"), "no tokenizer there"),
        (_holding("tokenizer.json", b"{}"), "not a tokenizer"),
        (_holding("tokenizer.json", b"\xff"), "tokenizer.json"),
    ],
)
def test_weights_that_do_not_fit_are_one_sentence_that_names_the_file(
    refused: Refused, broken: Path, breaks: Callable[[Path], object], says: str
) -> None:
    breaks(broken)
    said = refused(PROMPT, "--weights", str(broken))
    assert says in said
    assert str(broken) in said


def test_a_process_that_cannot_read_its_weights_says_one_sentence_and_exits_with_2(refimpl: Run, broken: Path) -> None:
    _cut("nano/target.safetensors")(broken)
    done = refimpl("generate", PROMPT, "--device", "sim", "--weights", broken)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "not a whole safetensors file" in done.stderr


def test_a_gpu_that_is_not_there_is_one_sentence(weights: Path) -> None:
    command = [sys.executable, "-m", "refimpl", "generate", PROMPT, "--device", "cuda"]
    done = subprocess.run(command, capture_output=True, env=NO_GPU, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no GPU" in done.stderr
