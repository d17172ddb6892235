"""`python -m refimpl generate`: text from the engine, as it comes."""

import argparse
import json
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refimpl.commands.answers import Answers
from refimpl.commands.terminal import StatusLine, bar
from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.engine import Completion, Engine, Piece

STDIN = "-"
CHOICE = ("temperature", "top_k", "top_p", "max_new_tokens", "seed")
"""Options that are `SamplingParams`."""
SHOWN = 40
"""Characters that a message repeats of a prompt."""
MOST_TOGETHER = 16
"""Prompts that decode together unless --batch says otherwise: each size up to it costs a capture."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the prompts, the models, how tokens are chosen, and how the engine runs."""
    parser.add_argument("prompts", nargs="+", metavar="PROMPT", help="a text to continue; - is standard input")
    parser.add_argument(
        "--json", action="store_true", help="one object once all is there, rather than text as it comes"
    )
    models = parser.add_argument_group("models")
    models.add_argument("--target", help="nano, small, or 8b: random weights (default: small on cuda, nano on sim)")
    models.add_argument("--draft", default="dflash", help="none, eagle, mtp or dflash (default: %(default)s)")
    models.add_argument("--device", choices=["cuda", "sim"], help="the device (default: the best one present)")
    models.add_argument("--weights", type=Path, metavar="DIR", help="other weights than those of the package")
    tokens = parser.add_argument_group("tokens")
    tokens.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the likeliest (default)")
    tokens.add_argument("--top-k", type=int, default=0, metavar="K", help="sample among the K likeliest; 0: all")
    tokens.add_argument("--top-p", type=float, default=1.0, metavar="P", help="then among those that hold P in all")
    tokens.add_argument("--max-new-tokens", type=int, default=64, metavar="N", help="default: %(default)s a prompt")
    tokens.add_argument("--seed", type=int, default=0, metavar="S", help="prompt i draws with S + i (default: 0)")
    engine = parser.add_argument_group("engine")
    engine.add_argument(
        "--batch", type=int, metavar="N", help=f"prompts that decode together (default: {MOST_TOGETHER})"
    )
    engine.add_argument("--max-context", type=int, default=1024, metavar="N", help="tokens of a prompt and its text")
    engine.add_argument("--no-overlap", action="store_true", help="read each step before the next is prepared")
    engine.add_argument("--plan-stream", action="store_true", help="write req_to_token on a stream of its own")
    parser.epilog = (
        "Text goes to stdout without its prompt; of several prompts each begins with a line that names it. "
        "--json: device, target, draft, seconds (without loading), and tokens, text, accept_len, num_verify and "
        "finish_reason, for several prompts in a list `prompts`. Exit code: 0, 2 bad input, 130 Ctrl-C."
    )


def run(args: argparse.Namespace) -> int:
    """Load, decode, and print what comes."""
    prompts = _prompts(args.prompts)
    status = StatusLine(beneath_text=not args.json)
    try:
        return _run(args, prompts, status)
    finally:
        status.erase()


def _run(args: argparse.Namespace, prompts: list[str], status: StatusLine) -> int:
    import torch

    from refimpl.engine import EngineError, SamplingParams

    try:
        params = SamplingParams(**{name: getattr(args, name) for name in CHOICE})
        names, options = _names(args), _options(args, len(prompts))
        if names["device"] == "sim":
            # Its operators are too small to be shared: a second thread would cost each more than it takes off.
            torch.set_num_threads(1)
        engine = _engine(names, options, status)
        pieces = engine.stream(prompts, **vars(params))
        answers = Answers(prompts, None if args.json else status.print_text)
        seconds = _decode(pieces, answers, status, params.max_new_tokens)
    except EngineError as error:
        raise UserError(str(error)) from error
    except torch.OutOfMemoryError as error:
        raise UserError(f"too little memory on the device: use a smaller --batch or --max-context ({error})") from error
    completions = [answers.completions[index] for index in range(len(prompts))]
    answers.end_line()
    status.say(_summary(completions, seconds))
    if args.json:
        print(json.dumps(_object(names, prompts, completions, seconds)))
    return 0


def _prompts(words: Sequence[str]) -> list[str]:
    """The prompts, with standard input in the place of its dash."""
    if words.count(STDIN) > 1:
        raise UserError("- is given twice, and standard input can be read once: name it once")
    prompts = [_standard_input() if word == STDIN else word for word in words]
    for prompt in prompts:
        try:
            prompt.encode()
        except UnicodeEncodeError:
            raise UserError(f"{prompt[:SHOWN]!r} is not UTF-8: give a prompt as UTF-8 text") from None
    return prompts


def _standard_input() -> str:
    if sys.stdin is None:
        raise UserError("standard input is closed: give the prompt as a word, or send it in")
    return sys.stdin.buffer.read().decode("utf-8", errors="surrogateescape")


def _names(args: argparse.Namespace) -> dict[str, str]:
    """Which device, target and draft."""
    from refimpl import device as devices
    from refimpl.commands import chosen

    device = chosen.device(args.device) or devices.best()
    target = args.target or ("nano" if device == "sim" else "small")
    if (target, device) == ("8b", "sim"):
        raise UserError("--target 8b is there for timing, on a GPU: use --device cuda, or --target small")
    return {"device": device, "target": target, "draft": args.draft}


def _options(args: argparse.Namespace, count: int) -> dict[str, Any]:
    """What else the engine is told."""
    if args.batch is not None and args.batch < 1:
        raise UserError(f"--batch {args.batch}: let at least one prompt decode")
    options: dict[str, Any] = {
        "max_running_requests": min(count, args.batch or MOST_TOGETHER),
        "max_context": args.max_context,
        "overlap": not args.no_overlap,
        "plan_stream": args.plan_stream,
    }
    return options if args.weights is None else {**options, "weights": args.weights}


def _engine(names: dict[str, str], options: dict[str, Any], status: StatusLine) -> "Engine":
    from refimpl.engine import Engine

    status.draw(f"loading {names['target']} with draft {names['draft']} on {names['device']}")
    return Engine(names["target"], names["draft"], names["device"], **options)


def _decode(pieces: "Generator[Piece, None, None]", answers: Answers, status: StatusLine, max_new_tokens: int) -> float:
    """Decodes all prompts; returns the seconds that took."""
    start = time.perf_counter()
    # The engine holds Ctrl-C back until a step has ended.
    with closing(pieces):
        try:
            for piece in pieces:
                answers.take(piece)
                status.draw(bar(answers.tokens, answers.tokens_at_most(max_new_tokens), time.perf_counter() - start))
        except KeyboardInterrupt:
            answers.end_line()
            raise
    return time.perf_counter() - start


def _summary(completions: "Sequence[Completion]", seconds: float) -> str:
    tokens = sum(len(one.token_ids) for one in completions)
    verifies = sum(one.num_verify for one in completions)
    emitted = sum(one.accept_len * one.num_verify for one in completions)
    mean = f", {emitted / verifies:.2f} tokens a verify" if verifies else ""
    return f"{tokens} tokens in {seconds:.2f} s, {tokens / seconds:.1f} tokens/s{mean}"


def _object(
    names: dict[str, str], prompts: Sequence[str], completions: "Sequence[Completion]", seconds: float
) -> dict[str, Any]:
    """What --json prints: flat for one prompt, with a list for several."""
    rows = [_row(one) for one in completions]
    if len(rows) == 1:
        return {**names, "seconds": seconds, **rows[0]}
    listed = [{"prompt": prompt, **row} for prompt, row in zip(prompts, rows, strict=True)]
    return {**names, "seconds": seconds, "prompts": listed}


def _row(one: "Completion") -> dict[str, Any]:
    return {
        "tokens": one.token_ids,
        "text": one.text,
        "accept_len": one.accept_len,
        "num_verify": one.num_verify,
        "finish_reason": one.finish_reason,
    }
