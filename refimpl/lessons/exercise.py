"""Exercises: a stub, a checker that judges by properties, a hint, a solution, and wrong answers that prove it one."""

import inspect
import textwrap
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import refimpl
from refimpl.lessons.exercise_html import Card, code, folded, framed, inline, paragraphs, plain
from refimpl.lessons.exercise_order import Rejected, listing
from refimpl.lessons.lines import wrapped
from refimpl.program import Program

_LIBRARY = Path(refimpl.__file__).parent


@dataclass(frozen=True)
class Verdict:
    """What a checker says of an answer.

    Args:
        passed: whether the answer has the properties asked for.
        words: one or a few sentences; of a wrong answer, the race or the property that it leaves open.
        details: more lines, such as where in the answer an exception came from; a long one of code is not broken.
    """

    passed: bool
    words: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = f"{'Right' if self.passed else 'Not yet'}: {self.words}"
        return "\n".join([*map(wrapped, said.splitlines()), *(f"  {line}" for line in self.details)])


@dataclass(frozen=True)
class Wrong:
    """A plausible answer that must be rejected.

    Args:
        answer: the answer.
        says: words that the verdict on it must contain: the reason.
    """

    answer: Any
    says: str


@dataclass(frozen=True)
class Exercise:
    """One exercise. ``prove`` shows that it is one.

    Args:
        name: of the exercise and of the variable that chapters keep it in.
        task: what to do; `backticks` mark code, a blank line parts paragraphs.
        stub: what the reader starts from, a function or the source text of one answer, which must fail.
        checker: judges an answer by its properties, never by comparing it with the solution.
        nudge: what ``hint`` shows.
        right: an answer that passes, a function or source text; ``solution`` shows it.
        wrong: named wrong answers, each with the reason for which it must be rejected.
        given: the program that the task is about, to be listed.
    """

    name: str
    task: str
    stub: Callable[..., Any] | str
    checker: Callable[[Any], Verdict]
    nudge: str
    right: Callable[..., Any] | str
    wrong: Mapping[str, Wrong] = field(default_factory=dict)
    given: Program | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "wrong", MappingProxyType(dict(self.wrong)))

    @property
    def stub_source(self) -> str:
        """The source of the stub, as the chapter's cell has it."""
        return _source(self.stub)

    def check(self, answer: Any) -> None:
        """Prints the verdict on an answer; a bad answer never ends in a traceback."""
        print(self.verdict(answer))

    def verdict(self, answer: Any) -> Verdict:
        """The verdict on an answer; one that raises, or that is not of the form asked for, fails."""
        try:
            return self.checker(answer)
        except Rejected as rejected:
            return Verdict(False, rejected.words)
        except (Exception, SystemExit) as error:
            return Verdict(False, f"the answer ended in {_said(error)}", _where(error))

    def hint(self) -> Card:
        """A nudge, folded."""
        return Card(folded("Hint", paragraphs(self.nudge)), plain(f"Hint: {self.nudge}"))

    def solution(self) -> Card:
        """One right answer, folded; others may be as right."""
        source = _source(self.right)
        if callable(self.stub) and callable(self.right):
            source = source.replace(f"def {self.right.__name__}(", f"def {self.stub.__name__}(", 1)
        return Card(folded("One solution", code(source, f"solution of {self.name}")), f"One solution:\n\n{source}")

    def prove(self) -> None:
        """Raises unless the stub fails, the solution passes, and every wrong answer is rejected for its stated reason.

        Raises:
            AssertionError: which of the three does not hold, with the verdict.
        """
        said = self.verdict(_answer(self.stub))
        if said.passed:
            raise AssertionError(f"exercise {self.name!r}: the stub passes: {said.words}")
        said = self.verdict(_answer(self.right))
        if not said.passed:
            raise AssertionError(f"exercise {self.name!r}: the solution fails: {said}")
        for name, wrong in self.wrong.items():
            said = self.verdict(wrong.answer)
            if said.passed:
                raise AssertionError(f"exercise {self.name!r}: the wrong answer {name!r} passes: {said.words}")
            if wrong.says not in "\n".join([said.words, *said.details]):
                expected = f"{name!r} must be rejected for {wrong.says!r}"
                raise AssertionError(f"exercise {self.name!r}: {expected}, and the verdict is {str(said)!r}")

    def _repr_html_(self) -> str:
        heading = inline(self.name.replace("_", " ").capitalize())
        title = f'<div class="so-title"><span class="so-tag">Exercise</span>{heading}</div>'
        body = f"{title}\n{paragraphs(self.task)}"
        if self.given is not None:
            body += "\n" + folded("The ops in issue order", code(listing(self.given), f"ops of {self.given.id}"))
        return framed(body)

    def __repr__(self) -> str:
        task = f"Exercise: {self.name.replace('_', ' ')}\n\n{plain(self.task)}"
        return task if self.given is None else f"{task}\n\n{listing(self.given)}"


def _source(answer: Callable[..., Any] | str) -> str:
    return textwrap.dedent(answer if isinstance(answer, str) else inspect.getsource(answer)).strip()


def _answer(given: Callable[..., Any] | str) -> Any:
    """The answer itself; source text is run, and the last name that it binds is the answer."""
    if not isinstance(given, str):
        return given
    names: dict[str, Any] = {}
    exec(compile(textwrap.dedent(given), "<answer>", "exec"), names)
    return list(names.values())[-1]


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _where(error: BaseException) -> tuple[str, ...]:
    """The first line outside this library: the reader's own."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not Path(f.filename).is_relative_to(_LIBRARY)]
    return tuple(f"in {f.name}, line {f.lineno}: {f.line or 'no source'}" for f in frames[:1])
