"""Evaluation decodes what the target alone would write, and counts what it did."""

import torch

from refimpl.model import registry
from refimpl.model.attention import DenseAttention
from refimpl.model.shapes import FAMILIES
from refimpl.train.evaluate import acceptance, decode, unique_ngrams
from refimpl.train.propose import drafter
from refimpl.train.write import Writer

NEW = 12


def greedy(target, prompts, new):
    tokens = prompts
    for _ in range(new):
        positions = torch.arange(tokens.shape[1]).expand_as(tokens)
        hidden, _ = target(tokens, positions, DenseAttention())
        tokens = torch.cat([tokens, target.logits(hidden[:, -1:]).argmax(-1)], 1)
    return tokens


def prompts(rows=3, length=10):
    return torch.randint(0, 4000, (rows, length), generator=torch.Generator().manual_seed(1))


def test_greedy_decoding_with_any_draft_writes_what_plain_greedy_decoding_writes():
    target = registry.random_target(FAMILIES["nano"].target)
    expected = greedy(target, prompts(), NEW)
    for kind, config in FAMILIES["nano"].drafts().items():
        draft = registry.random_draft(config, target)
        decoded = decode(target, drafter(draft), prompts(), config.feature_layers, NEW, 0.0)
        assert decoded.tokens[:, : expected.shape[1]].equal(expected), kind
        assert (decoded.ends >= expected.shape[1]).all()


def test_every_verify_is_counted_once_by_its_accept_len():
    target = registry.random_target(FAMILIES["nano"].target)
    config = FAMILIES["nano"].drafts()["eagle"]
    decoded = decode(target, drafter(registry.random_draft(config, target)), prompts(), config.feature_layers, NEW, 1.0)
    lengths = torch.arange(decoded.counts.shape[1])
    assert (decoded.counts * lengths).sum(1).equal(decoded.ends - prompts().shape[1])


def test_the_chance_of_a_draft_is_conditional_on_the_ones_before_it():
    counts = torch.tensor([[0, 2, 1, 1], [0, 2, 1, 1]])  # 8 verifies: 4 accept none, 2 accept one, 2 accept both
    found = acceptance(counts)
    assert found["verifies"] == 8
    assert found["histogram"] == [4, 2, 2]
    assert found["conditional_acceptance"] == [0.5, 0.5]
    assert found["accept_len"] == (4 * 1 + 2 * 2 + 2 * 3) / 8


def test_a_text_that_loops_has_few_different_runs():
    loop, varied = [1, 2] * 20, list(range(40))
    assert unique_ngrams([varied]) == {"within_a_text": 1.0, "among_all": 1.0}
    assert unique_ngrams([loop])["within_a_text"] == round(2 / 33, 4)
    assert unique_ngrams([varied, varied]) == {"within_a_text": 1.0, "among_all": 0.5}


def test_the_writer_keeps_prompts_and_writes_what_greedy_decoding_writes():
    target = registry.random_target(FAMILIES["nano"].target)
    tokens = torch.cat([prompts(), torch.zeros(3, NEW, dtype=torch.int64)], 1)
    tokens[1, 6:] = 0
    lens = torch.tensor([10, 6, 10])
    written = Writer(target, 3, tokens.shape[1]).write(tokens, lens, torch.zeros(3))
    assert written[::2].equal(greedy(target, prompts()[::2], NEW))
    assert written[1:2].equal(greedy(target, prompts()[1:2, :6], NEW + 4))


def test_the_writer_samples_at_the_temperature_of_each_row():
    target = registry.random_target(FAMILIES["nano"].target)
    rows = 64
    tokens = prompts(1).expand(rows, -1)
    tokens = torch.nn.functional.pad(tokens, (0, 1))
    heat = torch.cat([torch.zeros(rows // 2), torch.ones(rows // 2)])
    last = Writer(target, rows, tokens.shape[1]).write(tokens, torch.full((rows,), 10), heat)[:, -1]
    assert len(last[: rows // 2].unique()) == 1
    assert len(last[rows // 2 :].unique()) > rows // 4
