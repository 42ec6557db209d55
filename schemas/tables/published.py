"""The tables of a publication: cells, comparisons, rankings, failures, pairs. Agreement and nights have files of their own."""

from schemas.tables import comparison_fields as c
from schemas.tables import fields as f
from schemas.tables import night_fields as n
from schemas.tables import people_fields as o
from schemas.tables import preference_fields as p
from schemas.tables.table import Table

BENCHMARK_LONG = Table(
    "benchmark_long",
    (
        f.CELL_ID, f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL,
        f.CHECKPOINT, f.DIMENSION, f.CELL_CATEGORY, f.METRIC, f.ESTIMAND, f.ESTIMATE,
        f.SE.or_null("Standard error of the estimate, with prompts as clusters (for `these_prompts`, as strata)."), f.CI_LOW,
        f.CI_HIGH, f.CI_LEVEL, f.CI_METHOD, f.DF, f.SCALE_LOW.not_null("Lower end of the dimension's scale; 0 for a share."),
        f.SCALE_HIGH.not_null("Upper end of the dimension's scale; 1 for a share."), f.N_PROMPTS, f.N_IMAGES, f.N_JUDGEMENTS,
        f.N_SCORED,
        f.N_FAILED, f.N_RULE_VIOLATIONS, f.FAIL_RATE, f.COVERAGE, f.COVERAGE_FLOOR, f.CELL_BOUND_LOW, f.CELL_BOUND_HIGH,
        f.DESIGN_EFFECT, f.CELL_STATUS, f.REASON, f.CELL_BOUND_CI_LOW, f.CELL_BOUND_CI_HIGH,
        f.N_NOT_APPLICABLE, f.LOOK, f.N_LOOKS,
    ),
    key=("cell_id",),
    about="One row per cell: a judge's scores of a checkpoint in one dimension, category or total, metric and estimand.",
)  # fmt: skip

BENCHMARK_WIDE = Table(
    "benchmark_wide",
    (
        f.CELL_ID, f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL,
        f.CHECKPOINT, f.DIMENSION, f.ESTIMATE, f.SE, f.CI_LOW, f.CI_HIGH, f.CELL_STATUS, f.REASON, c.RANK_LOW, c.RANK_HIGH,
        c.N_RANKED, c.MICRO_ESTIMATE, c.MICRO_CI_LOW, c.MICRO_CI_HIGH, c.CATEGORIES_JSON, c.DELTA_PREDECESSOR, c.P_PREDECESSOR,
        c.DELTA_BASELINE, c.P_BASELINE, f.N_PROMPTS, f.N_IMAGES, f.N_JUDGEMENTS, f.N_FAILED, f.FAIL_RATE, f.COVERAGE,
        f.CELL_BOUND_LOW, f.CELL_BOUND_HIGH, c.FAILS_MORE,
    ),
    key=("rubric_id", "judge_model", "model", "checkpoint", "dimension"),
    about="One row per rubric, judge, checkpoint and dimension, for reading: the `__macro__` mean for prompts like these with "
    "rank, deltas and coverage. All of it is in other tables too.",
)  # fmt: skip

COMPARISONS = Table(
    "comparisons",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, c.COMPARISON, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL,
        f.DIMENSION, f.CELL_CATEGORY, f.METRIC,
        f.ESTIMAND, c.MODEL_A, c.CHECKPOINT_A, c.MODEL_B, c.CHECKPOINT_B, c.DELTA,
        f.SE.or_null("Standard error of delta, with prompts as clusters."), c.DELTA_LOW,
        c.DELTA_HIGH, f.CI_LEVEL, c.DELTA_LOW_ADJUSTED, c.DELTA_HIGH_ADJUSTED, c.DELTA_BOUND_LOW, c.DELTA_BOUND_HIGH, f.DF,
        c.TEST, c.P, c.P_ADJUSTED, c.VERDICT, c.ADJUSTMENT, c.FAMILY, c.N_FAMILY, c.N_PROMPTS_PAIRED, c.WIN,
        c.TIE, c.LOSS, c.MDE80, c.FAIL_RATE_A, c.FAIL_RATE_B, c.P_FAILURES, c.HAS_UNEQUAL_FAILURES, f.CELL_STATUS, f.REASON,
        c.CELL_ID_A, c.CELL_ID_B, c.IS_PRIMARY, c.P_FAILURES_LOW,
        c.DELTA_BOUND_CI_LOW, c.DELTA_BOUND_CI_HIGH, f.LOOK, f.N_LOOKS, c.N_PROMPTS_IDENTICAL,
        c.FAILING,
    ),
    key=(
        "comparison", "rubric_id", "judge_model", "dimension", "category", "model_a", "checkpoint_a", "model_b", "checkpoint_b",
    ),
    later=(
        "ci_low_adjusted", "ci_high_adjusted", "delta_bound_low", "delta_bound_high", "verdict", "is_primary", "p_failures_low",
        "delta_bound_ci_low", "delta_bound_ci_high", "look", "n_looks", "n_prompts_identical", "failing",
    ),
    about="One row per comparison of two checkpoints, a and b, in one cell. Positive differences favor a.",
)  # fmt: skip

STANDINGS = Table(
    "standings",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.DIMENSION,
        f.CELL_CATEGORY, c.IS_HEADLINE, f.MODEL, f.CHECKPOINT, c.PLACE,
        c.STATE, f.REASON, c.RANK_LOW, c.RANK_HIGH, c.N_RANKED, f.ESTIMATE,
        f.CI_LOW, f.CI_HIGH, f.CI_LEVEL, f.SCALE_LOW, f.SCALE_HIGH, f.CELL_BOUND_LOW, f.CELL_BOUND_HIGH, f.N_PROMPTS,
        c.N_CATEGORIES, c.N_PROMPTS_FEWEST, c.SMALLEST_CATEGORY, c.N_PROMPTS_MOST, c.N_SHARED_PROMPTS, c.N_PROMPTS_NEEDED,
        c.SHARED_ESTIMATE,
        c.IS_REORDERED, f.N_IMAGES, f.N_JUDGEMENTS, f.N_FAILED, f.COVERAGE, f.COVERAGE_FLOOR, c.FAILS_MORE,
        c.PREDECESSOR, *c.TO_PREDECESSOR, c.BASELINE, *c.TO_BASELINE, c.ADJUSTMENT, c.FAMILY, c.N_FAMILY, f.CELL_ID,
        *c.N_IDENTICAL,
    ),
    key=("rubric_id", "judge_model", "dimension", "category", "model", "checkpoint"),
    later=("smallest_category", "place", "n_identical_predecessor", "n_identical_baseline"),
    about="Who is better, and how sure that is: one row per checkpoint in each ranking.",
)  # fmt: skip
"""Everything that shows ranks shows these rows."""

FAILURES = Table(
    "failures",
    (
        f.CELL_ID, f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL, f.CHECKPOINT,
        f.DIMENSION, f.CELL_CATEGORY, f.WHY_NO_SCORE, f.N_FAILED_SO,
    ),
    key=("cell_id", "reason"),
    about="What has no score, and why: one row per reason and cell of `benchmark_long`, including totals, for the metric `mean` "
    "and the estimand `prompts_like_these`. In cells of other metrics and of `these_prompts` the same judgements failed; their "
    "`n_failed` has no rows here.",
)  # fmt: skip

DISTRIBUTIONS = Table(
    "distributions",
    (
        f.CELL_ID, f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL, f.CHECKPOINT,
        f.DIMENSION, f.CELL_CATEGORY, f.SCORE_FROM, f.SCORE_BELOW, f.N_SCORES, f.SHARE, f.SHARE_AT_LEAST, f.SHARE_CI_LOW,
        f.SHARE_CI_HIGH, f.CI_LEVEL,
    ),
    key=("cell_id", "score_from"),
    about="One row per step of the scale, for each category and `__macro__` cell that has an estimate for prompts like these.",
)  # fmt: skip

PREFERENCES = Table(
    "preferences",
    p.PREFERENCES,
    key=p.PREFERENCES_KEY,
    later=("n_unanswered",),
    about="One row per two checkpoints, a and b, compared in pairs of pictures, and category or total: how often a wins.",
)

PREFERENCE_RATINGS = Table(
    "preference_ratings",
    p.PREFERENCE_RATINGS,
    key=p.PREFERENCE_RATINGS_KEY,
    about="One row per checkpoint that was compared in pairs: its Bradley-Terry rating and its rank.",
)

POSITION_BIAS = Table(
    "position_bias",
    p.POSITION_BIAS,
    key=p.POSITION_BIAS_KEY,
    about="One row per judge, and category or total: how far the order in which two pictures are shown decides its verdicts.",
)

HEALTH = Table(
    "health",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL, f.CHECKPOINT,
        f.MEASURE, f.WORD, f.VALUE, f.N_KNOWN,
    ),
    key=("rubric_id", "judge_model", "model", "checkpoint", "measure", "word"),
    about="How asking went, computed from the stored replies: one row per measure and `word` that it is split by. A night's "
    "anchors are not counted, here and in what is printed of it (`answered … by …`).",
)  # fmt: skip

POOLED = Table(
    "pooled",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.MODEL, f.CHECKPOINT, f.DIMENSION,
        f.CELL_CATEGORY, f.ESTIMAND, n.N_JUDGES, o.JUDGES_JSON, o.JUDGE_SPREAD, f.ESTIMATE, f.SE, f.CI_LOW, f.CI_HIGH, f.CI_LEVEL,
        f.CI_METHOD, f.DF, f.SCALE_LOW, f.SCALE_HIGH, f.N_PROMPTS, o.N_POOLED_IMAGES, o.N_POOLED_SAMPLES, o.N_POOLED_FAILED,
        o.POOLED_COVERAGE, f.COVERAGE_FLOOR, f.CELL_BOUND_LOW, f.CELL_BOUND_HIGH, f.CELL_STATUS, f.REASON, o.N_POOLED_JUDGEMENTS,
    ),
    key=("rubric_id", "model", "checkpoint", "dimension", "category", "estimand"),
    later=("n_judgements",),
    about="One row per cell of the mean over all judges, on samples that every judge scored; blocked where one judge's cell is. "
    "Empty with fewer than two judges; none for kinds of items.",
)  # fmt: skip
