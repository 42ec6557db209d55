"""How a backfill ended: what became of its checkpoints, what it published, and the error where something is left to ask."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from flows.observability.progress import RunSummary
from flows.observability.terminal import format_cost
from flows.partitions.asking import Backfilled
from flows.partitions.plan import BackfillPlan
from flows.partitions.table import OF_CHECKPOINT, read_partitions
from flows.run.bought import RequestsMet
from flows.run.context import RunContext
from schemas.errors import BudgetReachedError, InputError, ProviderError
from tasks.judge.outcome import Outcome

N_LISTED, N_NAMED = 20, 10


@dataclass(frozen=True, slots=True)
class BackfillSummary:
    """What a backfill did. `run` is the publication; None where one with all of it stood there, or nothing is whole.

    `asked`: of all checkpoints together, and of the pairs of those published. `left`: of left_of(). `n_checkpoints`: all that it
    was about. `to_mend`: checkpoints that were not asked, as asking does not help them.
    """

    backfilled: tuple[Backfilled, ...]
    run: RunSummary | None
    asked: Outcome
    left: Mapping[str, int] = field(default_factory=dict)
    max_usd: float | None = None
    n_pairs_left: int = 0
    n_checkpoints: int = 0
    to_mend: Collection[str] = ()

    @property
    def failures(self) -> list[str]:
        """A line for each checkpoint that is not done, but for money."""
        return [f"{one.name}: {one.failure}" for one in self.backfilled if one.failure]

    @property
    def not_done(self) -> str:
        """How many checkpoints of how many are not done, and how many of them were not begun."""
        begun = {one.name for one in self.backfilled}
        names = {*self.left, *(one.name for one in self.backfilled if one.failure)}
        n_others = len(names - begun)
        others = f" ({n_others:,} {'was' if n_others == 1 else 'were'} not begun)" if n_others else ""
        return f"{len(names):,} of {self.n_checkpoints:,} checkpoints are not done{others}"

    @property
    def is_spent(self) -> bool:
        """Whether `max_usd` ended it."""
        return self.asked.is_spent


def left_of(run: RunContext, planned: BackfillPlan) -> dict[str, int]:
    """Requests without a final reply, by checkpoint of the plan that is not done, as its rows stand now.

    What several share is counted under the first.
    """
    mine = read_partitions(run.stage).join(planned.partitions, on="partition_id", how="semi")
    sums = mine.group_by(OF_CHECKPOINT).agg(pl.col("n_left").sum())
    left = {f"{model}/{checkpoint}": n for model, checkpoint, n in sums.iter_rows() if n}
    not_done = [one for one in planned.checkpoints if one.name in left]
    if not planned.has_shared:
        return {one.name: left[one.name] for one in not_done}
    met = RequestsMet()
    return {one.name: met.n_left_first(run.having(plan_id=one.plan.plan_id), one.plan.parts) for one in not_done}


def check_failures(summary: BackfillSummary) -> None:
    """Raise where a checkpoint is not done, BudgetReachedError or ProviderError: the same command goes on from there.

    InputError where it would not, since all that is not done is to be mended first and nothing else was asked.
    """
    listed = "\n  ".join(summary.failures[:N_LISTED])
    if summary.is_spent:
        raise BudgetReachedError(_of_money(summary) + (f" Not done for other reasons:\n  {listed}" if listed else ""))
    if not listed:
        return
    if all(one.name in summary.to_mend for one in summary.backfilled):
        raise InputError(
            f"{summary.not_done}, and nothing else is left to ask; "
            f"{_published(summary)}. Fix each of them, then run the same command again:\n  {listed}"
        )
    to_mend = f" (fix first: {named(list(summary.to_mend))})" if summary.to_mend else ""
    raise ProviderError(
        f"{summary.not_done}; {_published(summary)}. "
        "Replies already paid for are stored; once the causes are fixed or have passed, run the same command again to "
        f"continue{to_mend}:\n  {listed}"
    )


def _of_money(summary: BackfillSummary) -> str:
    asked, names = summary.asked, list(summary.left)
    if asked.is_out_of_reach:
        what = f"does not cover a single request: one may cost up to ${asked.refused_usd:.4g}, and nothing was sent"
    else:
        what = f"is reached: {format_cost(asked.cost_usd or 0.0, is_at_least=asked.is_at_least)} was spent"
    left = [f"{sum(summary.left.values()):,} requests of {len(names)} checkpoints ({named(names)})"] if names else []
    left += [f"{summary.n_pairs_left:,} requests about pairs"] if summary.n_pairs_left else []
    remaining = " and ".join(left) or "nothing"
    return (
        f"max_usd = {summary.max_usd or 0.0:.12g} {what}. Remaining: {remaining}; {_published(summary)}. Run the same "
        "command again to continue; its budget starts anew: set --max-usd, or limits.max_usd, to what is left to spend"
    )


def named(names: Sequence[str]) -> str:
    """The first of these names."""
    return f"{', '.join(names[:N_NAMED])}{', …' if len(names) > N_NAMED else ''}"


def _published(summary: BackfillSummary) -> str:
    if summary.run is None:
        return "no further checkpoint was completed, and no new table was made"
    made = summary.run.published
    return f"all complete checkpoints are published ({made.publication_id[:16]}{', current' if made.is_current else ''})"
