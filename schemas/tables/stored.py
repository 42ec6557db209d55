"""The tables that a lake keeps: samples, plan, replies, scores, checks, runs. Those of a publication are published.py."""

from schemas.records import REPLY_FIELDS
from schemas.tables import fields as f
from schemas.tables import night_fields as n
from schemas.tables.table import Table

SAMPLES = Table(
    "samples",
    (
        f.SAMPLE_ID, f.SOURCE, f.SOURCE_KEY, f.ITEM_ID, f.MODEL, f.CHECKPOINT, f.PROMPT, f.CATEGORY, f.SEED, f.QUESTION,
        f.TEXT, f.REFERENCE, f.CAPTION_TYPE, f.OUTPUT, f.IMAGE, f.IMAGE_SHA256, f.FILE_SHA256, f.IMAGE_FORMAT,
        f.IMAGE_TREATMENT, f.WIDTH_PX, f.HEIGHT_PX, f.N_BYTES, f.TEXT_FLAGS, f.SAMPLE_STATUS, f.DUPLICATE_OF,
        f.DETAIL, f.TEXTS_JSON, f.PICTURES,
    ),
    key=("sample_id",),
    later=("text_flags", "duplicate_of_sample_id", "texts_json", "pictures"),
    about="One row per sample: its pictures and texts, who made it, and whether it is usable.",
)  # fmt: skip

PICTURES = Table(
    "pictures",
    (
        f.IMAGE_SHA256.not_null("sha256 of the picture's bytes as shown to the judge; unique in the table."), f.IMAGE,
        f.FILE_SHA256, f.IMAGE_FORMAT, f.IMAGE_TREATMENT, f.WIDTH_PX, f.HEIGHT_PX, f.N_BYTES,
    ),
    key=("image_sha256",),
    about="One row per distinct picture of a dataset.",
)  # fmt: skip
"""`samples` of older lakes holds these columns itself, and is read in its place."""

JUDGEMENTS = Table(
    "judgements",
    (
        f.SAMPLE_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.REPEAT, f.OCCASION, f.MODEL, f.CHECKPOINT,
        f.CATEGORY, f.PROMPT_ID, f.REQUEST_KEY.or_null("The request that answers the judgement; null if none was planned."),
        f.JUDGEMENT_STATUS, f.REASON.or_null("Why no request is planned; null if one is."),
        f.ITEMS_JSON, f.SECOND_SAMPLE_ID, f.SECOND_MODEL, f.SECOND_CHECKPOINT, f.DUPLICATE_OF,
        f.FIRST_LOOK,
    ),
    key=("sample_id", "second_sample_id", "rubric_id", "judge_model", "repeat", "occasion"),
    later=("items_json", "second_sample_id", "second_model", "second_checkpoint", "duplicate_of_sample_id", "first_look"),
    about="One row per sample or pair, rubric, judge and repeat: the request that it needs, or why there is none.",
)  # fmt: skip

REQUESTS = Table(
    "requests",
    (
        f.REQUEST_KEY, f.RUBRIC_ID, f.RUBRIC_VERSION, f.RUBRIC_DIGEST, f.VARIANT, f.JUDGE_MODEL, f.PARAMETERS_JSON,
        f.REPEAT, f.OCCASION, f.IMAGE_SHA256, f.MESSAGES_JSON, f.FACTS_JSON, f.N_OUTPUT_TOKENS_EXPECTED,
    ),
    key=("request_key",),
    about="One row per question to a judge. Judgements that ask the same question share a request.",
)  # fmt: skip

REPLIES = Table(
    "replies",
    tuple(REPLY_FIELDS.values()),  # declared once, as JudgeReply
    key=("request_key", "ask_index"),
    later=("n_cached_tokens", "logprobs_json", "reply_sha256"),
    about="One row per ask of a request: the reply, verbatim, or how the ask failed.",
)

SCORES = Table(
    "scores",
    (
        f.REQUEST_KEY, f.DIMENSION, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.VARIANT, f.SCORE, f.SCORE_STATUS,
        f.REASON, f.NOTE, f.ASK_INDEX_READ, f.BOUND_LOW, f.BOUND_HIGH, f.IS_IN_RANGE, f.IS_ON_STEP, f.IS_RULE_KEPT,
        f.SCORE_SPAN, f.ITEM,
    ),
    key=("request_key", "dimension", "item"),
    later=("score_span", "item"),
    about="One row per request, dimension and item: the score read from the reply, or why there is none.",
)  # fmt: skip

CHECKS = Table(
    "checks",
    (f.PUBLISHED, f.CHECK, f.CHECK_STATUS, f.SEVERITY, f.N_CHECKED, f.N_FAILING, f.FAILING_KEYS_JSON),
    key=("publication_id", "check"),
    about="One row per data check.",
)

QUARANTINE = Table(
    "quarantine",
    (f.PUBLISHED, f.TABLE_NAME, f.ROW_KEY_JSON, f.CHECK, f.SEVERITY),
    key=("publication_id", "table_name", "row_key_json", "check"),
    about="One row per failing row of a data check, at most a thousand per check.",
)

RUNS = Table(
    "runs",
    (
        f.STARTED_AT, f.FINISHED_AT, f.BENCHMARK, f.RUN_DATE, f.PUBLICATION_ID, f.OUTCOME, f.DATASET_ID, f.N_SAMPLES,
        f.N_SAMPLES_OK, f.N_REQUESTS, f.N_CACHED, f.N_ASKED, f.N_INPUT_TOKENS, f.N_OUTPUT_TOKENS, f.RUN_USD, f.CODE_VERSION,
        f.RUN_BY, f.IS_AT_LEAST,
    ),
    key=("started_at", "benchmark"),
    later=("n_input_tokens", "n_output_tokens", "asked_by", "is_at_least"),
    about="One row per run: what it asked, what it cost and how it ended.",
)  # fmt: skip

PARTITIONS = Table(
    "partitions",
    (
        n.PARTITION_ID, f.BENCHMARK, f.MODEL, f.CHECKPOINT, n.PARTITION_DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION,
        f.RUBRIC_DIGEST, f.JUDGE_MODEL, n.JUDGE_DIGEST, n.SOURCES_JSON, n.PARTITION_STATE, f.N_REQUESTS, n.N_LEFT, n.ONLINE_USD,
        n.BATCH_USD, n.ASKED_BY, n.PARTITION_DETAIL, n.CHANGED_AT, n.OWNER_HOST, n.OWNER_PID, n.OWNER_STARTED,
    ),
    key=("partition_id",),
    later=("online_usd", "batch_usd"),
    about="One row per checkpoint, dataset, rubric and judge: what was asked of it, and what is left. Each row is a file in "
    "`partitions/<benchmark>/` of the lake; neither a publication nor `salon.duckdb` has this table.",
)  # fmt: skip
