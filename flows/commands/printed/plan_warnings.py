"""What a plan warns of: money that does not suffice, replies that buy nothing. Of cells without numbers: plan_cells.py."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows.commands.printed.plan_cells import asked_warnings
from flows.observability.terminal import format_usd
from tasks.judge.budget.budget import why_not_kept
from tasks.judge.budget.cost import stated_output_bound
from tasks.judge.budget.forecast import total_usd

if TYPE_CHECKING:
    from flows.run.preview import PlannedRubric, Preview

_FITS = 0.9
"""Replies whose mean is below this share of the limit are whole, whatever the rubric expects."""


def plan_warnings(preview: "Preview") -> list[str]:
    """What could surprise: a budget that is too small, replies that nobody has counted yet or that buy nothing, empty cells."""
    asked = [row for row in preview.rubrics if row.n_to_ask]
    return [*_of_budget(preview, asked), *_of_replies(asked), *asked_warnings(preview)]


def of_budget(preview: "Preview") -> str:
    """max_usd as the file has it, and, where earlier starts of a night took some of it, what is left."""
    left = f", of which {format_usd(preview.left_usd or 0.0)} is left," if preview.taken_usd else ""
    return f"max_usd = {preview.limits.max_usd:.12g}{left}"


def percentage(n: float, of: float) -> str:
    """A share for people, which is neither none nor all where it is only nearly so."""
    return f"{min(max(n / of, 0.01), 0.99):.0%}" if 0 < n < of else "100%" if n else "0%"


def _of_budget(preview: "Preview", asked: "Sequence[PlannedRubric]") -> Iterator[str]:
    max_usd, expected = preview.left_usd, preview.expected_usd
    why_not = why_not_kept([row.judge for row in preview.rubrics], preview.limits.max_usd)
    if why_not is not None:
        yield why_not
    if why_not is not None or max_usd is None or expected is None:
        return
    worst = preview.worst_usd
    needed = total_usd(row.worst_usd if row.is_by_batch else row.expected_usd for row in asked)
    if max_usd < expected:
        yield (
            f"limits.{of_budget(preview)} is below the {format_usd(expected)} expected: "
            f"it pays for about {percentage(max_usd, expected)} of the requests, and the run stops there"
        )
    elif any(row.is_by_batch for row in asked) and needed is not None and max_usd < needed:
        yield (
            f"limits.{of_budget(preview)} covers the {format_usd(expected)} expected, but not the {format_usd(needed)} that "
            "batches reserve until replies arrive: requests are sent in several rounds, each of which may take a day"
        )
    elif worst is not None and max_usd < worst:
        yield (
            f"limits.{of_budget(preview)} is above the {format_usd(expected)} expected and below the {format_usd(worst)} "
            "at most: if replies are long, the run stops before the end"
        )


def _of_replies(asked: "Sequence[PlannedRubric]") -> Iterator[str]:
    thinking = {row.judge.id for row in asked if row.forecast.price and row.forecast.price.is_reasoning}
    for model in sorted({row.judge.id for row in asked if not row.forecast.observed.n_replies} & thinking):
        yield (
            f"{model} thinks before it answers, which is billed as output; until replies are stored, the estimate here counts "
            "only the answer"
        )
    for row in asked:
        longest, usual = stated_output_bound(row.judge), row.rubric.n_output_tokens_expected
        seen = row.forecast.observed
        fits = seen.n_replies and longest and seen.n_output_tokens(usual) < _FITS * longest
        if longest is not None and longest < usual and not fits:
            yield (
                f"the parameters of {row.judge.id} end a reply at {longest} tokens, and a usual one under {row.rubric_id} has "
                f"{usual} (output_tokens): it would be cut off and give no score"
            )
    for judge in {row.judge.id: row.judge for row in asked}.values():
        if judge.repeats > 1 and _temperature(judge.parameters) == 0:
            yield (
                f"{judge.id} is asked {judge.repeats} times at temperature 0: its answers may be identical, and then repeats "
                "add nothing (docs/nights.md)"
            )


def _temperature(parameters: Mapping[str, Any]) -> object:
    """As each provider is told it."""
    inner = parameters.get("generationConfig")
    return parameters.get("temperature", inner.get("temperature") if isinstance(inner, Mapping) else None)
