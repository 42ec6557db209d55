"""People's votes on pairs of pictures as verdicts, and the tables of an agreement with them.

A vote's words and samples are tasks/ingest/votes.py, win rates and ratings tasks/aggregate/preferences, agreement itself
vote_agreement.py.
"""

from collections.abc import Mapping

import polars as pl

from rubrics.model import Rubric
from schemas.errors import InputError
from schemas.metrics import is_headline
from schemas.records import PEOPLE
from schemas.statuses.people import RatingStatus
from schemas.tables.agreement import AGREEMENT
from schemas.tables.published import PREFERENCE_RATINGS, PREFERENCES
from schemas.tables.stored import JUDGEMENTS, SCORES
from schemas.tables.table import Table
from tasks.aggregate.agreement.corrected import agreement_tables
from tasks.aggregate.agreement.vote_agreement import BOARD, vote_rows
from tasks.aggregate.preferences.adaptive import plans_of
from tasks.aggregate.preferences.prompts import PAIR
from tasks.aggregate.preferences.tables import categories_of, preference_tables
from tasks.aggregate.preferences.verdicts import outcome, verdicts
from tasks.aggregate.tables import Settings
from tasks.context import Reference, StageContext

OF_VOTES = (PREFERENCES, PREFERENCE_RATINGS)
"""What votes are published as, beside their rows of AGREEMENT."""


def tables_held_against(context: StageContext, reference: Reference) -> dict[Table, pl.DataFrame]:
    """The tables of an agreement, less the ratings and votes themselves; OF_VOTES where there are votes."""
    tables = agreement_tables(context, reference)
    if reference.votes.is_empty():
        return tables
    of_votes = vote_tables(context, reference.votes)
    both = pl.concat([tables[AGREEMENT], of_votes[AGREEMENT]]).sort(AGREEMENT.key)
    return tables | of_votes | {AGREEMENT: both}


def headline_of_pairs(rubrics: Mapping[str, Rubric]) -> str:
    """The dimension votes are of where nobody says one. Raises InputError where no rubric compares pairs."""
    listed = [[one.key for one in rubric.dimensions] for rubric in rubrics.values() if rubric.is_of_pairs]
    if not listed:
        raise InputError(
            "votes are on pairs of pictures, and no rubric of the benchmark file compares pairs; add\n[[rubrics]]\n"
            'id = "preference"'
        )
    return next(key for keys in listed for key in keys if is_headline(key, keys))


def units_of(judgements: pl.LazyFrame, rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    """BOARD, sample_id, prompt_id, category, model, checkpoint of every sample in a planned pair, under each dimension."""
    boards = [(one.id, key.key) for one in rubrics.values() if one.is_of_pairs for key in one.dimensions]
    keys = pl.LazyFrame(boards, schema={"rubric_id": pl.String, "dimension": pl.String}, orient="row")
    of_pairs = judgements.filter(pl.col("second_sample_id").is_not_null())
    shared = ["rubric_id", "rubric_version", "prompt_id", "category"]
    ends = [
        of_pairs.select(*shared, *(pl.col(f"{side}{name}").alias(name) for name in ("sample_id", "model", "checkpoint")))
        for side in ("", "second_")
    ]
    each = pl.concat(ends).unique(["rubric_id", "sample_id"], keep="any")
    return each.join(keys, on="rubric_id").sort("rubric_id", "dimension", "sample_id").collect()


def vote_tables(context: StageContext, votes: pl.DataFrame) -> dict[Table, pl.DataFrame]:
    """AGREEMENT of judges and people on pairs; PREFERENCES and PREFERENCE_RATINGS of the judges and, as PEOPLE, of the votes.

    `votes` is the `votes` table. People's comparisons are corrected together, apart from the judges'.
    """
    judgements, scores = context.lake.scan(JUDGEMENTS, context.ids.plan_id), context.lake.scan(SCORES, context.ids.reading_id)
    said, run = verdicts(judgements, scores, context.rubrics), Settings.of(context)
    people = verdicts_of_people(votes, units_of(judgements, context.rubrics))
    is_adaptive = context.benchmark.pairs.adaptive
    asked = said.filter("is_asked")
    verdicts_of_judges, plans = (asked, plans_of(said)) if is_adaptive else (said, None)
    judged = preference_tables(verdicts_of_judges, run, plans)
    voted = preference_tables(people, run, expected=categories_of(verdicts_of_judges, plans))  # means over the same categories
    rows = [run.named | row for row in vote_rows(asked, people)]
    apart = pl.col("family") + f" | {PEOPLE}"
    return {AGREEMENT: AGREEMENT.frame(rows).sort(AGREEMENT.key)} | {
        table: pl.concat([judged[table], voted[table].with_columns(family=apart)]).sort(table.key) for table in OF_VOTES
    }


def verdicts_of_people(votes: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Every vote that counts as a verdict of PEOPLE, as verdicts() has them, and its `rater`.

    People are shown one order: what they say in it stands for both, and each vote is a verdict of its own.
    """
    good = votes.filter(status=RatingStatus.OK.value).select("rater", "dimension", "sample_id_a", "sample_id_b", "vote")
    mine = ["sample_id", "model", "checkpoint"]
    a = units.rename({name: f"{name}_a" for name in mine})
    b = units.select("rubric_id", "dimension", "prompt_id", *(pl.col(name).alias(f"{name}_b") for name in mine))
    both = good.join(a, on=["dimension", "sample_id_a"]).join(b, on=["rubric_id", "dimension", "prompt_id", "sample_id_b"])
    is_turned = (pl.col("model_b") < pl.col("model_a")) | (
        (pl.col("model_b") == pl.col("model_a")) & (pl.col("checkpoint_b") < pl.col("checkpoint_a"))
    )
    worth = pl.when(is_turned).then(1 - pl.col("vote")).otherwise("vote")
    turned = {
        f"{name}_{end}": pl.when(is_turned).then(f"{name}_{other}").otherwise(f"{name}_{end}")
        for name in mine for end, other in (("a", "b"), ("b", "a"))
    }  # fmt: skip
    ends = both.with_columns(**turned, first=worth, second=worth, judge_model=pl.lit(PEOPLE)).with_columns(outcome=outcome())
    named = ends.rename({"sample_id_a": "sample_a", "sample_id_b": "sample_b"})
    columns = [*BOARD, "judge_model", "sample_a", "sample_b", "rater", "prompt_id", "category", *PAIR]
    return named.select(*columns, "first", "second", "outcome").sort(*BOARD, "sample_a", "sample_b", "rater")
