"""Exercises: a stub to complete, a checker that judges by properties, a hint, a solution, and wrong answers that prove the checker."""

import inspect
import textwrap
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from refimpl.lessons.exercise_html import Card, code, folded, framed, inline, paragraphs
from refimpl.lessons.exercise_order import Rejected, listing
from refimpl.program import Program


@dataclass(frozen=True)
class Verdict:
    """What a checker says of an answer.

    Args:
        passed: whether the answer has the properties asked for.
        words: one or a few sentences; of a wrong answer, the race or the property that it leaves open.
        details: more lines, such as where in the answer an exception came from.
    """

    passed: bool
    words: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{'Right' if self.passed else 'Not yet'}: {self.words}", *(f"  {line}" for line in self.details)])


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
        hint: a nudge.
        solution: an answer that passes, a function or source text.
        wrong: named wrong answers, each with the reason for which it must be rejected.
        given: the program that the task is about, to be listed.
    """

    name: str
    task: str
    stub: Callable[..., Any] | str
    checker: Callable[[Any], Verdict]
    hint_text: str
    solution_answer: Callable[..., Any] | str
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
        """The verdict on an answer. What an answer raises, and what is not of the form asked for, is an answer that fails."""
        try:
            return self.checker(answer)
        except Rejected as rejected:
            return Verdict(False, rejected.words)
        except (Exception, SystemExit) as error:
            return Verdict(False, f"the answer ended in {_said(error)}", _where(error))

    def hint(self) -> Card:
        """A nudge, folded."""
        return Card(folded("Hint", paragraphs(self.hint_text)), "Hint: " + self.hint_text.replace("`", ""))

    def solution(self) -> Card:
        """One right answer, folded; others may be as right."""
        source = _source(self.solution_answer)
        return Card(folded("One solution", code(source, f"solution of {self.name}")), f"One solution:\n\n{source}")

    def prove(self) -> None:
        """Raises unless the stub fails, the solution passes, and every wrong answer is rejected for its stated reason.

        Raises:
            AssertionError: which of the three does not hold, with the verdict.
        """
        said = self.verdict(_answer(self.stub))
        if said.passed:
            raise AssertionError(f"exercise {self.name!r}: the stub passes: {said.words}")
        said = self.verdict(_answer(self.solution_answer))
        if not said.passed:
            raise AssertionError(f"exercise {self.name!r}: the solution fails: {said}")
        for name, wrong in self.wrong.items():
            said = self.verdict(wrong.answer)
            if said.passed:
                raise AssertionError(f"exercise {self.name!r}: the wrong answer {name!r} passes: {said.words}")
            if wrong.says not in str(said):
                raise AssertionError(f"exercise {self.name!r}: {name!r} must be rejected for {wrong.says!r}, and the verdict is {str(said)!r}")

    def _repr_html_(self) -> str:
        title = f'<div class="so-title"><span class="so-tag">Exercise</span>{inline(self.name.replace("_", " ").capitalize())}</div>'
        body = f"{title}\n{paragraphs(self.task)}"
        if self.given is not None:
            body += "\n" + folded("The ops in issue order", code(listing(self.given), f"ops of {self.given.id}"))
        return framed(body)

    def __repr__(self) -> str:
        task = f"Exercise: {self.name.replace('_', ' ')}\n\n{self.task}".replace("`", "")
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
    """The last line outside this library, which is the reader's own."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "refimpl" not in frame.filename.replace("\\", "/").split("/")]
    if not frames:
        return ()
    return (f"in {frames[-1].name}, line {frames[-1].lineno}: {frames[-1].line or 'an answer without source'}",)
