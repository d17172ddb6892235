"""Predict, then run: questions that keep their answer until the reader commits, and numbers guessed beforehand."""

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from refimpl.lessons.exercise_html import Card, folded, framed, inline, paragraphs
from refimpl.program.errors import UserError

LETTERS = "abcdef"
_STRONG = re.compile(r"^(Answer: [a-f]\.)")


@dataclass(frozen=True)
class Question:
    """One question with two to six options; the page keeps the answer until the reader has committed to one of them.

    The page needs no script and no kernel: radio buttons, and a fold that appears with the first choice.

    Args:
        text: the question; `backticks` mark code.
        options: what can be chosen, each with the sentence that is said to whoever chose it.
        answer: the option that is right.
        why: what the answer rests on.
        name: a short name, such as ``"who_stands_still"``.

    Raises:
        UserError: fewer than two options, more than six, or an answer that is none of them.

    Example:
        >>> question = Question(
        ...     text="Who stands still in `verify_done.wait()`?",
        ...     options={"the host": "It returns at once.", "the stream": "Its later work comes after the capture."},
        ...     answer="the stream", why="The call queues a wait.", name="who_stands_still",
        ... )
        >>> question.commit("a")
        You chose: the host. Not this one. It returns at once.
        Answer: b. the stream. The call queues a wait.
    """

    text: str
    options: Mapping[str, str]
    answer: str
    why: str
    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))
        if not 2 <= len(self.options) <= len(LETTERS):
            raise UserError(f"question {self.name!r} has {len(self.options)} options: give it 2 to {len(LETTERS)}")
        if self.answer not in self.options:
            raise UserError(f"question {self.name!r}: answer {self.answer!r} is none of {', '.join(self.options)}")

    def commit(self, choice: str) -> Card:
        """What is said to whoever chose an option, by its letter or in its words, and the answer; it needs no page."""
        options = list(self.options)
        at = LETTERS.find(choice.lower()) if len(choice) == 1 else -1
        chosen = options[at] if 0 <= at < len(options) else choice
        if chosen not in self.options:
            words = f"{choice!r} is no option: choose one of {', '.join(LETTERS[: len(options)])}."
            return Card(paragraphs(words), words)
        said, answer = self._said(chosen), self._answer()
        return Card(paragraphs(f"{said}\n\n{answer}"), f"{said}\n{answer}".replace("`", ""))

    def _repr_html_(self) -> str:
        options = list(self.options)
        radios = "\n".join(self._radio(letter, option) for letter, option in zip(LETTERS, options, strict=False))
        said = "\n".join(f'<div class="so-said">{self._said_html(option)}</div>' for option in options)
        answer = _STRONG.sub(r'<p class="so-why"><strong>\1</strong>', inline(self._answer())) + "</p>"
        legend = f'<legend><span class="so-tag">Predict</span>{inline(self.text)}</legend>'
        # A form scopes the radio group: a question shown twice is two questions. "dialog" sends nothing anywhere.
        return framed(
            f'<form class="so-q" method="dialog">\n<fieldset>{legend}\n{radios}</fieldset>\n'
            f'<p class="so-ask">Choose one before you go on; then you can open the answer.</p>\n'
            f"{folded('I commit to this: show the answer', f'{said}{answer}')}\n"
            f'<div class="so-print" hidden>{answer}</div>\n</form>'
        )

    def __repr__(self) -> str:
        lines = [f"Predict: {self.text}", *(f"  {k}. {o}" for k, o in zip(LETTERS, self.options, strict=False))]
        return "\n".join([*lines, '.commit("a") shows what follows from a, and the answer.']).replace("`", "")

    def _radio(self, letter: str, option: str) -> str:
        button = f'<input type="radio" name="{html.escape(self.name)}" value="{letter}">'
        return f"<label>{button} <span>{letter}. {inline(option)}</span></label>"

    def _verdict(self, option: str) -> str:
        return "Right." if option == self.answer else "Not this one."

    def _said(self, option: str) -> str:
        return f"You chose: {option}. {self._verdict(option)} {self.options[option]}"

    def _said_html(self, option: str) -> str:
        mark, kind = ("✓", "so-good") if option == self.answer else ("✗", "so-bad")
        verdict = f'<strong class="{kind}"><span aria-hidden="true">{mark} </span>{self._verdict(option)}</strong>'
        return f"<p>You chose: {inline(option)}. {verdict} {inline(self.options[option])}</p>"

    def _answer(self) -> str:
        letter = LETTERS[list(self.options).index(self.answer)]
        return f"Answer: {letter}. {self.answer}. {self.why}"


def guess(**numbers: float | None) -> "Guess":
    """Numbers guessed before they are measured; ``None`` is no guess. A name may end in its unit: ``wait_ms``.

    Example:
        >>> guess(wait_ms=4.8, synchronize_ms=None).compare({"wait_ms": 4.0, "synchronize_ms": 5.0})
                          guess   measured   factor
        wait (ms)         4.8     4          1.20 × too high
        synchronize (ms)  none    5
    """
    for name, value in numbers.items():
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)
        ):
            raise UserError(f"guess({name}={value!r}): write a number, or None for no guess")
    return Guess(numbers)


@dataclass(frozen=True)
class Guess:
    """What the reader expects, by name."""

    numbers: Mapping[str, float | None] = field(default_factory=dict)

    def compare(self, measured: Mapping[str, float]) -> Card:
        """The guesses beside what was measured, with the factor between; one sentence when nothing was guessed.

        Args:
            measured: by the names that ``guess`` was given; others are shown without a guess.
        """
        rows = [
            _row(name, self.numbers.get(name), measured.get(name)) for name in dict.fromkeys([*self.numbers, *measured])
        ]
        note = (
            ""
            if any(value is not None for value in self.numbers.values())
            else "No guess was made: type numbers into `guess(…)` and run again."
        )
        return _table(("", "guess", "measured", "factor"), rows, note)


def _row(name: str, guessed: float | None, measured: float | None) -> tuple[str, str, str, str]:
    stem, _, unit = name.rpartition("_")
    label = (
        f"{stem.replace('_', ' ')} ({unit})" if stem and unit in ("us", "ms", "s", "bytes") else name.replace("_", " ")
    )
    return label, _number(guessed, "none"), _number(measured, "not measured"), _factor(guessed, measured)


def _number(value: float | None, absent: str) -> str:
    return absent if value is None else f"{value:.4g}"


def _factor(guessed: float | None, measured: float | None) -> str:
    if guessed is None or measured is None:
        return ""
    if guessed <= 0 or measured <= 0:
        return "exact" if guessed == measured else f"off by {abs(guessed - measured):.4g}"
    ratio = max(guessed / measured, measured / guessed)
    if f"{ratio:.2f}" == "1.00":
        return "1.00 ×"
    return (
        f"{ratio:.2f} × too {'high' if guessed > measured else 'low'}"
        if ratio < 100
        else f"{ratio:.0f} × too {'high' if guessed > measured else 'low'}"
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, str, str, str]], note: str) -> Card:
    cells = "\n".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>'
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    heads = "".join(f'<th scope="col">{name}</th>' if name else "<td></td>" for name in head)
    body = f"<table><thead><tr>{heads}</tr></thead>\n<tbody>{cells}</tbody></table>"
    widths = [max(len(row[k]) for row in [head, *rows]) + 2 for k in range(len(head))]
    lines = [
        "".join(cell.ljust(width + (k > 0)) for k, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in [head, *rows]
    ]
    if note:
        return Card(f"{paragraphs(note)}\n{body}", "\n".join([note.replace("`", ""), *lines]))
    return Card(body, "\n".join(lines))
