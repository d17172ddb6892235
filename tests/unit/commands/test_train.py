"""`python -m refimpl train`: what is missing is said in one sentence, and a job runs from the command line."""

import json

import numpy as np
import pytest
import torch

from refimpl import cli
from refimpl.train import corpus
from refimpl.train.sources import Domain


@pytest.fixture
def text(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    splits = {}
    for split in (corpus.TRAIN, *(domain.value for domain in Domain)):
        corpus.save(folder, split, np.random.default_rng(0).integers(0, 4000, 3000))
        splits[split] = {"files": 1, "tokens": 3000, "bytes": 9000}
    (folder / "corpus.json").write_text(json.dumps({"vocab_size": 4096, "sources": [], "splits": splits}))
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["corpus"], "--prose"),
        (["run", "--device", "cpu"], "--out"),
        (["job", "--job", "target", "--size", "nano"], "--work"),
        (["card", "--out", "nowhere"], "training.json"),
        (["install"], "--out"),
    ],
)
def test_what_is_missing_is_named(capsys, words, said):
    assert cli.main(["train", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("report", "said"), [("{}", "jobs"), ("", "not JSON"), ("[]", "no object")])
def test_a_report_that_is_none_is_refused_and_the_card_stays(capsys, tmp_path, report, said):
    from refimpl.model.registry import WEIGHTS

    was = (WEIGHTS / "MODEL_CARD.md").read_bytes()
    (tmp_path / "training.json").write_text(report)
    assert cli.main(["train", "card", "--out", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
    assert cli.main(["train", "card", "--before", str(tmp_path)]) == 2
    assert "--out" in capsys.readouterr().err
    assert (WEIGHTS / "MODEL_CARD.md").read_bytes() == was


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_a_job_without_a_gpu_says_how_to_rehearse(capsys, tmp_path):
    words = ["train", "job", "--job", "target", "--size", "nano", "--device", "cuda", "--work", str(tmp_path)]
    assert cli.main(words) == 2
    assert "--rehearse" in capsys.readouterr().err


def test_a_run_without_a_corpus_says_how_to_build_it(capsys, tmp_path):
    words = ["train", "run", "--device", "cpu", "--out", str(tmp_path), "--corpus", str(tmp_path)]
    assert cli.main(words) == 2
    assert "train corpus" in capsys.readouterr().err


def test_jobs_leave_weights_that_the_registry_loads(tmp_path, text):
    from refimpl.model import registry

    threads, work = torch.get_num_threads(), tmp_path / "work"
    given = ["--size", "nano", "--corpus", str(text), "--work", str(work), "--device", "cpu", "--rehearse"]
    try:
        for job, seconds in (("target", "3"), ("selfgen", "0"), ("draft-eagle", "2"), ("evaluate-eagle", "60")):
            assert cli.main(["train", "job", "--job", job, "--seconds", seconds, *given]) == 0
    finally:
        torch.set_num_threads(threads)
    target = registry.load_target("nano", weights=work / "weights")
    assert registry.load_draft("eagle", "nano", target, weights=work / "weights")
    report = json.loads((work / "reports" / "nano-evaluate-eagle.json").read_text())
    assert set(report["by_temperature"]) == {"0.0", "0.7", "1.0"}
