"""What is said of categories: in which a checkpoint fell behind its predecessor, which are blocked in a total, what each weighs.

The test of the first is in tasks/aggregate/comparisons.
"""

from collections.abc import Callable, Sequence

import polars as pl

from schemas.metrics import ADDRESS, TOTALS, means_for_prompts_like_these
from schemas.statuses.cells import CellReason, CellStatus, ComparisonKind, ComparisonReason, ComparisonVerdict, Total
from tasks.publish.standings.answers import N_NAMED, against_the_one_before, listed, newest_of
from tasks.publish.standings.placed_cells import with_comparisons
from tasks.publish.standings.wording import Row, counted, namer, percent, signed

_N_WORSE = 5
_DIFFERENCE = (
    "delta_predecessor", "delta_predecessor_low", "delta_predecessor_high", "p_predecessor", "verdict_predecessor",
    "reason_predecessor", "n_prompts_predecessor", "n_family", "adjustment",
)  # fmt: skip


def worse_categories(comparisons: pl.DataFrame) -> tuple[str, bool] | None:
    """The categories that got worse at the corrected level, and True; None where nothing fell.

    Without any the clearest fall by its uncorrected interval, as what it is, one of many that were looked at, and False.
    """
    looked_at = comparisons.filter(
        pl.col("comparison") == ComparisonKind.PREDECESSOR.value, pl.col("delta").is_not_null(), ~pl.col("category").is_in(TOTALS)
    )
    worse = looked_at.filter(
        pl.col("verdict") == ComparisonVerdict.LOWER.value, pl.col("family").str.starts_with("categories")
    ).sort("p_adjusted", "rubric_id", "judge_model", "category")
    name = namer(looked_at.select(model="model_a").unique().to_dicts())
    falls = looked_at.filter(pl.col("ci_high") < 0, ~pl.col("is_primary")).sort("p", "delta")
    if not worse.is_empty():
        named = [f"{_fall(row, name)} {signed(row['delta'])})" for row in worse.head(_N_WORSE).iter_rows(named=True)]
        more = f", and {worse.height - _N_WORSE} more" if worse.height > _N_WORSE else ""
        return f"worse than its predecessor in single categories, exploratory: {', '.join(named)}{more}", True
    if not falls.is_empty():
        row = falls.row(0, named=True)
        interval = f"{signed(row['delta'])} [{signed(row['ci_low'])}, {signed(row['ci_high'])}]"
        return (
            f"the clearest fall of {looked_at.height} comparisons of single categories, not corrected (a hint, not a finding): "
            f"{_fall(row, name)} {interval})"
        ), False
    return None


def _named(category: str) -> str:
    return "those without a category" if category == Total.UNNAMED else category


def _fall(row: Row, name: Callable[[Row], str]) -> str:
    fell = name({"model": row["model_a"], "checkpoint": row["checkpoint_a"]})
    return f"{_named(row['category'])} ({row['rubric_id']}, {row['judge_model']}, {row['dimension']}: {fell}"


def blocked_in_totals(cells: pl.DataFrame) -> dict[tuple[str, str], list[str]]:
    """By rubric and judge, in a sentence, the categories that are blocked on their own and stand in a headline mean."""
    means = means_for_prompts_like_these(cells)
    totals = means.filter(pl.col("is_headline"), pl.col("estimate").is_not_null(), category=Total.MACRO.value)
    blocked = means.filter(pl.col("status") == CellStatus.BLOCKED.value, ~pl.col("category").is_in(TOTALS))
    key = ["rubric_id", "judge_model", "model", "checkpoint"]
    counted_in = totals.select(*key, "dimension", n_means=pl.len().over(key))
    mine = blocked.join(counted_in, on=[*key, "dimension"]).sort(*key, "category", "dimension")
    name = namer(means.select("model").unique().to_dicts())
    found: dict[tuple[str, str], list[str]] = {}
    for (rubric_id, judge_model), some in mine.group_by("rubric_id", "judge_model", maintain_order=True):
        each = [rows.to_dicts() for _, rows in some.group_by(*key, "category", maintain_order=True)]
        shown = listed([f"{_named(rows[0]['category'])} of {name(rows[0])} ({_shares(rows)})" for rows in each])
        said = "In a mean stand categories that are blocked on their own, too few of whose judgements have a score"
        found[str(rubric_id), str(judge_model)] = [f"{said}: {shown}."]
    return found


def _shares(rows: Sequence[Row]) -> str:
    """The coverage of a blocked category, lowest and highest; with their dimensions where it is not the same in all of them."""
    by_share: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row["coverage"]):
        by_share.setdefault(percent(row["coverage"], beside=row["coverage_floor"]), []).append(row["dimension"])
    if len(by_share) == 1 and len(rows) == rows[0]["n_means"]:
        return next(iter(by_share))
    ends = [f"{share} in {listed(dimensions)}" for share, dimensions in by_share.items()]
    return " to ".join(ends if len(ends) == 1 else [ends[0], ends[-1]])


def over_all_images(rows: Sequence[Row], cells: pl.DataFrame, comparisons: pl.DataFrame | None) -> list[str]:
    """What the newest of each model brought by the means over all images, where categories are too small for their mean's.

    `rows` are one judge's headline standings in a rubric, `cells` and `comparisons` those of all.
    """
    too_few = {CellReason.TOO_FEW_PROMPTS, ComparisonReason.TOO_FEW_PAIRED_PROMPTS}
    means = [row for row in rows if row["category"] == Total.MACRO and row["n_categories"]]
    lacking = [row for row in means if not too_few.isdisjoint((row["standing_reason"], row["reason_predecessor"]))]
    if not lacking or comparisons is None:
        return []
    key = [*ADDRESS[:-1]]
    micro = with_comparisons(means_for_prompts_like_these(cells).filter(category=Total.MICRO.value), comparisons)
    whole = micro.rows_by_key(key, named=True, unique=True)
    instead = [{**row, **{name: whole[tuple(row[one] for one in key)][name] for name in _DIFFERENCE}} for row in lacking]
    found = newest_of([row for row in instead if row["verdict_predecessor"] is not None], namer(rows))
    measures = {(row["dimension"], row["category"]) for row in rows}
    what = f"Over all images, whatever their category (exploratory; salon table --category {Total.MICRO.value})"
    said = [f"{what}: {against_the_one_before(one, mine, rows, measures)}" for one, mine in [*found.items()][:N_NAMED]]
    return said or [f"The means over all images: salon table --category {Total.MICRO.value}."]


def weights(rows: Sequence[Row]) -> str:
    """How the totals of a ranking weigh categories that bring unequal numbers of prompts; empty where all bring the same."""
    known = [row for row in rows if row["n_categories"]]
    fewest = min((row["n_prompts_smallest_category"] for row in known), default=0)
    most = max((row["n_prompts_largest_category"] for row in known), default=0)
    if fewest == most:
        return ""
    numbers = sorted({row["n_categories"] for row in known})
    n = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    each = f", 1/{n} each" if len(numbers) == 1 else ""
    return f"{n} categories weigh the same{each}: the smallest has {counted(fewest, 'prompt')}, the largest {most:,}"
