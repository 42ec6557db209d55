"""From the answers to both orders of a pair to one verdict. What follows for checkpoints is in the room's other files."""

from collections.abc import Mapping

import polars as pl

from rubrics.model import Rubric
from schemas.statuses.rows import UNANSWERED, PairOutcome, ReplyStatus, ScoreStatus
from tasks.aggregate.preferences.prompts import PAIR

_ASKED = ["rubric_id", "rubric_version", "judge_model", "dimension", "repeat", "sample_a", "sample_b"]


def verdicts(judgements: pl.LazyFrame, scores: pl.LazyFrame, rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    """A row for each pair, repeat and dimension: prompt_id, category, PAIR, `first`, `second`, `outcome` and three flags.

    a is the checkpoint whose name comes first. `first` and `second` say who won where a, or b, was shown first: 1 for a, 0 for
    b, 0.5 for neither, null where the reply could not be read or never came. Two answers that agree are the pair's outcome;
    two that do not are `order_dependent`. `is_planned`: both samples can be judged; `is_asked`: an order was not left out;
    `is_unanswered`: the reply to an order never came.
    """
    of_pairs = {rubric.id: [one.key for one in rubric.dimensions] for rubric in rubrics.values() if rubric.is_of_pairs}
    mine = judgements.filter(pl.col("rubric_id").is_in(list(of_pairs)), pl.col("second_sample_id").is_not_null())
    is_scored = pl.col("status") == ScoreStatus.SCORED.value
    answers = scores.filter(pl.col("rubric_id").is_in(list(of_pairs))).select(
        "request_key", "dimension", score=pl.when(is_scored).then("score"),
        is_asked=pl.col("reason").ne_missing(ReplyStatus.NOT_ASKED.value),
        is_unanswered=pl.col("reason").is_in([status.value for status in UNANSWERED]),
    )  # fmt: skip
    keys = pl.LazyFrame(
        [(rubric_id, key) for rubric_id, listed in of_pairs.items() for key in listed],
        schema={"rubric_id": pl.String, "dimension": pl.String}, orient="row",
    )  # fmt: skip
    asked = mine.join(keys, on="rubric_id").join(answers, on=["request_key", "dimension"], how="left")
    model, other = pl.col("model"), pl.col("second_model")
    is_a_first = (model < other) | ((model == other) & (pl.col("checkpoint") < pl.col("second_checkpoint")))
    sides: dict[str, pl.Expr] = {}
    for name, column in (("model", "model"), ("checkpoint", "checkpoint"), ("sample", "sample_id")):
        sides[f"{name}_a"] = pl.when(is_a_first).then(column).otherwise(f"second_{column}")
        sides[f"{name}_b"] = pl.when(is_a_first).then(f"second_{column}").otherwise(column)
    each = asked.select(
        "rubric_id", "rubric_version", "judge_model", "dimension", "repeat", "prompt_id", "category",
        is_a_first=is_a_first, **sides, is_planned=pl.col("request_key").is_not_null(),
        is_asked=pl.col("is_asked").fill_null(value=True), is_unanswered=pl.col("is_unanswered").fill_null(value=False),
        won=pl.when(is_a_first).then("score").otherwise(1 - pl.col("score")),
    )  # fmt: skip
    first, second = (pl.col("won").filter(pl.col("is_a_first") == is_first).first() for is_first in (True, False))
    return (
        each.group_by(*_ASKED)
        .agg(
            pl.col("prompt_id", "category", *PAIR).first(),
            pl.col("is_planned", "is_asked", "is_unanswered").any(),
            first=first,
            second=second,
        )
        .with_columns(outcome=outcome())
        .sort(*_ASKED)
        .collect(engine="streaming")
    )


def outcome() -> pl.Expr:
    """The PairOutcome of `first` and `second`, the answers to both orders."""
    first, second = pl.col("first"), pl.col("second")
    return (
        pl.when(first.is_null() | second.is_null()).then(pl.lit(PairOutcome.UNJUDGED.value))
        .when(first != second).then(pl.lit(PairOutcome.ORDER_DEPENDENT.value))
        .when(first == 1).then(pl.lit(PairOutcome.WIN_A.value))
        .when(first == 0).then(pl.lit(PairOutcome.WIN_B.value))
        .otherwise(pl.lit(PairOutcome.TIE.value))
    )  # fmt: skip
