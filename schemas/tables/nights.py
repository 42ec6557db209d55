"""The tables about nights and judges: drift, bridges, reliability, jury, exam."""

from schemas.tables import fields as f
from schemas.tables import night_fields as n
from schemas.tables.table import Table

_JUDGED = (f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL, f.CHECKPOINT, f.DIMENSION)

NIGHTS = Table(
    "nights",
    (
        f.BENCHMARK, f.RUN_DATE, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, n.MEASURED_BY, f.MODEL,
        f.CHECKPOINT.or_null("The checkpoint of the night; null if there are several."), f.DIMENSION, f.CELL_CATEGORY,
        f.N_JUDGEMENTS, n.SCALE_WIDTH, f.ESTIMATE, f.SE, n.BRIDGE_SE, n.ANCHOR_SET, n.ANCHOR_ESTIMATE, n.ANCHOR_SE,
        n.ANCHOR_BRIDGE_SE, f.REASON, n.N_ANCHORS_FAILED,
    ),
    key=("benchmark", "run_date", "rubric_id", "rubric_version", "judge_model", "model", "dimension", "category"),
    about="One row per night and series: a model's `__macro__` mean in one dimension, and that of the anchors.",
)  # fmt: skip

DRIFT = Table(
    "drift",
    (
        f.BENCHMARK, f.RUN_DATE, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, n.MEASURED_BY, f.MODEL,
        f.CHECKPOINT.or_null("The checkpoint of the night; null if there are several."), f.DIMENSION, f.CELL_CATEGORY,
        f.N_JUDGEMENTS, f.ESTIMATE, f.SE, n.BRIDGE_SE, n.N_BASELINE, n.BASELINE_MEAN, n.BASELINE_SD, n.EWMA, n.LIMIT_LOW,
        n.LIMIT_HIGH, n.ANCHOR_SET, n.ANCHOR_ESTIMATE, n.ANCHOR_SE, n.ANCHOR_EWMA, n.ANCHOR_LIMIT_LOW, n.ANCHOR_LIMIT_HIGH,
        n.ALPHA, n.N_FAMILY, n.ANCHOR_P, n.DIFFERENCE_P, n.IS_ALARM, n.VERDICT,
        f.REASON.or_null("Why there is no verdict, or the night is no observation; otherwise null."),
        n.CHANGED_ON, n.SHIFT, n.SHIFT_SE,
        n.BASELINE_AUTOCORRELATION, n.ALPHA_SPENT, n.N_ANCHORS_FAILED,
    ),
    key=NIGHTS.key,
    later=("baseline_autocorrelation", "alpha_spent", "n_anchors_failed"),
    about="One row per night and series: baseline, control limits, alarm and what it is attributed to.",
)  # fmt: skip

BRIDGES = Table(
    "bridges",
    (
        f.RUBRIC_ID, f.RUBRIC_VERSION, f.DIMENSION, n.JUDGE_OLD, n.JUDGE_NEW, n.BRIDGE_KIND,
        f.N_PROMPTS.not_null("Prompts in the common set."), f.N_IMAGES.not_null("Images that both judges scored."),
        n.CENTRE_OLD, n.OFFSET, n.OFFSET_SE, n.SLOPE, n.SLOPE_SE, n.OFFSET_SLOPE_COV, n.NIGHT_STATUS, f.REASON,
    ),
    key=("rubric_id", "rubric_version", "dimension", "judge_old", "judge_new"),
    about="One row per bridge and dimension: how the scores of a new judge compare with those of the old one. What could not be "
    "bridged is told by the command, and kept in lakes of older releases alone.",
)  # fmt: skip

RELIABILITY = Table(
    "reliability",
    (
        *_JUDGED, f.N_PROMPTS, f.N_IMAGES.not_null("Samples with at least one score."),
        n.N_SCORES, n.N_REPEATS_MEAN, n.VAR_PROMPT, n.VAR_IMAGE, n.VAR_JUDGE,
        n.VAR_IMAGE_JUDGE, n.N_TRUNCATED, n.ICC, n.ICC_LOW, n.ICC_HIGH, n.RELIABILITY, n.NIGHT_STATUS, f.REASON,
    ),
    key=tuple(field.name for field in _JUDGED),
    about="One row per judge, checkpoint and dimension (none for kinds of items): how much of a score is the judge's own noise.",
)  # fmt: skip

DESIGNS = Table(
    "designs",
    (
        *_JUDGED, n.N_PROMPTS_PLANNED, n.N_IMAGES_PLANNED, n.N_REPEATS_PLANNED,
        f.N_JUDGEMENTS.not_null("Judgements that the design needs, or existing scores."), n.COST_RATIO, n.IS_AT_HAND,
        n.SE_CLAIMS, n.SE_TRENDS,
    ),
    key=(*RELIABILITY.key, "n_prompts", "n_images_per_prompt", "n_repeats"),
    about="One row per design of a row in `reliability`: the standard error predicted for other numbers of prompts, images and "
    "repeats.",
)  # fmt: skip

JURY = Table(
    "jury",
    (
        f.RUBRIC_ID, f.RUBRIC_VERSION, f.MODEL, f.CHECKPOINT, f.DIMENSION, n.JUDGE_A, n.JUDGE_B, n.JURY_METRIC, f.ESTIMATE,
        f.CI_LOW, f.CI_HIGH, n.N_JUDGES, n.N_ITEMS, n.NIGHT_STATUS, f.REASON,
    ),
    key=("rubric_id", "rubric_version", "model", "checkpoint", "dimension", "judge_a", "judge_b", "metric"),
    about="One row per two judges (or all of them) and metric: how far they agree on one checkpoint's samples in a dimension. "
    "None for kinds of items.",
)  # fmt: skip

EXAM = Table(
    "exam",
    n.EXAM,
    key=n.EXAM_KEY,
    about="One row per judge, dimension and planted fault: how much of it the judge notices.",
)
