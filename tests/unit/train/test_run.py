"""The corpus, the text for drafts, the loop's clock, what a run leaves, and its card."""

import json
import time

import numpy as np
import pytest
import torch

from refimpl.model.shapes import FAMILIES
from refimpl.train import card, corpus, figures, harvest
from refimpl.train.loop import Optimizing, train_until
from refimpl.train.plan import PLANS, RESUMED_SCHEDULE, SCHEDULE, rehearsal
from refimpl.train.selfgen import Writing
from refimpl.train.sources import Document, Domain, Source
from refimpl.train.text import CorpusText, DraftText, write_shard

CPU = torch.device("cpu")


def document(path, domain=Domain.CODE):
    return Document(path, "text", Source("a", "1", "MIT", domain))


def test_a_file_belongs_to_a_split_by_its_path_alone_and_the_unseen_package_to_none_that_is_learned():
    paths = [f"a/{number}.py" for number in range(3000)]
    splits = [corpus.split_of(document(path)) for path in paths]
    assert splits == [corpus.split_of(document(path)) for path in paths]
    assert 0.01 < splits.count("code") / len(splits) < 0.03
    assert {corpus.split_of(document(path, Domain.UNSEEN)) for path in paths} == {"unseen package"}


def test_the_tokenizer_spells_any_text_and_has_the_special_tokens_on_top():
    texts = [
        f"def name_{number}(x): return x + {number * 7919} # {chr(97 + number % 26) * 3}" for number in range(6000)
    ]
    tokenizer = corpus.train_tokenizer(texts)
    config = FAMILIES["nano"].target
    assert tokenizer.get_vocab_size() == config.vocab_size
    ids = (config.bos_token_id, config.eos_token_id, config.mask_token_id)
    assert tuple(map(tokenizer.token_to_id, corpus.SPECIALS)) == ids
    strange = "naïve\t§ 漢字\r\n"
    assert tokenizer.decode(tokenizer.encode(strange).ids) == strange


def put_corpus(folder, tokens):
    corpus.save(folder, corpus.TRAIN, np.asarray(tokens))


def test_a_missing_corpus_is_named_with_the_command_that_builds_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="train corpus"):
        CorpusText(tmp_path, corpus.TRAIN, CPU, seed=0)


def test_windows_are_runs_of_the_corpus(tmp_path):
    put_corpus(tmp_path, range(100))
    rows = CorpusText(tmp_path, corpus.TRAIN, CPU, seed=0).batch(50, 10)
    assert (rows.diff(dim=1) == 1).all()
    with pytest.raises(ValueError, match="take more text"):
        CorpusText(tmp_path, corpus.TRAIN, CPU, seed=0).batch(1, 101)


def test_drafts_take_up_the_targets_text_when_it_appears(tmp_path):
    put_corpus(tmp_path, [1] * 100)
    text = DraftText(CorpusText(tmp_path, corpus.TRAIN, CPU, seed=0), tmp_path / "shards", own_share=0.75, seed=1)
    text.refresh()
    assert (text.batch(8, 10) == 1).all()
    write_shard(tmp_path / "shards", 0, torch.full((4, 12), 7))
    text.refresh()
    text.refresh()
    assert text.own_tokens == 48
    assert (text.batch(8, 10) == 7).all(1).sum() == 6


def test_the_rate_rises_then_falls_to_its_floor_when_the_time_is_over():
    rates = Optimizing(learning_rate=1.0, warmup_steps=10, final_share=0.1)
    assert rates.rate(0, 0.0) == pytest.approx(0.1)
    assert rates.rate(9, 0.0) == pytest.approx(1.0)
    assert rates.rate(500, 1.0) == rates.rate(500, 1.7) == pytest.approx(0.1)


def test_training_stops_at_its_deadline_and_has_learned():
    weight = torch.nn.Parameter(torch.tensor([[4.0]]))
    torch.optim.AdamW([weight])  # the first one imports for seconds
    deadline = time.time() + 0.5
    history = train_until([weight], lambda: weight.square().sum(), Optimizing(0.1), deadline, 3, lambda words: None)
    assert time.time() < deadline + 5
    assert history.tokens == 3 * history.steps
    assert weight.abs() < 4.0


def test_a_loss_that_is_no_number_ends_the_training():
    weight = torch.nn.Parameter(torch.tensor([[4.0]]))
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        train_until(
            [weight], lambda: weight.sum() * float("nan"), Optimizing(0.1), time.time() + 60, 1, lambda words: None
        )


def test_the_rows_written_have_the_temperatures_in_their_shares():
    heats = Writing(10, 64, (4, 16), ((0.0, 0.5), (0.7, 0.2), (1.0, 0.3))).of_rows(CPU)
    torch.testing.assert_close(heats, torch.tensor([0.0] * 5 + [0.7] * 2 + [1.0] * 3))
    with pytest.raises(ValueError, match="do not add up"):
        Writing(10, 64, (4, 16), ((0.0, 0.5), (1.0, 0.4)))


@pytest.mark.parametrize(("schedule", "size"), [(SCHEDULE, "nano"), (SCHEDULE, "small"), (RESUMED_SCHEDULE, "small")])
def test_a_job_that_waits_for_a_file_ends_after_the_job_that_writes_it(schedule, size):
    spans = {span.job: span for span in schedule if span.size == size}
    for kind in FAMILIES[size].drafts():
        assert spans["target"].end < spans["selfgen"].end < spans[f"draft-{kind}"].end
        assert spans[f"draft-{kind}"].end < spans[f"evaluate-{kind}"].end
        assert kind in PLANS[size].drafts
        assert kind in rehearsal(PLANS[size]).drafts


def reported(folder):
    jobs = folder / "work" / "reports"
    jobs.mkdir(parents=True)
    history = {"parameters": 10, "steps": 5, "tokens": 50, "seconds": 1.0, "loss": 2.5}
    held_out = {"code": {"nats_per_token": 1.5, "bits_per_byte": 0.75}}
    figures_of_text = {
        "verifies": 4,
        "accept_len": 2.25,
        "conditional_acceptance": [0.5],
        "histogram": [2, 2],
        "unique_8grams": {"within_a_text": 0.625, "among_all": 0.5},
    }
    written = {"shards": 1, "tokens": 1234567, "seconds": 1.0}
    found = {"target": {**history, "held_out": held_out}, "selfgen": written, "draft-eagle": history}
    found["evaluate-eagle"] = {"drafts": 7, "by_temperature": {"0.7": {"code": figures_of_text}}}
    for job, content in found.items():
        (jobs / f"small-{job}.json").write_text(json.dumps(content))
    source = {"name": "sympy", "version": "1", "licence": "BSD-3-Clause", "domain": "code"}
    counts = {"files": 3, "trained_files": 2, "bytes": 10}
    splits = {"train": {"files": 2, "tokens": 4, "bytes": 8}}
    (folder / "corpus").mkdir()
    content = {"vocab_size": 4096, "sources": [{**source, **counts}], "splits": splits}
    (folder / "corpus" / "corpus.json").write_text(json.dumps(content))
    (folder / "corpus" / "tokenizer.json").write_text("{}")
    (folder / "work" / "logs").mkdir()


ABOUT = {"machine": {"device": "a GPU", "driver": "1", "torch": "2", "date": "2026-01-01", "gpus": 3}, "seconds": 60.0}


def test_every_figure_of_the_card_comes_from_the_report(tmp_path):
    reported(tmp_path)
    harvest.keep(tmp_path / "corpus", tmp_path / "work", tmp_path / "out", ABOUT)
    found = figures.results([json.loads((tmp_path / "out" / harvest.REPORT).read_text())])
    words = card.text(found)
    for figure in (
        "| EAGLE-3 head | 7 | 0.70 | code | 2.25 | 4 | 0.62 | 0.50 |",
        "1,234,567",
        "| code | 1.50 | 0.75 |",
    ):
        assert figure in words
    (row,) = found["acceptance"]
    assert (row["temperature"], row["accept_len"], row["histogram"]) == (0.7, 2.25, [2, 2])


def test_a_report_without_a_target_has_no_results(tmp_path):
    reported(tmp_path)
    for file in (tmp_path / "work" / "reports").iterdir():
        file.unlink()
    harvest.keep(tmp_path / "corpus", tmp_path / "work", tmp_path / "out", ABOUT)
    with pytest.raises(ValueError, match="no target"):
        figures.results([json.loads((tmp_path / "out" / harvest.REPORT).read_text())])


def test_a_later_run_replaces_what_it_did_again_and_keeps_what_it_did_not():
    def target(steps, nats, **more):
        history = {"parameters": 10, "steps": steps, "tokens": 50, "seconds": 1.0, "loss": 2.5}
        return {**history, "held_out": {"code": {"nats_per_token": nats, "bits_per_byte": 1.0}}, **more}

    first = {**ABOUT, "corpus": {}, "jobs": {"nano-target": target(5, 3.0), "small-target": target(5, 2.0)}}
    second = {**ABOUT, "corpus": {}, "jobs": {"small-target": target(7, 1.5, resumed=True)}}
    both = figures.results([first, second])
    assert [(row["size"], row["nats_per_token"]) for row in both["losses"]] == [("nano", 3.0), ("small", 1.5)]
    trained = [(row["size"], row["run"], row["began"], row["steps"]) for row in both["models"]]
    assert trained == [("nano", 1, "anew", 5), ("small", 1, "anew", 5), ("small", 2, "run before", 7)]


def test_weights_are_packed_in_few_files_and_come_out_where_they_were(tmp_path):
    reported(tmp_path)
    weights = tmp_path / "work" / "weights" / "nano"
    weights.mkdir(parents=True)
    (weights / "eagle.safetensors").write_bytes(b"weights")
    harvest.keep(tmp_path / "corpus", tmp_path / "work", tmp_path / "out", ABOUT)
    assert harvest.install(tmp_path / "out", tmp_path / "there") == ["tokenizer.json", "nano/eagle.safetensors"]
    assert (tmp_path / "there" / "nano" / "eagle.safetensors").read_bytes() == b"weights"
    assert (tmp_path / "there" / "tokenizer.json").read_text() == "{}"
    assert len(harvest.PACKS) + len(("training.json", "training.log", "tokenizer.json", "gpus.txt")) <= 8
