"""``vsr classify`` and ``vsr nli``: texts and pairs with the label a model gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, cast

import typer

from ..wire import to_json
from .activity import watching
from .answering import Answer, ask_in_parts, truncation_text
from .inputs import gather_pairs, gather_texts
from .options import (
    ConfigOption,
    FileOption,
    JsonOption,
    LayerOption,
    LogitsOption,
    ModelOption,
    TextsArgument,
    TimeoutOption,
    TruncateOption,
)
from .output import Page, bar, one_line, print_json
from .ranking import shares
from .session import open_runtime

if TYPE_CHECKING:
    from ..contract import ClassificationResponse, ClassificationResult, Truncation

__all__ = ["classify", "nli"]

T = TypeVar("T")

_LISTED: Final = 10
"""How many labels of a distribution people are shown."""

_PASSED: Final[Mapping[bool | None, str]] = {None: "-", True: "yes", False: "no"}


def classify(
    texts: TextsArgument = None,
    *,
    model: ModelOption = "default",
    layer: LayerOption = None,
    logits: LogitsOption = False,
    truncate: TruncateOption = "error",
    file: FileOption = None,
    timeout: TimeoutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give each text one of a model's labels; --json gives every label's probability."""
    asked = gather_texts(texts, file, what="TEXT")
    with watching(f"loading {model}") as activity, open_runtime(config, activity=activity) as runtime:
        answer = ask_in_parts(
            lambda part, seconds: runtime.classify(
                part,
                model=model,
                layer=layer,
                logits=logits,
                truncate=cast("Truncation", truncate),
                timeout=seconds,
            ),
            asked,
            runtime=runtime,
            timeout=timeout,
            activity=activity,
        )
    if as_json:
        _print("classify", answer, [{"text": text} for text in asked])
    else:
        _show(answer, {"text": [one_line(text, 48) for text in asked]}, noun="text")


def nli(
    premise: Annotated[str | None, typer.Argument(metavar="PREMISE", help="What is taken to be so.")] = None,
    hypotheses: Annotated[
        list[str] | None, typer.Argument(metavar="HYPOTHESIS", help="What may follow from it.")
    ] = None,
    *,
    model: ModelOption = "default",
    layer: LayerOption = None,
    logits: LogitsOption = False,
    truncate: TruncateOption = "error",
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="Read more pairs, one a line with a tab between; '-' is stdin."
        ),
    ] = None,
    timeout: TimeoutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether hypotheses follow from a premise, or what else a model says of pairs."""
    asked = gather_pairs(premise, hypotheses, file)
    with watching(f"loading {model}") as activity, open_runtime(config, activity=activity) as runtime:
        answer = ask_in_parts(
            lambda part, seconds: runtime.nli(
                part,
                model=model,
                layer=layer,
                logits=logits,
                truncate=cast("Truncation", truncate),
                timeout=seconds,
            ),
            asked,
            runtime=runtime,
            timeout=timeout,
            activity=activity,
        )
    if as_json:
        _print("nli", answer, [{"premise": first, "hypothesis": second} for first, second in asked])
        return
    columns = {
        "premise": [one_line(first, 32) for first, _ in asked],
        "hypothesis": [one_line(second, 48) for _, second in asked],
    }
    _show(answer, columns, noun="pair")


def _print(command: str, answer: Answer[T, ClassificationResponse], inputs: Sequence[Mapping[str, str]]) -> None:
    results: list[Mapping[str, Any]] = [
        {**texts, **to_json(result)} for texts, result in zip(inputs, _results(answer), strict=True)
    ]
    print_json(command, {"results": results} | answer.facts())


def _show(answer: Answer[T, ClassificationResponse], inputs: Mapping[str, Sequence[str]], *, noun: str) -> None:
    """A line per input, and the whole distribution where there is one input alone."""
    page, results = Page(), _results(answer)
    filled = _shares(results)
    with_logits = any(result.logits is not None for result in results)
    page.table(
        ["#", "label", "score", "", "passed", "truncated", *(["logits"] if with_logits else []), *inputs],
        [
            (
                str(index),
                one_line(result.label),
                f"{result.score:.4f}",
                bar(filled[index], plain=page.plain),
                _PASSED[result.passed],
                truncation_text(report),
                *([_logits(result)] if with_logits else []),
                *(column[index] for column in inputs.values()),
            )
            for index, (result, report) in enumerate(zip(results, answer.inputs(), strict=True))
        ],
        right=("#", "score"),
    )
    if len(results) == 1:
        _show_distribution(page, results[0])
    page.line(answer.closing(noun), style="dim")


def _show_distribution(page: Page, result: ClassificationResult) -> None:
    page.line()
    if result.distribution is None:
        page.line(f"no distribution: {result.distribution_reason or 'the backend gives none'}", style="dim")
        return
    falling = sorted(result.distribution.items(), key=lambda item: -item[1])
    page.table(
        ["label", "probability", ""],
        [
            (one_line(label), f"{probability:.4f}", bar(probability, plain=page.plain))
            for label, probability in falling[:_LISTED]
        ],
        right=("probability",),
    )
    if len(falling) > _LISTED:
        page.line(f"and {len(falling) - _LISTED} more", style="dim")
    page.line()


def _results(answer: Answer[T, ClassificationResponse]) -> list[ClassificationResult]:
    return [result for response in answer.responses for result in response.results]


def _shares(results: Sequence[ClassificationResult]) -> list[float]:
    """How much of a bar each score fills; a score without a distribution may be any number."""
    bounded = all(0 <= result.score <= 1 for result in results)
    return shares([result.score for result in results], kind="probability" if bounded else "logit")


def _logits(result: ClassificationResult) -> str:
    numbers = result.logits or ()
    return ", ".join(f"{number:+.4f}" for number in numbers[:_LISTED]) + (", ..." if len(numbers) > _LISTED else "")
