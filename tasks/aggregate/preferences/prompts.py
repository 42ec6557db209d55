"""Verdicts of pairs as numbers, and their sums by prompt. What is estimated from them: win_rates.py, ratings.py."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from schemas.metrics import natural_key
from schemas.statuses.cells import Total
from schemas.statuses.rows import PairOutcome

Checkpoint = tuple[str, str]
"""Model and checkpoint."""

PAIR = ("model_a", "checkpoint_a", "model_b", "checkpoint_b")
COUNTS = ("n_win", "n_tie", "n_loss", "n_order_dependent", "n_unjudged")
VALUES = ("value", "agreed", "low", "high", "order_low", "order_high")
OUTCOMES = (PairOutcome.WIN_A, PairOutcome.TIE, PairOutcome.WIN_B, PairOutcome.ORDER_DEPENDENT, PairOutcome.UNJUDGED)
"""The words of `outcome` in the order of COUNTS."""

MIDDLE = 0.5
"""What a tie is worth, and the win rate of two equals."""


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
    """Pairs of pictures under one rubric and dimension: `meeting` and `category` are places in these lists, `prompt` a number."""

    frame: pl.DataFrame
    meetings: tuple[Meeting, ...]
    categories: tuple[str, ...]


def pairs_of(verdicts: pl.DataFrame, baseline: str | None) -> Pairs:
    """The verdicts of one rubric and dimension, each pair of checkpoints the way round that it is published.

    The baseline is b; else the newer of one model is a (names in natural order); else the order of the names stays.
    """
    found = [((row[0], row[1]), (row[2], row[3])) for row in verdicts.select(PAIR).unique().sort(PAIR).iter_rows()]
    ordered = sorted({one for pair in found for one in pair}, key=lambda one: (one[0], natural_key(one[1]), one[1]))
    place = {one: n for n, one in enumerate(ordered)}
    meetings = tuple(_meeting(pair, place, baseline) for pair in found)
    known = pl.DataFrame(
        [(*pair[0], *pair[1], n, meeting.a != pair[0]) for n, (pair, meeting) in enumerate(zip(found, meetings, strict=True))],
        schema=[*((name, pl.String) for name in PAIR), ("meeting", pl.Int64), ("is_turned", pl.Boolean)], orient="row",
    )  # fmt: skip
    named = verdicts.with_columns(pl.col("category").fill_null(Total.UNNAMED.value))
    categories = tuple(named["category"].unique().sort().to_list())
    frame = _turned(_valued(named.join(known, on=PAIR, how="left", maintain_order="left")))
    prompts = frame["prompt_id"].unique().sort()
    return Pairs(
        frame.select(
            "judge_model", "meeting", "first", "second", *VALUES, *COUNTS, category=_code("category", categories),
            prompt=_code("prompt_id", prompts),
        ), meetings, categories,
    )  # fmt: skip


def _code(column: str, known: Iterable[str]) -> pl.Expr:
    return pl.col(column).cast(pl.Enum(known)).to_physical().cast(pl.Int64)


def _meeting(pair: tuple[Checkpoint, Checkpoint], place: dict[Checkpoint, int], baseline: str | None) -> Meeting:
    a, b = pair
    is_turned = "/".join(a) == baseline or (a[0] == b[0] and place[a] < place[b] and "/".join(b) != baseline)
    a, b = (b, a) if is_turned else (a, b)
    return Meeting(a, b, "/".join(b) == baseline, a[0] == b[0] and place[a] == place[b] + 1)


def _valued(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Each pair of pictures with `value`, what it is worth to a (null: unjudged), what that can have been, and its counts.

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
    low = pl.coalesce(value, pl.when(read == 1).then(MIDDLE).otherwise(pl.min_horizontal(read.fill_null(0.0), half)))
    high = pl.coalesce(value, pl.when(read == 0).then(MIDDLE).otherwise(pl.max_horizontal(read.fill_null(1.0), half)))
    return verdicts.with_columns(
        value=value, low=low, high=high,
        agreed=pl.when(~is_split).then(value),
        order_low=pl.when(is_split).then(0.0).otherwise(low), order_high=pl.when(is_split).then(1.0).otherwise(high),
        **{name: (outcome == word.value).cast(pl.Int64) for name, word in zip(COUNTS, OUTCOMES, strict=True)},
    )  # fmt: skip


def _turned(pairs: pl.DataFrame) -> pl.DataFrame:
    """Every value and count of a pair that is published the other way round exchanged."""
    ends = ("low", "high"), ("order_low", "order_high")
    exchanged = {one: other for two in ends for one, other in (two, two[::-1])}
    back = {name: 1 - pl.col(exchanged.get(name, name)) for name in VALUES}
    back |= {"n_win": pl.col("n_loss"), "n_loss": pl.col("n_win")}
    return pairs.with_columns(**{name: pl.when("is_turned").then(other).otherwise(pl.col(name)) for name, other in back.items()})


def by_prompt(pairs: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Sums over the pairs of pictures of each prompt within `by`, sorted by `by` and prompt; `n` of them are judged."""
    return (
        pairs.group_by(*by, "prompt")
        .agg(pl.len().alias("n_pairs"), pl.col("value").count().alias("n"), *(pl.col(name).sum() for name in (*VALUES, *COUNTS)))
        .sort(*by, "prompt")
    )


def over_categories(parts: pl.DataFrame) -> pl.DataFrame:
    """The same sums by meeting and prompt, from those by meeting, category and prompt."""
    names = ("n_pairs", "n", *VALUES, *COUNTS)
    return parts.group_by("meeting", "prompt").agg(pl.col(name).sum() for name in names).sort("meeting", "prompt")


def slices(frame: pl.DataFrame, *by: str) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """The groups of a frame sorted by the numbers `by`: their key, the first row and the one after the last."""
    keys = frame.select(*by).to_numpy()
    starts = [0, *(np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1).tolist()] if len(keys) else []
    for start, end in zip(starts, [*starts[1:], len(keys)][: len(starts)], strict=True):
        yield tuple(int(number) for number in keys[start]), start, end
