"""Which dimensions of which rubrics are held against people, or a judge, and which ratings are of each. Numbers are pairs.py."""

from collections.abc import Iterator, Mapping

import polars as pl

from rubrics.model import Rubric
from schemas.errors import InputError
from schemas.metrics import dimension_names
from schemas.statuses.people import NO_ONE, RatingStatus, unnamed
from tasks.aggregate.agreement.pairs import Rated, held_against, items_of, judge_values, rated_dimension


def rated_dimensions(
    judgements: pl.LazyFrame,
    scores: pl.LazyFrame,
    ratings: pl.DataFrame,
    rubrics: Mapping[str, Rubric],
    reference: str | None = None,
) -> Iterator[tuple[Rubric, list[Rated]]]:
    """Each rubric with its rated dimensions; all it has where `reference` is the judge that others are held against.

    Raises InputError where a dimension of the ratings is no rubric's.
    """
    wanted, names = set(ratings["dimension"].unique()), names_rated(rubrics)
    if lost := sorted(wanted - names.keys()):
        raise InputError(
            f"there are ratings of dimension {lost[0]!r}, which no rubric of the benchmark has; available: "
            f"{', '.join(sorted(set(names.values())))}"
        )
    good = ratings.filter(pl.col("status") == RatingStatus.OK.value)
    asked = judgements.select("rubric_id", "judge_model").unique().sort("rubric_id", "judge_model").collect()
    for rubric in sorted(_alone(rubrics), key=lambda one: one.id):
        every = [dimension.key for dimension in rubric.dimensions]
        keys = [key for key in every if reference or not wanted.isdisjoint({key, f"{rubric.id}.{key}"})]
        judges = asked.filter(pl.col("rubric_id") == rubric.id)["judge_model"].to_list()
        if keys and judges and (reference is None or reference in judges):
            items, judged = items_of(judgements, rubric), judge_values(judgements, scores, rubric)
            found = [rated_dimension(items, judged, ratings_of(good, rubric, key), rubric, key, judges) for key in keys]
            yield rubric, [held_against(rated, reference) for rated in found] if reference else found


def names_rated(rubrics: Mapping[str, Rubric]) -> dict[str, str]:
    """How ratings may call the dimensions of pictures judged alone, and what they are called."""
    return dimension_names((rubric.id, dimension.key) for rubric in _alone(rubrics) for dimension in rubric.dimensions)


def _alone(rubrics: Mapping[str, Rubric]) -> list[Rubric]:
    """On pairs people vote: votes.py."""
    return [rubric for rubric in rubrics.values() if not rubric.is_of_pairs]


def ratings_of(ratings: pl.DataFrame, rubric: Rubric, key: str) -> pl.DataFrame:
    """The ratings of one dimension of one rubric: of those that name the rubric, and of any rubric's where a rater named none.

    Who is not named repeats nobody: the number is of the ratings of one name of the dimension, here there are two.
    """
    is_unnamed = pl.col("rater").str.contains(f"^{NO_ONE}$")
    own = ratings.filter(dimension=f"{rubric.id}.{key}")
    by_name = own.filter(~is_unnamed)
    shared = ratings.filter(dimension=key).join(by_name, on=["sample_id", "rater", "kind"], how="anti", maintain_order="left")
    number = pl.format(unnamed("{}"), pl.int_range(1, pl.len() + 1).over("sample_id", is_unnamed))
    rater = pl.when(is_unnamed).then(number).otherwise("rater")
    return pl.concat([own, shared]).with_columns(dimension=pl.lit(key), rater=rater)
