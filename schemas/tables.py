"""The tables as lists of fields and a key, and conform(). Where tables are stored is tasks/lake/reading.py."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from schemas import comparison_fields as c
from schemas import fields as f
from schemas import night_fields as n
from schemas import preference_fields as p
from schemas.fields import Field
from schemas.records import REPLY_FIELDS

SCHEMA_VERSION = "2"

# The Hugging Face feature description that makes `datasets` show the column as pictures.
_HUGGINGFACE_IMAGE = b'{"info": {"features": {"image": {"_type": "Image"}}}}'


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, its fields in order, the fields that identify a row, and those that older partitions of it lack."""

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    later: tuple[str, ...] = ()

    def schema(self) -> pa.Schema:
        """The Arrow schema with field metadata; the `huggingface` entry where the table holds images."""
        metadata: dict[bytes | str, bytes | str] = {
            b"salon_table": self.name.encode(),
            b"salon_schema_version": SCHEMA_VERSION.encode(),
        }
        if any(field.arrow_type == f.IMAGE_TYPE for field in self.fields):
            metadata[b"huggingface"] = _HUGGINGFACE_IMAGE
        return pa.schema([field.arrow() for field in self.fields], metadata=metadata)

    @property
    def columns(self) -> list[str]:
        """Column names in order."""
        return [field.name for field in self.fields]

    def empty(self) -> pl.DataFrame:
        """A frame without rows, of the table's columns and types."""
        return pl.DataFrame(schema=pl.Schema(self.schema()))  # pyarrow imports pandas for an empty_table()

    def frame(self, rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
        """Rows as a frame, in their order; a column that a row lacks is null. Raises ValueError where that is forbidden."""
        listed = [{name: row.get(name) for name in self.columns} for row in rows]
        return pl.DataFrame(conform(pl.DataFrame(listed, schema=self.empty().schema), self))


SAMPLES = Table(
    "samples",
    (
        f.SAMPLE_ID, f.SOURCE, f.SOURCE_KEY, f.ITEM_ID, f.MODEL, f.CHECKPOINT, f.PROMPT, f.CATEGORY, f.SEED, f.QUESTION,
        f.TEXT, f.REFERENCE, f.CAPTION_TYPE, f.OUTPUT, f.IMAGE, f.IMAGE_SHA256, f.FILE_SHA256, f.IMAGE_FORMAT,
        f.IMAGE_TREATMENT, f.WIDTH_PX, f.HEIGHT_PX, f.N_BYTES, f.TEXT_FLAGS, f.SAMPLE_STATUS, f.DUPLICATE_OF,
        f.DETAIL, f.TEXTS_JSON, f.PICTURES,
    ),
    key=("sample_id",),
    later=("duplicate_of_sample_id", "texts_json", "pictures"),
)  # fmt: skip

PICTURES = Table(
    "pictures",
    (
        f.IMAGE_SHA256.not_null("sha256 of the picture's bytes as the judge is shown them: no two rows have one."), f.IMAGE,
        f.FILE_SHA256, f.IMAGE_FORMAT, f.IMAGE_TREATMENT, f.WIDTH_PX, f.HEIGHT_PX, f.N_BYTES,
    ),
    key=("image_sha256",),
)  # fmt: skip
"""Each distinct picture of a dataset. `samples` of older lakes holds these columns itself, and is read in its place."""

JUDGEMENTS = Table(
    "judgements",
    (
        f.SAMPLE_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.REPEAT, f.OCCASION, f.MODEL, f.CHECKPOINT,
        f.CATEGORY, f.PROMPT_ID, f.REQUEST_KEY.or_null("The request that answers it; null where none was planned."),
        f.JUDGEMENT_STATUS, f.REASON, f.ITEMS_JSON, f.SECOND_SAMPLE_ID, f.SECOND_MODEL, f.SECOND_CHECKPOINT, f.DUPLICATE_OF,
        f.FIRST_LOOK,
    ),
    key=("sample_id", "second_sample_id", "rubric_id", "judge_model", "repeat", "occasion"),
    later=("items_json", "second_sample_id", "second_model", "second_checkpoint", "duplicate_of_sample_id", "first_look"),
)  # fmt: skip

REQUESTS = Table(
    "requests",
    (
        f.REQUEST_KEY, f.RUBRIC_ID, f.RUBRIC_VERSION, f.RUBRIC_DIGEST, f.VARIANT, f.JUDGE_MODEL, f.PARAMETERS_JSON,
        f.REPEAT, f.OCCASION, f.IMAGE_SHA256, f.MESSAGES_JSON, f.FACTS_JSON, f.N_OUTPUT_TOKENS_EXPECTED,
    ),
    key=("request_key",),
)  # fmt: skip

REPLIES = Table("replies", tuple(REPLY_FIELDS.values()), key=("request_key", "ask_index"))  # declared once, as JudgeReply

SCORES = Table(
    "scores",
    (
        f.REQUEST_KEY, f.DIMENSION, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.VARIANT, f.SCORE, f.SCORE_STATUS,
        f.REASON, f.NOTE, f.ASK_INDEX_READ, f.BOUND_LOW, f.BOUND_HIGH, f.IS_IN_RANGE, f.IS_ON_STEP, f.IS_RULE_KEPT,
        f.SCORE_SPAN, f.ITEM,
    ),
    key=("request_key", "dimension", "item"),
    later=("score_span", "item"),
)  # fmt: skip

CHECKS = Table(
    "checks",
    (f.PUBLISHED, f.CHECK, f.CHECK_STATUS, f.SEVERITY, f.N_CHECKED, f.N_FAILING, f.FAILING_KEYS_JSON),
    key=("publication_id", "check"),
)

QUARANTINE = Table(
    "quarantine",
    (f.PUBLISHED, f.TABLE_NAME, f.ROW_KEY_JSON, f.CHECK, f.SEVERITY),
    key=("publication_id", "table_name", "row_key_json", "check"),
)

BENCHMARK_LONG = Table(
    "benchmark_long",
    (
        f.CELL_ID, f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL,
        f.CHECKPOINT, f.DIMENSION, f.CELL_CATEGORY, f.METRIC, f.ESTIMAND, f.ESTIMATE, f.SE, f.CI_LOW, f.CI_HIGH,
        f.CI_LEVEL, f.CI_METHOD, f.DF, f.SCALE_LOW, f.SCALE_HIGH, f.N_PROMPTS, f.N_IMAGES, f.N_JUDGEMENTS, f.N_SCORED,
        f.N_FAILED, f.N_RULE_VIOLATIONS, f.FAIL_RATE, f.COVERAGE, f.COVERAGE_FLOOR, f.CELL_BOUND_LOW, f.CELL_BOUND_HIGH,
        f.DESIGN_EFFECT, f.CELL_STATUS, f.REASON, f.CELL_BOUND_CI_LOW, f.CELL_BOUND_CI_HIGH,
        f.N_NOT_APPLICABLE, f.LOOK, f.N_LOOKS,
    ),
    key=("cell_id",),
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
)  # fmt: skip

COMPARISONS = Table(
    "comparisons",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, c.COMPARISON, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL,
        f.DIMENSION, f.CELL_CATEGORY, f.METRIC,
        f.ESTIMAND, c.MODEL_A, c.CHECKPOINT_A, c.MODEL_B, c.CHECKPOINT_B, c.DELTA, f.SE, c.DELTA_LOW,
        c.DELTA_HIGH, f.CI_LEVEL, c.DELTA_LOW_ADJUSTED, c.DELTA_HIGH_ADJUSTED, c.DELTA_BOUND_LOW, c.DELTA_BOUND_HIGH, f.DF,
        c.TEST, c.P, c.P_ADJUSTED, c.VERDICT, c.ADJUSTMENT, c.FAMILY, c.N_FAMILY, c.N_PROMPTS_PAIRED, c.WIN,
        c.TIE, c.LOSS, c.MDE80, c.FAIL_RATE_A, c.FAIL_RATE_B, c.P_FAILURES, c.HAS_UNEQUAL_FAILURES, f.CELL_STATUS, f.REASON,
        c.CELL_ID_A, c.CELL_ID_B, c.IS_PRIMARY, c.P_FAILURES_LOW,
        c.DELTA_BOUND_CI_LOW, c.DELTA_BOUND_CI_HIGH, f.LOOK, f.N_LOOKS,
    ),
    key=(
        "comparison", "rubric_id", "judge_model", "dimension", "category", "model_a", "checkpoint_a", "model_b", "checkpoint_b",
    ),
)  # fmt: skip

STANDINGS = Table(
    "standings",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.DIMENSION,
        f.CELL_CATEGORY, c.IS_HEADLINE, f.MODEL, f.CHECKPOINT, c.STATE, f.REASON, c.RANK_LOW, c.RANK_HIGH, c.N_RANKED, f.ESTIMATE,
        f.CI_LOW, f.CI_HIGH, f.CI_LEVEL, f.SCALE_LOW, f.SCALE_HIGH, f.CELL_BOUND_LOW, f.CELL_BOUND_HIGH, f.N_PROMPTS,
        c.N_CATEGORIES, c.N_PROMPTS_FEWEST, c.N_PROMPTS_MOST, c.N_SHARED_PROMPTS, c.N_PROMPTS_NEEDED, c.SHARED_ESTIMATE,
        c.IS_REORDERED, f.N_IMAGES, f.N_JUDGEMENTS, f.N_FAILED, f.COVERAGE, f.COVERAGE_FLOOR, c.FAILS_MORE,
        c.PREDECESSOR, *c.TO_PREDECESSOR, c.BASELINE, *c.TO_BASELINE, c.ADJUSTMENT, c.FAMILY, c.N_FAMILY, f.CELL_ID,
    ),
    key=("rubric_id", "judge_model", "dimension", "category", "model", "checkpoint"),
)  # fmt: skip
"""Who is better, and how sure that is: one row for each checkpoint in each ranking. What is shown of ranks is these rows."""

FAILURES = Table(
    "failures",
    (
        f.CELL_ID, f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL, f.CHECKPOINT,
        f.DIMENSION, f.CELL_CATEGORY, f.WHY_NO_SCORE, f.N_FAILED_SO,
    ),
    key=("cell_id", "reason"),
)  # fmt: skip
"""What has no score, and why: a row for each mean for prompts like these and each reason, the totals' among them."""

DISTRIBUTIONS = Table(
    "distributions",
    (
        f.CELL_ID, f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL, f.CHECKPOINT,
        f.DIMENSION, f.CELL_CATEGORY, f.SCORE_FROM, f.SCORE_BELOW, f.N_SCORES, f.SHARE, f.SHARE_AT_LEAST, f.SHARE_CI_LOW,
        f.SHARE_CI_HIGH, f.CI_LEVEL,
    ),
    key=("cell_id", "score_from"),
)  # fmt: skip

PREFERENCES = Table("preferences", p.PREFERENCES, key=p.PREFERENCES_KEY)
PREFERENCE_RATINGS = Table("preference_ratings", p.PREFERENCE_RATINGS, key=p.PREFERENCE_RATINGS_KEY)
POSITION_BIAS = Table("position_bias", p.POSITION_BIAS, key=p.POSITION_BIAS_KEY)

HEALTH = Table(
    "health",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL, f.CHECKPOINT,
        f.MEASURE, f.WORD, f.VALUE, f.N_KNOWN,
    ),
    key=("rubric_id", "judge_model", "model", "checkpoint", "measure", "word"),
)  # fmt: skip

RATINGS = Table(
    "ratings",
    (
        f.RATING_KEY, f.SAMPLE_ID.or_null("The sample that is meant; null where none, or no one alone, is."), f.ITEM_ID,
        f.DIMENSION, f.RATER, f.RATER_KIND, f.RATING, f.RATING_SCALE_LOW, f.RATING_SCALE_HIGH, f.RATING_STEP, f.RATING_STATUS,
        f.DETAIL,
    ),
    key=("rating_key",),
)  # fmt: skip

VOTES = Table("votes", p.VOTES, key=("vote_key",))

AGREEMENT = Table(
    "agreement",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.DIMENSION, f.SUBJECT_KIND, f.SUBJECT,
        f.AGAINST, f.AGAINST_DIMENSION, f.AGREEMENT_MODEL, f.AGREEMENT_CHECKPOINT, f.AGREEMENT_CATEGORY, f.AGREEMENT_METRIC,
        f.ESTIMATE, f.CI_LOW, f.CI_HIGH, f.CI_LEVEL, f.CI_METHOD, f.AGREEMENT_SCALE_LOW, f.AGREEMENT_SCALE_HIGH, f.N_ITEMS,
        f.N_ITEM_PROMPTS, f.N_RATERS, f.CELL_STATUS, f.REASON,
    ),
    key=(
        "rubric_id", "dimension", "subject_kind", "subject", "against", "against_dimension", "model", "checkpoint", "category",
        "metric",
    ),
)  # fmt: skip

CORRECTED = Table(
    "corrected",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_OR_NULL, f.DIMENSION,
        f.AGREEMENT_MODEL, f.AGREEMENT_CHECKPOINT, f.AGREEMENT_CATEGORY, f.ESTIMATOR, f.ESTIMATE, f.PROMPT_SE, f.CI_LOW,
        f.CI_HIGH, f.CI_LEVEL, f.CI_METHOD, f.DF, f.SCALE_LOW, f.SCALE_HIGH, f.TUNING, f.N_ALL_PROMPTS, f.N_LABELLED, f.N_RATERS,
        f.CELL_STATUS, f.REASON, c.RATER_SE, c.LABEL_CHECK, c.P_LABELS_RANDOM,
    ),
    key=("rubric_id", "judge_model", "dimension", "model", "checkpoint", "category", "estimator"),
)  # fmt: skip

CORRECTED_COMPARISONS = Table(
    "corrected_comparisons",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_OR_NULL, f.DIMENSION,
        c.COMPARISON, f.CELL_CATEGORY, f.ESTIMATOR, c.MODEL_A, c.CHECKPOINT_A, c.MODEL_B, c.CHECKPOINT_B, c.DELTA, c.PAIRED_SE,
        f.DF, c.DELTA_LOW, c.DELTA_HIGH, f.CI_LEVEL, c.DELTA_LOW_ADJUSTED, c.DELTA_HIGH_ADJUSTED, c.P, c.P_ADJUSTED, c.VERDICT,
        c.ADJUSTMENT, c.FAMILY, c.N_FAMILY, f.TUNING, c.RATER_SE, f.N_ALL_PROMPTS, f.N_LABELLED, f.N_RATERS, c.LABEL_CHECK,
        c.P_LABELS_RANDOM, f.CELL_STATUS, f.REASON,
    ),
    key=(
        "rubric_id", "judge_model", "dimension", "comparison", "category", "estimator", "model_a", "checkpoint_a", "model_b",
        "checkpoint_b",
    ),
)  # fmt: skip
"""Two checkpoints as the judge says, as people say, as the judge corrected by people says; and how far the judge is off."""

CORRECTED_STANDINGS = Table(
    "corrected_standings",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_OR_NULL, f.DIMENSION,
        f.CELL_CATEGORY, c.IS_HEADLINE, f.ESTIMATOR, f.MODEL, f.CHECKPOINT, c.STATE, f.REASON, c.RANK_LOW, c.RANK_HIGH,
        c.N_RANKED_SO, f.ESTIMATE, f.PROMPT_SE, f.DF, f.CI_LOW, f.CI_HIGH, f.CI_LEVEL, f.SCALE_LOW, f.SCALE_HIGH, f.TUNING,
        c.RATER_SE, f.N_ALL_PROMPTS, f.N_LABELLED, f.N_RATERS, c.LABEL_CHECK, c.P_LABELS_RANDOM, c.ADJUSTMENT, c.FAMILY,
        c.N_FAMILY,
    ),
    key=("rubric_id", "judge_model", "dimension", "category", "estimator", "model", "checkpoint"),
)  # fmt: skip

NIGHTS = Table(
    "nights",
    (
        f.BENCHMARK, f.RUN_DATE, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, n.MEASURED_BY, f.MODEL,
        f.CHECKPOINT.or_null("The checkpoint of the night; null where there are several."), f.DIMENSION, f.CELL_CATEGORY,
        f.N_JUDGEMENTS, n.SCALE_WIDTH, f.ESTIMATE, f.SE, n.BRIDGE_SE, n.ANCHOR_SET, n.ANCHOR_ESTIMATE, n.ANCHOR_SE,
        n.ANCHOR_BRIDGE_SE, f.REASON,
    ),
    key=("benchmark", "run_date", "rubric_id", "rubric_version", "judge_model", "model", "dimension", "category"),
)  # fmt: skip

DRIFT = Table(
    "drift",
    (
        f.BENCHMARK, f.RUN_DATE, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, n.MEASURED_BY, f.MODEL,
        f.CHECKPOINT.or_null("The checkpoint of the night; null where there are several."), f.DIMENSION, f.CELL_CATEGORY,
        f.N_JUDGEMENTS, f.ESTIMATE, f.SE, n.BRIDGE_SE, n.N_BASELINE, n.BASELINE_MEAN, n.BASELINE_SD, n.EWMA, n.LIMIT_LOW,
        n.LIMIT_HIGH, n.ANCHOR_SET, n.ANCHOR_ESTIMATE, n.ANCHOR_SE, n.ANCHOR_EWMA, n.ANCHOR_LIMIT_LOW, n.ANCHOR_LIMIT_HIGH,
        n.ALPHA, n.N_FAMILY, n.ANCHOR_P, n.DIFFERENCE_P, n.IS_ALARM, n.VERDICT, f.REASON, n.CHANGED_ON, n.SHIFT, n.SHIFT_SE,
        n.BASELINE_AUTOCORRELATION, n.ALPHA_SPENT,
    ),
    key=NIGHTS.key,
    later=("baseline_autocorrelation", "alpha_spent"),
)  # fmt: skip

BRIDGES = Table(
    "bridges",
    (
        f.RUBRIC_ID, f.RUBRIC_VERSION, f.DIMENSION, n.JUDGE_OLD, n.JUDGE_NEW, n.BRIDGE_KIND, f.N_PROMPTS, f.N_IMAGES,
        n.CENTRE_OLD, n.OFFSET, n.OFFSET_SE, n.SLOPE, n.SLOPE_SE, n.OFFSET_SLOPE_COV, n.NIGHT_STATUS, f.REASON,
    ),
    key=("rubric_id", "rubric_version", "dimension", "judge_old", "judge_new"),
)  # fmt: skip

_JUDGED = (f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.MODEL, f.CHECKPOINT, f.DIMENSION)

RELIABILITY = Table(
    "reliability",
    (
        *_JUDGED, f.N_PROMPTS, f.N_IMAGES, n.N_SCORES, n.N_REPEATS_MEAN, n.VAR_PROMPT, n.VAR_IMAGE, n.VAR_JUDGE,
        n.VAR_IMAGE_JUDGE, n.N_TRUNCATED, n.ICC, n.ICC_LOW, n.ICC_HIGH, n.RELIABILITY, n.NIGHT_STATUS, f.REASON,
    ),
    key=tuple(field.name for field in _JUDGED),
)  # fmt: skip

DESIGNS = Table(
    "designs",
    (
        *_JUDGED, n.N_PROMPTS_PLANNED, n.N_IMAGES_PLANNED, n.N_REPEATS_PLANNED, f.N_JUDGEMENTS, n.COST_RATIO, n.IS_AT_HAND,
        n.SE_CLAIMS, n.SE_TRENDS,
    ),
    key=(*RELIABILITY.key, "n_prompts", "n_images_per_prompt", "n_repeats"),
)  # fmt: skip

JURY = Table(
    "jury",
    (
        f.RUBRIC_ID, f.RUBRIC_VERSION, f.MODEL, f.CHECKPOINT, f.DIMENSION, n.JUDGE_A, n.JUDGE_B, n.JURY_METRIC, f.ESTIMATE,
        f.CI_LOW, f.CI_HIGH, n.N_JUDGES, n.N_ITEMS, n.NIGHT_STATUS, f.REASON,
    ),
    key=("rubric_id", "rubric_version", "model", "checkpoint", "dimension", "judge_a", "judge_b", "metric"),
)  # fmt: skip

EXAM = Table("exam", n.EXAM, key=n.EXAM_KEY)

POOLED = Table(
    "pooled",
    (
        f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.MODEL, f.CHECKPOINT, f.DIMENSION,
        f.CELL_CATEGORY, f.ESTIMAND, n.N_JUDGES, f.JUDGES_JSON, f.JUDGE_SPREAD, f.ESTIMATE, f.SE, f.CI_LOW, f.CI_HIGH, f.CI_LEVEL,
        f.CI_METHOD, f.DF, f.SCALE_LOW, f.SCALE_HIGH, f.N_PROMPTS, f.N_POOLED_IMAGES, f.N_POOLED_SAMPLES, f.N_POOLED_FAILED,
        f.POOLED_COVERAGE, f.COVERAGE_FLOOR, f.CELL_BOUND_LOW, f.CELL_BOUND_HIGH, f.CELL_STATUS, f.REASON,
    ),
    key=("rubric_id", "model", "checkpoint", "dimension", "category", "estimand"),
)  # fmt: skip

RUNS = Table(
    "runs",
    (
        f.STARTED_AT, f.FINISHED_AT, f.BENCHMARK, f.RUN_DATE, f.PUBLICATION_ID, f.OUTCOME, f.DATASET_ID, f.N_SAMPLES,
        f.N_SAMPLES_OK, f.N_REQUESTS, f.N_CACHED, f.N_ASKED, f.N_INPUT_TOKENS, f.N_OUTPUT_TOKENS, f.COST_USD, f.CODE_VERSION,
    ),
    key=("started_at", "benchmark"),
)  # fmt: skip

PARTITIONS = Table(
    "partitions",
    (
        f.PARTITION_ID, f.BENCHMARK, f.MODEL, f.CHECKPOINT, f.PARTITION_DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION,
        f.RUBRIC_DIGEST, f.JUDGE_MODEL, f.JUDGE_DIGEST, f.SOURCES_JSON, f.PARTITION_STATE, f.N_REQUESTS, f.N_LEFT, f.ONLINE_USD,
        f.BATCH_USD, f.ASKED_BY, f.PARTITION_DETAIL, f.CHANGED_AT, f.OWNER_HOST, f.OWNER_PID, f.OWNER_STARTED,
    ),
    key=("partition_id",),
)  # fmt: skip
"""What was asked of which checkpoint, in the lake alone: it is about the work, and no publication holds it."""

TABLES = {
    t.name: t
    for t in (
        SAMPLES, PICTURES, JUDGEMENTS, REQUESTS, REPLIES, SCORES, CHECKS, QUARANTINE, STANDINGS, BENCHMARK_LONG, BENCHMARK_WIDE,
        COMPARISONS, PREFERENCES, PREFERENCE_RATINGS, POSITION_BIAS, FAILURES, DISTRIBUTIONS, HEALTH, RATINGS, VOTES, AGREEMENT,
        CORRECTED,
        CORRECTED_COMPARISONS, CORRECTED_STANDINGS, NIGHTS, DRIFT, BRIDGES, RELIABILITY, DESIGNS,
        JURY, POOLED, EXAM, RUNS,
    )
}  # fmt: skip


def conform(frame: pl.DataFrame | pa.Table, table: Table) -> pa.Table:
    """The frame with exactly the table's columns, order, types and metadata.

    Raises ValueError where a column is missing, cannot be cast, or is null where the table forbids it.
    """
    arrow = frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame
    missing = [name for name in table.columns if name not in arrow.column_names]
    if missing:
        raise ValueError(f"table {table.name} needs the columns {missing}; the frame has {arrow.column_names}")
    try:
        return arrow.select(table.columns).cast(table.schema())
    except ValueError as error:  # pyarrow's own errors are ValueErrors
        raise ValueError(f"table {table.name}: {error}") from error
