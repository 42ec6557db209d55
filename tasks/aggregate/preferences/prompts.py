"""Verdicts of pairs as numbers, and their sums by prompt. What is estimated from them: win_rates.py, ratings.py."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from schemas.lineage import Checkpoint, Lineage
from schemas.statuses.cells import Total
from schemas.statuses.rows import PairOutcome

PAIR = ("model_a", "checkpoint_a", "model_b", "checkpoint_b")
COUNTS = ("n_win", "n_tie", "n_loss", "n_order_dependent", "n_unjudged")
VALUES = ("value", "agreed", "low", "high", "order_low", "order_high")
SHARES = ("first_wins", "order_dependent", "always_first", "always_second", "ties")
"""What of a pair's verdicts goes with the order of showing: the columns of `position_bias`."""
PARTS = ("won", "tied", "lost")
"""What of a pair a wins, ties (orders that disagree among it) and loses: together 1 where it is judged, else 0."""
_SUMS = (*VALUES, *COUNTS, *PARTS, "n_asked", "n_said", "n_unanswered")
OUTCOMES = (PairOutcome.WIN_A, PairOutcome.TIE, PairOutcome.WIN_B, PairOutcome.ORDER_DEPENDENT, PairOutcome.UNJUDGED)
"""The words of `outcome` in the order of COUNTS."""

MIDDLE = 0.5
"""What a tie is worth, and the win rate of two equals."""
_GRID = 2.0**40
"""Means of repeats are rounded to its parts, so that their sums over a prompt are the same in any order."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two checkpoints that were held against each other, the way round they are published: a against b."""

    a: Checkpoint
    b: Checkpoint
    is_to_baseline: bool
    is_to_predecessor: bool

    @property
    def named(self) -> dict[str, object]:
        """The columns that name it."""
        return dict(zip(PAIR, (*self.a, *self.b), strict=True)) | {
            "is_to_baseline": self.is_to_baseline, "is_to_predecessor": self.is_to_predecessor,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of pictures under one rubric and dimension: `meeting` and `category` are places in these lists, `prompt` a number.

    A row for each pair and judge, whose repeats are averaged; of people for each pair and rater.
    """

    frame: pl.DataFrame
    meetings: tuple[Meeting, ...]
    categories: tuple[str, ...]


def opens_category(verdicts: pl.DataFrame) -> pl.Expr:
    """Whether a verdict's category is one beside others: not that of two lines cut in the middle, about which nobody was asked.

    They say no category, and stand where pairs without one do that were asked.
    """
    return pl.col("category").is_not_null() | pl.col("is_planned") if "is_planned" in verdicts.columns else pl.lit(value=True)


def pairs_of(verdicts: pl.DataFrame, baseline: str | None, lineage: Lineage) -> Pairs:
    """The verdicts of one rubric and dimension, each pair of checkpoints the way round that it is published.

    The baseline is b; else the newer of one model is a; else the order of the names stays.
    """
    found = [((row[0], row[1]), (row[2], row[3])) for row in verdicts.select(PAIR).unique().sort(PAIR).iter_rows()]
    before = lineage.before(one for pair in found for one in pair)
    meetings = tuple(_meeting(pair, lineage, before, baseline) for pair in found)
    known = pl.DataFrame(
        [(*pair[0], *pair[1], n, meeting.a != pair[0]) for n, (pair, meeting) in enumerate(zip(found, meetings, strict=True))],
        schema=[*((name, pl.String) for name in PAIR), ("meeting", pl.Int64), ("is_turned", pl.Boolean)], orient="row",
    )  # fmt: skip
    named = verdicts.with_columns(pl.col("category").fill_null(Total.UNNAMED.value))
    categories = tuple(named["category"].unique().sort().to_list())
    turned = _turned(_valued(named.join(known, on=PAIR, how="left", maintain_order="left")))
    prompts = turned["prompt_id"].unique().sort()
    coded = turned.with_columns(category=_code("category", categories), prompt=_code("prompt_id", prompts))
    return Pairs(_averaged(coded), meetings, categories)


def _code(column: str, known: Iterable[str]) -> pl.Expr:
    return pl.col(column).cast(pl.Enum(known)).to_physical().cast(pl.Int64)


def _meeting(
    pair: tuple[Checkpoint, Checkpoint], lineage: Lineage, before: Mapping[Checkpoint, Checkpoint], baseline: str | None
) -> Meeting:
    a, b = pair
    is_older = a[0] == b[0] and lineage.key(a) < lineage.key(b) and "/".join(b) != baseline
    a, b = (b, a) if is_older or "/".join(a) == baseline else (a, b)
    return Meeting(a, b, "/".join(b) == baseline, before.get(a) == b)


def _valued(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Each verdict with SHARES, `value`, what it is worth to a (null: unjudged), what that can have been, and its counts.

    `low` and `high`: an unjudged pair is what its one readable order leaves open, any value where neither is readable.
    `order_low` and `order_high`: moreover all pairs whose orders disagree are losses, or wins. `agreed`: without these.
    """
    outcome, half = pl.col("outcome"), pl.lit(MIDDLE)
    read = pl.coalesce("first", "second")
    value = (
        pl.when(outcome == PairOutcome.WIN_A.value).then(1.0).when(outcome == PairOutcome.WIN_B.value).then(0.0)
        .when(outcome.is_in([PairOutcome.TIE.value, PairOutcome.ORDER_DEPENDENT.value])).then(MIDDLE)
    )  # fmt: skip
    is_split = outcome == PairOutcome.ORDER_DEPENDENT.value
    first, second = pl.col("first"), pl.col("second")
    low = pl.coalesce(value, pl.when(read == 1).then(MIDDLE).otherwise(pl.min_horizontal(read.fill_null(0.0), half)))
    high = pl.coalesce(value, pl.when(read == 0).then(MIDDLE).otherwise(pl.max_horizontal(read.fill_null(1.0), half)))
    return verdicts.with_columns(
        value=value, low=low, high=high,
        agreed=pl.when(~is_split).then(value),
        order_low=pl.when(is_split).then(0.0).otherwise(low), order_high=pl.when(is_split).then(1.0).otherwise(high),
        first_wins=(first + 1 - second) / 2, order_dependent=(first != second).cast(pl.Float64),
        always_first=((first == 1) & (second == 0)).cast(pl.Float64),
        always_second=((first == 0) & (second == 1)).cast(pl.Float64),
        n_unanswered=pl.col("is_unanswered").cast(pl.Int64) if "is_unanswered" in verdicts.columns else 0,
        ties=((first == MIDDLE).cast(pl.Float64) + (second == MIDDLE).cast(pl.Float64)) / 2,
        **{name: (outcome == word.value).cast(pl.Int64) for name, word in zip(COUNTS, OUTCOMES, strict=True)},
    )  # fmt: skip


def _turned(pairs: pl.DataFrame) -> pl.DataFrame:
    """Every value and count of a pair that is published the other way round exchanged."""
    ends = ("low", "high"), ("order_low", "order_high")
    exchanged = {one: other for two in ends for one, other in (two, two[::-1])}
    back = {name: 1 - pl.col(exchanged.get(name, name)) for name in VALUES}
    back |= {"n_win": pl.col("n_loss"), "n_loss": pl.col("n_win")}
    return pairs.with_columns(**{name: pl.when("is_turned").then(other).otherwise(pl.col(name)) for name, other in back.items()})


def _averaged(verdicts: pl.DataFrame) -> pl.DataFrame:
    """One row for each pair of pictures, judge and rater: the mean of its repeats, over those that have a verdict (`n_said`).

    Repeats without one count in the bounds, which are averaged over all `n_asked`. A pair is won or lost by the side of its
    mean; in the middle it is order dependent where a repeat's orders disagree, else a tie.
    """
    rater = [name for name in ("rater",) if name in verdicts.columns]
    has_said = pl.col("value").is_not_null()
    means = [pl.col(*VALUES).mean(), pl.col(*SHARES).filter(has_said).mean()]
    sums = verdicts.group_by("judge_model", "meeting", "sample_a", "sample_b", *rater).agg(
        pl.col("category", "prompt").first(), *means, *(pl.col(name).sum() for name in (*COUNTS, "n_unanswered")),
        n_asked=pl.len().cast(pl.Int64), n_said=has_said.sum().cast(pl.Int64), points=2 * pl.col("value").sum(),
    )  # fmt: skip
    n_said, points, is_split = pl.col("n_said"), pl.col("points"), pl.col("n_order_dependent") > 0
    is_even = (points == n_said) & (n_said > 0)
    sides = (points > n_said, is_even & ~is_split, points < n_said, is_even & is_split, n_said == 0)
    of_pair = (pl.col("n_win"), pl.col("n_tie") + pl.col("n_order_dependent"), pl.col("n_loss"))
    parts = {name: part / pl.max_horizontal(n_said, 1) for name, part in zip(PARTS, of_pair, strict=True)}
    found = sums.with_columns(**parts, **{name: side.cast(pl.Int64) for name, side in zip(COUNTS, sides, strict=True)})
    return found.with_columns((pl.col(*VALUES, *SHARES, *PARTS) * _GRID).round() / _GRID).drop("points")


def by_prompt(pairs: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Sums over the pairs of pictures of each prompt within `by`, sorted by `by` and prompt; `n` of them are judged."""
    return (
        pairs.group_by(*by, "prompt")
        .agg(
            pl.len().alias("n_pairs"), pl.col("value").count().alias("n"), pl.col("agreed").count().alias("n_agreed"),
            *(pl.col(name).sum() for name in _SUMS),
        )
        .sort(*by, "prompt")
    )  # fmt: skip


def over_categories(parts: pl.DataFrame) -> pl.DataFrame:
    """The same sums by meeting and prompt, from those by meeting, category and prompt."""
    names = ("n_pairs", "n", "n_agreed", *_SUMS)
    return parts.group_by("meeting", "prompt").agg(pl.col(name).sum() for name in names).sort("meeting", "prompt")


def slices(frame: pl.DataFrame, *by: str) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """The groups of a frame sorted by the numbers `by`: their key, the first row and the one after the last."""
    keys = frame.select(*by).to_numpy()
    starts = [0, *(np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1).tolist()] if len(keys) else []
    for start, end in zip(starts, [*starts[1:], len(keys)][: len(starts)], strict=True):
        yield tuple(int(number) for number in keys[start]), start, end
