"""Verdicts of pairs as numbers, and their sums by prompt. What is estimated from them: win_rates.py, ratings.py."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from schemas.metrics import natural_key
from schemas.statuses import Total

Checkpoint = tuple[str, str]
"""Model and checkpoint."""

PAIR = ("model_a", "checkpoint_a", "model_b", "checkpoint_b")
COUNTS = ("n_win", "n_tie", "n_loss", "n_order_dependent", "n_unjudged")
OUTCOMES = ("win_a", "tie", "win_b", "order_dependent", "unjudged")
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


def valued(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Each pair of pictures with `value`, what it is worth to a (null: unjudged), what that can have been, and its counts.

    `low` and `high`: an unjudged pair is what its one readable order leaves open, any value where neither is readable.
    `order_low` and `order_high`: moreover all pairs whose orders disagree are losses, or wins. `agreed`: without these.
    """
    outcome, half = pl.col("outcome"), pl.lit(MIDDLE)
    read = pl.coalesce("first", "second")
    value = (
        pl.when(outcome == "win_a").then(1.0).when(outcome == "win_b").then(0.0)
        .when(outcome.is_in(["tie", "order_dependent"])).then(MIDDLE)
    )  # fmt: skip
    is_split = outcome == "order_dependent"
    low = pl.coalesce(value, pl.when(read == 1).then(MIDDLE).otherwise(pl.min_horizontal(read.fill_null(0.0), half)))
    high = pl.coalesce(value, pl.when(read == 0).then(MIDDLE).otherwise(pl.max_horizontal(read.fill_null(1.0), half)))
    return verdicts.with_columns(
        category=pl.col("category").fill_null(Total.UNNAMED.value), value=value, low=low, high=high,
        agreed=pl.when(~is_split).then(value),
        order_low=pl.when(is_split).then(0.0).otherwise(low), order_high=pl.when(is_split).then(1.0).otherwise(high),
        **{name: (outcome == word).cast(pl.Int64) for name, word in zip(COUNTS, OUTCOMES, strict=True)},
    )  # fmt: skip


def meetings(verdicts: pl.DataFrame, baseline: str | None) -> dict[tuple[str, ...], Meeting]:
    """How each pair of the verdicts of one rubric is published, by the columns PAIR as they will stand.

    The baseline is b; else the newer of one model is a (names in natural order); else the order of the names stays.
    """
    found = [((row[0], row[1]), (row[2], row[3])) for row in verdicts.select(PAIR).unique().sort(PAIR).iter_rows()]
    ordered = sorted({one for pair in found for one in pair}, key=lambda one: (one[0], natural_key(one[1]), one[1]))
    place = {one: n for n, one in enumerate(ordered)}
    held = [_meeting(pair, place, baseline) for pair in found]
    return {(*one.a, *one.b): one for one in held}


def _meeting(pair: tuple[Checkpoint, Checkpoint], place: dict[Checkpoint, int], baseline: str | None) -> Meeting:
    a, b = pair
    is_turned = "/".join(a) == baseline or (a[0] == b[0] and place[a] < place[b] and "/".join(b) != baseline)
    a, b = (b, a) if is_turned else (a, b)
    return Meeting(a, b, "/".join(b) == baseline, a[0] == b[0] and place[a] == place[b] + 1)


def turned(pairs: pl.DataFrame, known: Iterable[Meeting]) -> pl.DataFrame:
    """The valued pairs the way round that their meetings are: a and b, and every value, exchanged where it is the other one."""
    swapped = [(*one.b, *one.a, True) for one in known]
    turns = pl.DataFrame(swapped, schema=[*((name, pl.String) for name in PAIR), ("is_turned", pl.Boolean)], orient="row")
    is_turned = pl.col("is_turned").fill_null(value=False)
    ends = ("low", "high"), ("order_low", "order_high"), ("n_win", "n_loss"), (PAIR[0], PAIR[2]), (PAIR[1], PAIR[3])
    exchanged = {one: other for two in ends for one, other in (two, two[::-1])}
    back = {name: 1 - pl.col(exchanged.get(name, name)) for name in ("value", "agreed", "low", "high", "order_low", "order_high")}
    other = {name: pl.col(exchanged[name]) for name in ("n_win", "n_loss", *PAIR)}
    return pairs.join(turns, on=PAIR, how="left", maintain_order="left").with_columns(
        **{name: pl.when(is_turned).then(exchange).otherwise(pl.col(name)) for name, exchange in (back | other).items()}
    ).drop("is_turned")  # fmt: skip


def by_prompt(pairs: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Sums over the pairs of pictures of each prompt within `by`, sorted by `by` and prompt; n is the judged ones."""
    sums = ("value", "agreed", "low", "high", "order_low", "order_high", *COUNTS)
    return (
        pairs.group_by(*by, "prompt_id")
        .agg(pl.len().alias("n_pairs"), pl.col("value").count().alias("n"), *(pl.col(name).sum() for name in sums))
        .sort(*by, "prompt_id")
    )


def slices(frame: pl.DataFrame, *by: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """The groups of a frame sorted by `by`: their key, the first row and the one after the last."""
    starts = frame.select(*by).with_row_index("row").unique(by, keep="first", maintain_order=True)
    ends = [*starts["row"].to_list()[1:], frame.height]
    for row, end in zip(starts.iter_rows(), ends, strict=True):
        yield tuple(str(word) for word in row[1:]), row[0], end
