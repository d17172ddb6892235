"""The gate: what is true when it runs decides, and what it cannot find out does not pass."""

import json
import time
from pathlib import Path

import pytest

from tests.ci.conftest import NUMBER, REPOSITORY, TOKEN, Gate, GitHub, payload

PASSES, REFUSES, CANNOT_TELL = 0, 1, 2
FROZEN = "broken_frozen_label.py"


def one_sentence(words: str) -> bool:
    """Whether these words are one line without a traceback that ends as a sentence does."""
    return len(words.strip().splitlines()) == 1 and words.strip().endswith(".") and "Traceback" not in words


def test_a_label_that_was_there_at_the_event_and_still_is_passes(github: GitHub, gate: Gate) -> None:
    github.labels = ["run-gpu"]
    done = gate(payload(["run-gpu"]))
    assert (done.returncode, done.stderr) == (PASSES, "")
    assert "'run-gpu'" in done.stdout


def test_a_label_added_after_the_event_passes(github: GitHub, gate: Gate) -> None:
    event = payload(["run-gpu-chapters"])
    github.labels = ["run-gpu-chapters"]
    assert gate(event).returncode == REFUSES
    github.labels.append("run-gpu")
    assert gate(event).returncode == PASSES


def test_a_label_removed_since_the_event_does_not_pass(github: GitHub, gate: Gate) -> None:
    event = payload(["run-gpu"])
    github.labels = ["run-gpu"]
    assert gate(event).returncode == PASSES
    github.labels.remove("run-gpu")
    done = gate(event)
    assert done.returncode == REFUSES
    assert "Add it" in done.stdout


def test_the_frozen_gate_never_sees_a_label_added_after_the_event(github: GitHub, gate: Gate) -> None:
    event = payload(["run-gpu-chapters"])
    github.labels = ["run-gpu-chapters", "run-gpu"]
    assert [gate(event, FROZEN).returncode for _ in range(3)] == [REFUSES] * 3


def test_the_frozen_gate_still_counts_a_label_removed_since_the_event(github: GitHub, gate: Gate) -> None:
    github.labels = []
    assert gate(payload(["run-gpu"]), FROZEN).returncode == PASSES


def test_the_frozen_gate_asks_nobody(github: GitHub, gate: Gate) -> None:
    gate(payload(["run-gpu"]), FROZEN)
    assert github.asked == []


@pytest.mark.parametrize("name", ["RUN-GPU", "run-gpu ", "run-gpu-chapters", "not-run-gpu"])
def test_another_label_is_not_the_label(github: GitHub, gate: Gate, name: str) -> None:
    github.labels = [name]
    assert gate(payload([name])).returncode == REFUSES


def test_the_label_is_found_on_a_later_page(github: GitHub, gate: Gate) -> None:
    github.labels = [*(f"area-{n}" for n in range(70)), "run-gpu"]
    github.embedded, github.page = 30, 30
    assert gate(payload([])).returncode == PASSES
    assert len(github.asked) == 4


def test_a_refusal_comes_after_the_last_page(github: GitHub, gate: Gate) -> None:
    github.labels = [f"area-{n}" for n in range(70)]
    github.page = 30
    assert gate(payload([])).returncode == REFUSES
    assert len(github.asked) == 4


def test_pages_without_end_are_given_up(github: GitHub, gate: Gate) -> None:
    github.labels = [f"area-{n}" for n in range(70)]
    github.page = 1
    done = gate(payload([]))
    assert done.returncode == CANNOT_TELL
    assert one_sentence(done.stderr)
    assert len(github.asked) <= 12


def test_the_token_goes_to_no_other_host(github: GitHub, gate: Gate) -> None:
    elsewhere = '<http://127.0.0.1:9/labels>; rel="next"'
    github.trouble = [(200, {}, '{"labels": []}'), (200, {"Link": elsewhere}, "[]")]
    done = gate(payload([]))
    assert done.returncode == CANNOT_TELL
    assert "127.0.0.1:9" in done.stderr
    assert {token for _, token in github.asked} == {f"Bearer {TOKEN}"}


def test_the_token_does_not_follow_a_redirect(github: GitHub, gate: Gate) -> None:
    github.labels = ["run-gpu"]
    github.trouble = [(302, {"Location": f"{github.url}/repos/{REPOSITORY}/pulls/{NUMBER}"}, "")]
    gate(payload([]))
    assert [token for _, token in github.asked][:2] == [f"Bearer {TOKEN}", None]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_get_better_is_tried_again(github: GitHub, gate: Gate, status: int) -> None:
    github.labels = ["run-gpu"]
    github.trouble = [(status, {}, "not now")] * 2
    assert gate(payload([])).returncode == PASSES
    assert len(github.asked) == 3


@pytest.mark.parametrize("status", [429, 500, 503])
def test_tries_are_bounded_and_then_the_gate_does_not_pass(github: GitHub, gate: Gate, status: int) -> None:
    github.labels = ["run-gpu"]
    github.trouble = [(status, {}, "not now")] * 50
    done = gate(payload(["run-gpu"]))
    assert done.returncode == CANNOT_TELL
    assert one_sentence(done.stderr)
    assert len(github.asked) == 4


def test_an_api_that_is_down_does_not_pass(gate: Gate) -> None:
    done = gate(payload(["run-gpu"]), GITHUB_API_URL="http://127.0.0.1:9")
    assert done.returncode == CANNOT_TELL
    assert one_sentence(done.stderr)


def test_the_gate_waits_as_long_as_the_api_asks(github: GitHub, gate: Gate) -> None:
    github.labels = ["run-gpu"]
    github.trouble = [(403, {"Retry-After": "1"}, "{}")]
    begin = time.monotonic()
    assert gate(payload([])).returncode == PASSES
    assert time.monotonic() - begin >= 1


def test_a_rate_limit_that_lasts_is_one_sentence_and_no_second_try(github: GitHub, gate: Gate) -> None:
    reset = str(int(time.time()) + 3000)
    github.trouble = [(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, "{}")]
    done = gate(payload(["run-gpu"]))
    assert done.returncode == CANNOT_TELL
    assert "rate limit" in done.stderr
    assert one_sentence(done.stderr)
    assert len(github.asked) == 1


@pytest.mark.parametrize(("status", "says"), [(401, "pull-requests: read"), (403, "pull-requests: read"), (404, "404")])
def test_what_will_not_get_better_is_not_tried_again(github: GitHub, gate: Gate, status: int, says: str) -> None:
    github.trouble = [(status, {}, "{}")]
    done = gate(payload(["run-gpu"]))
    assert done.returncode == CANNOT_TELL
    assert says in done.stderr
    assert one_sentence(done.stderr)
    assert len(github.asked) == 1


@pytest.mark.parametrize(
    "body",
    ["", "{", "<html>", "[]", "null", "{}", '{"labels": null}', '{"labels": ["run-gpu"]}', '{"labels": [{"name": 1}]}'],
)
def test_a_malformed_answer_does_not_pass(github: GitHub, gate: Gate, body: str) -> None:
    github.trouble = [(200, {}, body)]
    done = gate(payload(["run-gpu"]))
    assert done.returncode == CANNOT_TELL
    assert one_sentence(done.stderr)


def test_a_pull_request_from_a_fork_passes_with_a_word_on_secrets(github: GitHub, gate: Gate) -> None:
    github.labels = ["run-gpu"]
    done = gate(payload([], fork="somebody/order"))
    assert done.returncode == PASSES
    assert "somebody/order" in done.stdout
    assert "no secrets" in done.stdout


def test_a_fork_without_the_label_does_not_pass(gate: Gate) -> None:
    assert gate(payload(["run-gpu"], fork="somebody/order")).returncode == REFUSES


def test_a_fork_that_was_deleted_is_a_fork(github: GitHub, gate: Gate) -> None:
    github.labels = ["run-gpu"]
    event = payload([])
    event["pull_request"]["head"]["repo"] = None
    done = gate(event)
    assert done.returncode == PASSES
    assert "no secrets" in done.stdout


@pytest.mark.parametrize("script", ["require_label.py", FROZEN])
def test_an_event_without_a_pull_request_passes_with_a_sentence(github: GitHub, gate: Gate, script: str) -> None:
    done = gate({"ref": "refs/heads/main"}, script)
    assert done.returncode == PASSES
    assert one_sentence(done.stdout)
    assert github.asked == []


@pytest.mark.parametrize("event", ["", "{", "[]", '{"pull_request": 7}', '{"pull_request": {"number": 7}}'])
@pytest.mark.parametrize("script", ["require_label.py", FROZEN])
def test_a_malformed_payload_does_not_pass(gate: Gate, event: str, script: str) -> None:
    done = gate(event, script)
    assert done.returncode == CANNOT_TELL
    assert one_sentence(done.stderr)


@pytest.mark.parametrize("name", ["GITHUB_API_URL", "GITHUB_REPOSITORY", "GITHUB_EVENT_PATH", "GH_TOKEN"])
def test_a_missing_variable_is_one_sentence(gate: Gate, name: str) -> None:
    done = gate(payload(["run-gpu"]), **{name: ""})
    assert done.returncode == CANNOT_TELL
    assert name in done.stderr
    assert one_sentence(done.stderr)


def test_the_labels_are_left_for_other_jobs_in_one_line_whatever_their_names(
    github: GitHub, gate: Gate, tmp_path: Path
) -> None:
    github.labels = ["run-gpu", "a\nwanted=true", "::set-output name=x::y"]
    done = gate(payload([]))
    (line,) = (tmp_path / "output").read_text().splitlines()
    assert json.loads(line.removeprefix("labels=")) == github.labels
    assert not any(line.startswith("::") for line in done.stdout.splitlines())
    assert TOKEN not in done.stdout + done.stderr
