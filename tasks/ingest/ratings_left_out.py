"""Why ratings, or votes, do not count: repeats, and what is said of those left out. Which sample is meant: rating_matching.py."""

from collections.abc import Mapping, Sequence

import polars as pl

from schemas.errors import SourceError
from schemas.statuses.people import UNNAMED, RatingStatus, unnamed


def settle_repeats(frame: pl.DataFrame, said: pl.DataFrame, one: Sequence[str]) -> pl.DataFrame:
    """The frame with a status, and a detail that names the other row, where a row repeats one or contradicts one.

    Of the same value given again the first row counts; where two are given of one thing, none does. `said` has the rows that
    count so far, in order: `row`, `key`, `value`, `text` (the value as people read it), and the columns `one` that say of what,
    `rater` among them. Of UNNAMED each row is another rater's.
    """
    number = pl.format(unnamed("{}"), pl.int_range(1, pl.len() + 1).over(one))
    said = said.with_columns(rater=pl.when(pl.col("rater") == UNNAMED).then(number).otherwise("rater"))
    first = (pl.col(name).first().over(one).alias(f"first_{name}") for name in ("row", "key", "value", "text"))
    rows = said.with_columns(first)
    is_first_value = pl.col("value") == pl.col("first_value")
    others = rows.filter(~is_first_value).group_by(one).agg(other_key=pl.first("key"), other_text=pl.first("text"))
    rows = rows.join(others, on=one, how="left", maintain_order="left")
    contradiction = pl.when(is_first_value).then(pl.format("{} says {}", "other_key", "other_text"))
    settled = rows.select(
        "row",
        settled_rater="rater",
        settled=pl.when(pl.col("other_key").is_not_null())
        .then(pl.lit(RatingStatus.CONFLICTING.value))
        .when(pl.col("row") != pl.col("first_row"))
        .then(pl.lit(RatingStatus.DUPLICATE.value)),
        told=pl.when(pl.col("other_key").is_null())
        .then(pl.format("as {}", "first_key"))
        .otherwise(contradiction.otherwise(pl.format("{} says {}", "first_key", "first_text"))),
    )
    joined = frame.join(settled, on="row", how="left", maintain_order="left")
    told = pl.when(pl.col("settled").is_not_null()).then("told").otherwise("detail")
    return joined.with_columns(status=pl.coalesce("settled", "status"), detail=told, rater=pl.coalesce("settled_rater", "rater"))


def check_named(found: pl.DataFrame, noun: str, section: str) -> None:
    """Raises SourceError where a file that names no rater contradicts itself: what is left would be where people agree."""
    key = pl.col(found.columns[1])
    by_file = found.filter(~pl.col("is_named")).with_columns(key=key)
    split = by_file.filter(status=RatingStatus.CONFLICTING.value)
    if split.is_empty():
        return
    first = split.row(0, named=True)
    stem = first["rater"]  # the file's name stands for one
    n_split, n = (rows.filter(rater=stem).height for rows in (split, by_file))
    file = stem + first["key"].removeprefix(stem).partition("#")[0]
    raise SourceError(
        f"{file} names no rater, so all of it counts as one rater's, but {n_split:,} of its {n:,} {noun} contradict "
        f"another on the same sample (the first: {first['key']}: {first['detail']}). Map the column that names the rater to "
        f"rater under {section} columns; if the raters are unknown, write unnamed = true under {section} (docs/agreement.md); if "
        "it was one person, keep one of each"
    )


def check_some_count(found: pl.DataFrame, noun: str) -> None:
    """Raises SourceError where no rating, or vote, of the table counts: nothing could be held against them."""
    if (found["status"] == RatingStatus.OK.value).any():
        return
    n_by_status = found["status"].value_counts(sort=True).rows()
    first = "".join(f" (the first: {one})" for one in examples(found)[:1])
    told = ", ".join(f"{n:,} {status}" for status, n in n_by_status)
    raise SourceError(
        f"none of the {found.height:,} {noun} can be used: {told}{first}; {_REMEDIES.get(n_by_status[0][0], 'fix them')}"
    )


_DECLARE = (
    "if people rated on another scale, declare it under [ratings]: scale = { min = 0, max = 100 }, and step if it has "
    "one (docs/agreement.md)"
)
_REMEDIES: Mapping[str, str] = {
    RatingStatus.OUT_OF_RANGE: _DECLARE,
    RatingStatus.OFF_STEP: _DECLARE,
    RatingStatus.BAD_VALUE: "write each as a number with a decimal point, 3.5 and not 3,5, and replace words by numbers",
    RatingStatus.MISSING: "fill them in",
    RatingStatus.RESERVED_NAME: "rename these raters",
    RatingStatus.CONFLICTING: "map the column that names the rater to rater, or keep one per rater and sample",
    RatingStatus.UNKNOWN_WORD: "state under [ratings.votes] words what each word is worth",
}


def examples(given: pl.DataFrame) -> Sequence[str]:
    """The first rating, or vote, that each status leaves out, with its reason, for people; the most frequent status first."""
    key = given.columns[0]
    left_out = given.filter(~pl.col("status").is_in([RatingStatus.OK.value, RatingStatus.MISSING.value]))
    firsts = left_out.group_by("status", maintain_order=True).agg(pl.len().alias("n"), pl.first(key), pl.first("detail"))
    ordered = firsts.sort("n", descending=True, maintain_order=True)
    return [": ".join(filter(None, (row[key], row["status"], row["detail"]))) for row in ordered.iter_rows(named=True)]
