"""What a plan warns of: money that does not suffice, replies that cannot be whole, cells that will have no number."""

from typing import TYPE_CHECKING

from flows.commands.printed.asked import asked_warnings
from flows.observability.terminal import format_usd
from tasks.judge.budget.forecast import total_usd

if TYPE_CHECKING:
    from flows.run.preview import Preview


def plan_warnings(preview: "Preview") -> list[str]:
    """What could surprise: a budget that is too small, a price that is not known, thinking that nobody has counted yet."""
    sentences: list[str] = []
    asked = [row for row in preview.rubrics if row.n_to_ask]
    max_usd, expected = preview.limits.max_usd, preview.expected_usd
    worst = total_usd(row.forecast.worst_usd for row in asked)
    if max_usd is not None and expected is None:
        sentences.append("limits.max_usd cannot be kept without a price; a run would stop before anything is sent")
    elif max_usd is not None and expected is not None and max_usd < expected:
        sentences.append(
            f"limits.max_usd = {max_usd:g} is below the {format_usd(expected)} expected: "
            f"it pays for about {max_usd / expected:.0%} of the requests, and the run stops there"
        )
    elif max_usd is not None and worst is not None and max_usd < worst:
        sentences.append(
            f"limits.max_usd = {max_usd:g} is above the {format_usd(expected)} expected and below the {format_usd(worst)} "
            "at most: where replies are long, the run stops before its end"
        )
    thinking = {row.judge.id for row in asked if row.forecast.price and row.forecast.price.is_reasoning}
    unknown = {row.judge.id for row in asked if not row.forecast.observed.n_replies} & thinking
    sentences += [
        f"{model} thinks before it answers, and that is billed as output; what is expected here is the answer alone, "
        "until replies are stored"
        for model in sorted(unknown)
    ]
    return sentences + asked_warnings(preview)
