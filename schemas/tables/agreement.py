"""The tables of an agreement with people: what they said, and what it says of the judges."""

from schemas.tables import comparison_fields as c
from schemas.tables import fields as f
from schemas.tables import people_fields as o
from schemas.tables import preference_fields as p
from schemas.tables.table import Table

RATINGS = Table(
    "ratings",
    (
        o.RATING_KEY, f.SAMPLE_ID.or_null("The rated sample; null if the row matches none, or several."), f.ITEM_ID,
        f.DIMENSION, o.RATER, o.RATER_KIND, o.RATING, o.RATING_SCALE_LOW, o.RATING_SCALE_HIGH, o.RATING_STEP, o.RATING_STATUS,
        f.DETAIL,
    ),
    key=("rating_key",),
    about="One row per rating in the table of ratings, with the status that says whether it counts.",
)  # fmt: skip

VOTES = Table(
    "votes", p.VOTES, key=("vote_key",), about="One row per vote on a pair, with the status that says whether it counts."
)

AGREEMENT = Table(
    "agreement",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.DIMENSION, o.SUBJECT_KIND, o.SUBJECT,
        o.AGAINST, o.AGAINST_DIMENSION, o.AGREEMENT_MODEL, o.AGREEMENT_CHECKPOINT, o.AGREEMENT_CATEGORY, o.AGREEMENT_METRIC,
        f.ESTIMATE, f.CI_LOW, f.CI_HIGH, f.CI_LEVEL, f.CI_METHOD, o.AGREEMENT_SCALE_LOW, o.AGREEMENT_SCALE_HIGH, o.N_ITEMS,
        o.N_ITEM_PROMPTS, o.N_RATERS, f.CELL_STATUS, f.REASON,
    ),
    key=(
        "rubric_id", "dimension", "subject_kind", "subject", "against", "against_dimension", "model", "checkpoint", "category",
        "metric",
    ),
    about="One row per comparison of a judge, metric or rater with people (or with a reference judge), by one metric.",
)  # fmt: skip

CORRECTED = Table(
    "corrected",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, o.JUDGE_OR_NULL, f.DIMENSION,
        o.AGREEMENT_MODEL, o.AGREEMENT_CHECKPOINT, o.AGREEMENT_CATEGORY, o.ESTIMATOR, f.ESTIMATE, o.PROMPT_SE, f.CI_LOW,
        f.CI_HIGH, f.CI_LEVEL, f.CI_METHOD, f.DF, f.SCALE_LOW, f.SCALE_HIGH, o.TUNING, o.N_ALL_PROMPTS, o.N_LABELLED,
        o.N_RATERS_BESIDE,
        f.CELL_STATUS, f.REASON, c.RATER_SE, c.LABEL_CHECK, c.P_LABELS_RANDOM,
    ),
    key=("rubric_id", "judge_model", "dimension", "model", "checkpoint", "category", "estimator"),
    about="One row per mean and estimator: by the judge, by people, and by the judge corrected by people.",
)  # fmt: skip

CORRECTED_COMPARISONS = Table(
    "corrected_comparisons",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, o.JUDGE_OR_NULL, f.DIMENSION,
        c.COMPARISON, f.CELL_CATEGORY, o.ESTIMATOR, c.MODEL_A, c.CHECKPOINT_A, c.MODEL_B, c.CHECKPOINT_B,
        c.DELTA.or_null("Difference of a minus b, by this estimator."), c.PAIRED_SE,
        f.DF, c.DELTA_LOW, c.DELTA_HIGH, f.CI_LEVEL, c.DELTA_LOW_ADJUSTED, c.DELTA_HIGH_ADJUSTED, c.P, c.P_ADJUSTED, c.VERDICT,
        c.ADJUSTMENT, c.FAMILY, c.N_FAMILY, o.TUNING, c.RATER_SE, o.N_ALL_PROMPTS, o.N_LABELLED, o.N_RATERS_BESIDE, c.LABEL_CHECK,
        c.P_LABELS_RANDOM, f.CELL_STATUS, f.REASON,
    ),
    key=(
        "rubric_id", "judge_model", "dimension", "comparison", "category", "estimator", "model_a", "checkpoint_a", "model_b",
        "checkpoint_b",
    ),
    about="One row per two checkpoints and estimator: their difference by the judge, by people, by both, and the judge's error.",
)  # fmt: skip

CORRECTED_STANDINGS = Table(
    "corrected_standings",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, o.JUDGE_OR_NULL, f.DIMENSION,
        f.CELL_CATEGORY, c.IS_HEADLINE, o.ESTIMATOR, f.MODEL, f.CHECKPOINT, c.STATE, f.REASON, c.RANK_LOW, c.RANK_HIGH,
        c.N_RANKED_SO, f.ESTIMATE, o.PROMPT_SE, f.DF, f.CI_LOW, f.CI_HIGH, f.CI_LEVEL, f.SCALE_LOW, f.SCALE_HIGH, o.TUNING,
        c.RATER_SE, o.N_ALL_PROMPTS, o.N_LABELLED, o.N_RATERS_BESIDE, c.LABEL_CHECK, c.P_LABELS_RANDOM, c.ADJUSTMENT, c.FAMILY,
        c.N_FAMILY, o.HAS_UNEVEN_PROMPTS,
    ),
    key=("rubric_id", "judge_model", "dimension", "category", "estimator", "model", "checkpoint"),
    about="One row per checkpoint and estimator in each ranking: its mean and rank by the judge, by people and by both.",
)  # fmt: skip
