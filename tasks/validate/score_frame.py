"""The scores table as the checks look at it: each row beside its request, its scale, its rules and its reply.

As in frames.py, a column made here is null where it does not apply or where an earlier check speaks for the row: first the
status must be a known word, then the score fit the status, then lie on the scale and the step, then keep the rules.
"""

from collections.abc import Mapping

import polars as pl

from rubrics.model import Rubric
from schemas.metrics import HEADLINE
from schemas.statuses.rows import NO_FAILURES, ParseReason, ReplyStatus, ScoreStatus
from schemas.tables.stored import REPLIES, REQUESTS
from tasks.validate.buckets import Buckets
from tasks.validate.scales import STEP_TOLERANCE, scale_frame, unreadable_facts, with_scales

_OWN_STATUS = {ParseReason.RULE_VIOLATION, ParseReason.NOT_APPLICABLE, ParseReason.NOT_ASKED_FOR}
UNREADABLE_REASONS = [reason.value for reason in ParseReason if reason not in _OWN_STATUS]
NO_REPLY_REASONS = [status.value for status in ReplyStatus if status not in {ReplyStatus.ANSWERED, ReplyStatus.FILTERED}]

KNOWN_REASONS = sorted({*(reason.value for reason in ParseReason), *NO_REPLY_REASONS})

_OF_REQUEST = ("rubric_id", "rubric_version", "judge_model", "variant")
_HAS_SCORE = [ScoreStatus.SCORED.value, ScoreStatus.RULE_VIOLATION.value]
_SCORE, _STATUS, _REASON = pl.col("score"), pl.col("status"), pl.col("reason")


def score_frame(
    scores: pl.DataFrame, requests: pl.DataFrame, replies: pl.DataFrame, rubrics: Mapping[str, Rubric], stored: Buckets
) -> pl.DataFrame:
    """A bucket's `scores` in their order with the columns their checks read; `stored` says which whole table is empty."""
    joined = _beside_request(scores, requests, replies, rubrics)
    return (
        joined.with_columns(is_of_list=_is_of_list(rubrics))
        .with_columns(**_request_columns(requests, stored), **_status_columns())
        .with_columns(**_number_columns())
        .with_columns(status_fits_rules=_status_fits_rules())
        .with_columns(**_verdict_columns(), **_bound_columns(), **_reply_columns(stored))
        .with_columns(beyond_aspects=_beyond_aspects(rubrics))
    )


def _beside_request(
    scores: pl.DataFrame, requests: pl.DataFrame, replies: pl.DataFrame, rubrics: Mapping[str, Rubric]
) -> pl.DataFrame:
    """Each score beside what its request asked (asked_*), the scale and rules of that, and its replies."""
    asked = requests.unique("request_key", keep="first", maintain_order=True).select(
        "request_key", "facts_json", *(pl.col(name).alias(f"asked_{name}") for name in _OF_REQUEST)
    )
    answered = replies.filter(pl.col("status") == ReplyStatus.ANSWERED).select("request_key", "ask_index").unique()
    joined = (
        scores.join(asked, on="request_key", how="left", maintain_order="left")
        .join(answered.with_columns(is_answered=True), on=["request_key", "ask_index"], how="left", maintain_order="left")
        .with_columns(
            is_in_requests=pl.col("request_key").is_in(requests["request_key"].drop_nulls().implode()),
            is_in_replies=pl.col("request_key").is_in(replies["request_key"].drop_nulls().unique().implode()),
        )
    )
    scaled = with_scales(
        joined.select("facts_json", "dimension", rubric_id="asked_rubric_id", variant="asked_variant"), rubrics
    ).select("scale_low", "scale_high", "step", "is_derived", "rule_low", "rule_high")
    variants = scale_frame(rubrics).select(asked_rubric_id="rubric_id", asked_variant="variant", has_variant=True).unique()
    return joined.hstack(scaled).join(
        variants, on=["asked_rubric_id", "asked_variant"], how="left", nulls_equal=True, maintain_order="left"
    )


def _is_of_list(rubrics: Mapping[str, Rubric]) -> pl.Expr:
    """Whether a row follows from the items of a sample: it stands under its judgement's key, which no request has."""
    made = [f"{r.id} {one.key}" for r in rubrics.values() if r.is_of_lists for v in r.variants.values() for one in v.derived]
    is_made = pl.concat_str("rubric_id", "dimension", separator=" ").is_in(made) | (_STATUS == ScoreStatus.NOT_ASKED_FOR)
    return is_made.fill_null(value=False)


def _request_columns(requests: pl.DataFrame, stored: Buckets) -> dict[str, pl.Expr]:
    named = [name for name in _OF_REQUEST if name != "variant"]
    is_there = pl.all_horizontal(pl.col(*named, *(f"asked_{name}" for name in named)).is_not_null())
    is_same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"asked_{name}")) for name in _OF_REQUEST)
    return {
        "has_request": pl.when(pl.lit(not stored.is_empty(REQUESTS)) & ~pl.col("is_of_list")).then("is_in_requests"),
        "is_as_asked": pl.when(pl.col("is_in_requests") & is_there).then(is_same),
        "is_of_variant": pl.when(pl.col("has_variant") & pl.col("dimension").is_not_null()).then(
            pl.col("scale_low").is_not_null()
        ),
        "has_rules_known": pl.col("scale_low").is_not_null() & ~pl.col("facts_json").is_in(unreadable_facts(requests)),
    }


def _status_columns() -> dict[str, pl.Expr]:
    is_known = _STATUS.is_in([word.value for word in ScoreStatus])
    is_known_reason = _REASON.is_null() | _REASON.is_in(KNOWN_REASONS)
    reason_fits = (
        pl.when(_STATUS == ScoreStatus.SCORED)
        .then(_REASON.is_null())
        .when(_STATUS == ScoreStatus.RULE_VIOLATION)
        .then(_REASON.eq_missing(pl.lit(ParseReason.RULE_VIOLATION.value)))
        .when(_STATUS.is_in([word.value for word in NO_FAILURES]))  # the reason is the same word
        .then(_REASON.eq_missing(_STATUS))
        .when(_STATUS == ScoreStatus.MISSING_OPERAND)
        .then(_REASON.is_not_null())
        .when(_STATUS == ScoreStatus.UNREADABLE)
        .then(_REASON.is_in(UNREADABLE_REASONS, nulls_equal=True))
        .otherwise(_REASON.is_in(NO_REPLY_REASONS, nulls_equal=True))
    )
    is_first = pl.col("request_key").is_first_distinct()  # a reply is one, however many dimensions and items it speaks of
    is_seen = _REASON.ne_missing(pl.lit(ParseReason.MISSING_INPUT.value)).all().over("request_key")
    return {
        "saw_its_input": pl.when(is_known & is_first & ~pl.col("is_of_list") & (_STATUS != ScoreStatus.NO_REPLY)).then(is_seen),
        "score_fits_status": pl.when(is_known).then(_STATUS.is_in(_HAS_SCORE) == _SCORE.is_not_null()),
        "reason_fits_status": pl.when(is_known & is_known_reason).then(reason_fits),
    }


def _number_columns() -> dict[str, pl.Expr]:
    """off_step: how far the score is from its step. Made again from the numbers, for what the reader and parse.py say of them."""
    n_steps = (_SCORE - pl.col("scale_low")) / pl.col("step")
    off_step = pl.when(_SCORE.is_finite()).then((n_steps - n_steps.round()).abs())
    is_in_scale = pl.col("score_fits_status") & _SCORE.is_between("scale_low", "scale_high")
    is_on_step = pl.col("score_fits_status") & (off_step.fill_null(0.0) <= STEP_TOLERANCE)
    return {"off_step": off_step, "is_in_scale": is_in_scale, "is_at_step": is_on_step, "is_fit": is_in_scale & is_on_step}


def _status_fits_rules() -> pl.Expr:
    """A score the rules forbid is a rule_violation, and nothing else is."""
    is_forbidden = pl.any_horizontal(pl.col("rule_low") > _SCORE, pl.col("rule_high") < _SCORE).fill_null(value=False)
    return pl.when(pl.col("is_fit") & pl.col("has_rules_known")).then(is_forbidden == (_STATUS == ScoreStatus.RULE_VIOLATION))


def _verdict_columns() -> dict[str, pl.Expr]:
    """Whether each stored verdict says what the numbers say: true of a score that passes, null where there is none."""
    is_without = pl.col("score_fits_status") & _SCORE.is_null()

    def agrees(verdict: str, applies: str, expected: pl.Expr) -> pl.Expr:
        said = pl.col(verdict)
        return pl.when(is_without).then(said.is_null()).when(applies).then(said.eq_missing(expected))

    return {
        "in_range_agrees": agrees("is_in_range", "is_in_scale", pl.lit(value=True)),
        "on_step_agrees": agrees("is_on_step", "is_at_step", pl.lit(value=True)),
        "rule_kept_agrees": agrees("is_rule_kept", "status_fits_rules", _STATUS == ScoreStatus.SCORED),
    }


def _bound_columns() -> dict[str, pl.Expr]:
    """The bounds a row that a reply says must have: the score itself where it counts, else what scale and rules leave."""
    is_scored = pl.col("status_fits_rules") & (_STATUS == ScoreStatus.SCORED)
    is_open = pl.col("has_rules_known") & (
        (pl.col("score_fits_status") & _SCORE.is_null()) | (pl.col("status_fits_rules") & (_STATUS != ScoreStatus.SCORED))
    )
    return {
        f"due_{end}": pl.when(pl.col("is_derived").fill_null(value=False))
        .then(None)
        .when(is_scored)
        .then(_SCORE)
        .when(is_open)
        .then(pl.coalesce(f"rule_{end}", f"scale_{end}"))
        for end in ("low", "high")
    }


def _reply_columns(stored: Buckets) -> dict[str, pl.Expr]:
    """Whether ask_index names an answered reply in the snapshot where there is a score, and nothing where there is none."""
    ask_index = pl.col("ask_index")
    is_there = pl.lit(not stored.is_empty(REPLIES)) & pl.col("is_in_replies") & (ask_index.is_null() | (ask_index >= 0))
    stands = (
        pl.when(_SCORE.is_null())
        .then(ask_index.is_null())
        .when(is_there)
        .then(pl.col("is_answered").fill_null(pl.lit(value=False)))
    )
    is_said = pl.col("score_fits_status") & ~pl.col("is_derived").fill_null(value=False) & ~pl.col("is_of_list")
    return {"has_answered_reply": pl.when(is_said).then(stands)}


def _beyond_aspects(rubrics: Mapping[str, Rubric]) -> pl.Expr:
    """How far an overall score lies outside its reply's aspects; null for other rows, and where there are no aspects.

    Of two pictures one may win each aspect by little, and the other as a whole: verdicts of pairs are not held against aspects.
    Nor is a score against aspects on another scale, or of which lower is better.
    """
    left_out = [name for name, rubric in rubrics.items() if rubric.is_of_pairs or _has_unlike_aspects(rubric)]
    is_overall = (pl.col("dimension") == HEADLINE) & ~pl.col("rubric_id").is_in(left_out)
    aspect = pl.when(~is_overall & pl.col("is_fit")).then(_SCORE)
    low, high = aspect.min().over("request_key"), aspect.max().over("request_key")
    beyond = pl.max_horizontal(low - _SCORE, _SCORE - high, pl.lit(0.0))
    return pl.when(is_overall & pl.col("is_fit") & low.is_not_null()).then(beyond)


def _has_unlike_aspects(rubric: Rubric) -> bool:
    each = ((*variant.dimensions, *variant.derived) for variant in rubric.variants.values())
    return any(len({(one.minimum, one.maximum, one.is_lower_better) for one in listed}) > 1 for listed in each)
