"""What the gate knows: the event's payload, frozen when the event happened, and the labels, asked for now.

The standard library alone, so that a runner needs nothing installed.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import Any

TIMEOUT_S = 10.0
"""How long one request may take."""
TRIES = 4
"""Requests before the gate gives up on an answer that may get better."""
LONGEST_WAIT_S = 60.0
"""The longest pause that the API may ask for; where it asks for more, a person presses the button later."""
MOST_PAGES = 10
"""Pages of labels; GitHub allows 100 labels, which is one page."""
MAY_GET_BETTER = frozenset({429, 500, 502, 503, 504})


class GateError(Exception):
    """The gate cannot tell; the message is one sentence that says what, where, and what to do."""


@dataclass(frozen=True)
class Payload:
    """The part of an event's payload that may stay frozen.

    Args:
        number: the pull request's; None where the event belongs to none.
        fork: the repository that the commits come from, where it is another one, else None.
        labels: the labels as they were when the event happened. The gate does not look at them.
    """

    number: int | None
    fork: str | None
    labels: tuple[str, ...]


def read_payload(file: Path) -> Payload:
    """The event's payload, as the runner wrote it to ``GITHUB_EVENT_PATH``.

    Raises:
        GateError: the file is missing or malformed.
    """
    try:
        event = json.loads(file.read_text(encoding="utf-8"))
        pull = event.get("pull_request")
        if pull is None:
            return Payload(None, None, ())
        base, head = pull["base"]["repo"]["full_name"], pull["head"]["repo"]
        # The repository of a fork may be deleted while its pull request stays open.
        name = "a deleted repository" if head is None else head["full_name"]
        return Payload(int(pull["number"]), None if name == base else str(name), names_of(pull["labels"]))
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise GateError(f"The event's payload in {file} cannot be read ({error!r}): run the workflow anew.") from None


def names_of(labels: Any) -> tuple[str, ...]:
    """The names in a list of labels.

    Raises:
        TypeError: it is no list of objects that have a name.
    """
    if not isinstance(labels, list) or not all(isinstance(one, dict) for one in labels):
        raise TypeError("not a list of labels")
    names = tuple(one.get("name") for one in labels)
    if not all(isinstance(name, str) for name in names):
        raise TypeError("a label without a name")
    return names


@dataclass(frozen=True)
class Api:
    """GitHub's REST API, read only.

    Args:
        url: its address, ``GITHUB_API_URL``.
        repository: ``owner/name``.
        token: may read pull requests.
        wait_s: the pause before the second try, in seconds; it doubles with each further one.
    """

    url: str
    repository: str
    token: str
    wait_s: float = 2.0

    def labels_now(self, number: int, wanted: str) -> tuple[str, ...]:
        """The labels that the pull request has now.

        They come with the pull request itself. Nothing says that the list in it is whole, so that ``wanted`` is only
        said to be missing after a look at the list that has pages.

        Raises:
            GateError: the API gave no answer, or a malformed one.
        """
        url = f"{self.url}/repos/{self.repository}/pulls/{number}"
        pull, _ = self._get(url)
        labels = _names_in(pull.get("labels") if isinstance(pull, dict) else None, url)
        return labels if wanted in labels else self._all_labels(number)

    def _all_labels(self, number: int) -> tuple[str, ...]:
        first = f"{self.url}/repos/{self.repository}/issues/{number}/labels?per_page=100"
        found: list[str] = []
        url: str | None = first
        for _ in range(MOST_PAGES):
            if url is None:
                return tuple(found)
            page, link = self._get(url)
            found += _names_in(page, url)
            url = self._next(link)
        raise GateError(f"{first} has more than {MOST_PAGES} pages: take labels off, and run the gate again.")

    def _next(self, link: str) -> str | None:
        """The next page's address; the token goes to no other host."""
        named = re.search(r'<([^>]*)>;[^,]*\brel="next"', link)
        if named is None:
            return None
        if urllib.parse.urlsplit(named[1])[:2] != urllib.parse.urlsplit(self.url)[:2]:
            raise GateError(f"The next page of labels is not at {self.url} but at {named[1]}: nothing was asked there.")
        return named[1]

    def _get(self, url: str) -> tuple[Any, str]:
        """The answer's JSON and its ``Link`` header; what may get better is tried again."""
        wait_s = self.wait_s
        for left in reversed(range(TRIES)):
            try:
                return self._ask(url)
            except _Later as later:
                pause = wait_s if later.wait_s is None else later.wait_s
                if left == 0 or pause > LONGEST_WAIT_S:
                    raise GateError(f"{later.words}: run the gate again later.") from None
                time.sleep(pause)
                wait_s *= 2
        raise AssertionError("the last try returns or raises")

    def _ask(self, url: str) -> tuple[Any, str]:
        request = urllib.request.Request(url, headers={"Accept": "application/vnd.github+json"})
        # Not sent on to where a redirect may lead.
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer), answer.headers.get("Link", "")
        except urllib.error.HTTPError as error:
            raise _what_to_do(url, error.code, error.headers) from None
        except (OSError, HTTPException) as error:
            raise _Later(f"{url} cannot be reached ({error})") from None
        except ValueError:
            raise GateError(f"The answer of {url} is not JSON: run the gate again later.") from None


@dataclass(eq=False)
class _Later(Exception):
    """An answer that may get better: ``words``, and how long the API asks to wait, in seconds."""

    words: str
    wait_s: float | None = None


def _names_in(labels: Any, url: str) -> tuple[str, ...]:
    try:
        return names_of(labels)
    except TypeError as error:
        raise GateError(f"The answer of {url} has no list of labels ({error}): run the gate again later.") from None


def _what_to_do(url: str, code: int, headers: Message) -> _Later | GateError:
    """An error that the API answered with: tried again, or final."""
    used_up = headers.get("X-RateLimit-Remaining") == "0"
    if code in MAY_GET_BETTER or (code == 403 and (used_up or "Retry-After" in headers)):
        words = f"{url} is over its rate limit" if used_up or code in (403, 429) else f"{url} answered {code}"
        return _Later(words, _asked_to_wait(headers, used_up))
    if code in (401, 403):
        return GateError(f"{url} answered {code}: give the job the permission pull-requests: read.")
    if code == 404:
        return GateError(f"{url} answered 404: the pull request is not there, or the token may not read it.")
    return GateError(f"{url} answered {code}: look at the request above and at GITHUB_API_URL.")


def _asked_to_wait(headers: Message, used_up: bool) -> float | None:
    """How long the API asks to wait, in seconds; None where it does not say."""
    try:
        if "Retry-After" in headers:
            return max(0.0, float(headers["Retry-After"]))
        if used_up:
            return max(0.0, float(headers["X-RateLimit-Reset"]) - time.time())
    except (KeyError, TypeError, ValueError):
        pass
    return None
