"""Every column once: its name, Arrow type, nullability, unit, bounds and one sentence. Of ratings and nights: the neighbours."""

import pyarrow as pa

from schemas.statuses.cells import CellStatus, Estimand, HealthMeasure
from schemas.statuses.rows import CheckSeverity, CheckStatus, JudgementStatus, ReplyOrigin, ReplyStatus, SampleStatus, ScoreStatus
from schemas.tables.field import IMAGE_TYPE, PICTURES_TYPE, UTC_TIMESTAMP, Field, count, digest, number, text

# --- who and what -----------------------------------------------------------------------------------------------
SAMPLE_ID = digest("sample_id", "sha256 of the sample's content (image, texts) and role (model, checkpoint, item, seed).")
DATASET_ID = digest("dataset_id", "sha256 over the sorted sample ids of the dataset.")
SOURCE = text("source", "Name of the benchmark file's source the row came from.")
SOURCE_KEY = text("source_key", "Where in the source the row stands, for people: a relative path, or file and row.")
ITEM_ID = text("item_id", "The source's own id of the row, where it has one.", null=True)
MODEL = text("model", "The image model that made the sample.")
CHECKPOINT = text("checkpoint", "The checkpoint of the model; 'unnamed' where the source does not say.")
PROMPT = text("prompt", "What the image model was asked for.", null=True)
CATEGORY = text("category", "The category the sample is reported under.", null=True)
QUESTION = text("question", "The question a conversation began with.", null=True)
TEXT = text("text", "The text part of an answer; null where the answer has none.", null=True)
REFERENCE = text("reference", "The reference text a caption is held against.", null=True)
CAPTION_TYPE = text("caption_type", "The kind of caption asked for, in the source's words.", null=True)
OUTPUT = text("output", "The text the model under test wrote.", null=True)
SEED = Field("seed", pa.int64(), "The seed or index that tells apart several samples of one prompt.", is_nullable=True)
IMAGE = Field("image", IMAGE_TYPE, "The picture as the judge is shown it (Hugging Face Image feature).", is_nullable=True)
PICTURES = Field(
    "pictures", PICTURES_TYPE, "Its pictures in order: role, sha256 of the bytes shown, path in the source; null in older lakes.",
    is_nullable=True,
)  # fmt: skip
IMAGE_SHA256 = digest("image_sha256", "sha256 of the picture's bytes as the judge is shown them.", null=True)
FILE_SHA256 = digest("file_sha256", "sha256 of the file's bytes as they were found.", null=True)
IMAGE_FORMAT = text("image_format", "Format of the bytes the judge is shown: PNG, JPEG, WEBP.", null=True)
IMAGE_TREATMENT = text("image_treatment", "What was done to the picture: 'none', or the steps of its re-encoding.", null=True)
WIDTH_PX = Field("width_px", pa.int32(), "Width of the picture shown.", is_nullable=True, unit="px", minimum=1)
HEIGHT_PX = Field("height_px", pa.int32(), "Height of the picture shown.", is_nullable=True, unit="px", minimum=1)
N_BYTES = count("n_bytes", "Size of the file as it was found.", null=True, unit="B")
TEXTS_JSON = text(
    "texts_json", "Texts in columns that only its rubrics know, JSON object by column; null where there are none.", null=True
)
TEXT_FLAGS = text(
    "text_flags", "What of its texts may be meant for the judge: column:flag, joined by commas; null where nothing.", null=True
)
SAMPLE_STATUS = text("status", "What ingest found.", values=SampleStatus)
DUPLICATE_OF = digest("duplicate_of_sample_id", "Of a duplicate: the earlier sample of the same content and role.", null=True)
DETAIL = text("detail", "One sentence about the status, for people.", null=True)

# --- what is asked ----------------------------------------------------------------------------------------------
REQUEST_KEY = digest("request_key", "sha256 over canonical JSON of everything that can change the answer.")
RUBRIC_ID = text("rubric_id", "The rubric's id.")
RUBRIC_VERSION = text("rubric_version", "The rubric's declared version.")
RUBRIC_DIGEST = digest("rubric_digest", "sha256 over the rubric folder's files: one changed byte is another digest.")
JUDGE_MODEL = text("judge_model", "The judge model that was asked for.")
REPEAT = count("repeat", "Which of the benchmark's repeats, from 0.")
OCCASION = text("occasion", "Empty; the date for anchors, which are asked anew each night; `exam` for twins with planted faults.")
PROMPT_ID = digest("prompt_id", "sha256 of the values that name the independent unit (the rubric's `unit` columns).")
VARIANT = text("variant", "The category whose prompt was used, where the rubric dispatches; else null.", null=True)
ITEMS_JSON = text(
    "items_json",
    "Of a sample with items: each one's request_key, its place there, id, kinds, weight and parents, JSON list; request_key then "
    "names this list. Null where the sample is one question.",
    null=True,
)
SECOND_SAMPLE_ID = text(
    "second_sample_id",
    "The sample shown second where two are compared; `sample_id` is the one shown first. Else null.",
    null=True,
)
SECOND_MODEL = text("second_model", "The model of the sample shown second; null where one is judged alone.", null=True)
SECOND_CHECKPOINT = text("second_checkpoint", "Its checkpoint; null where one is judged alone.", null=True)
FIRST_LOOK = count("first_look", "The look before which it is asked, from 1; null where all are asked at once.", null=True)
LOOK = count("look", "The look at which asking ended, from 1; null where all are asked at once.", null=True)
N_LOOKS = count("n_looks", "The looks there were to be; null where all are asked at once.", null=True)
ITEM = text("item", "The item's id among its sample's, or its request's; empty where the score is of the whole.", null=True)
JUDGEMENT_STATUS = text("status", "What the plan decided.", values=JudgementStatus)
REASON = text("reason", "Why, where the status is not the good one: a word of a closed list.", null=True)
PARAMETERS_JSON = text("parameters_json", "Sampling parameters of the judge, canonical JSON.")
MESSAGES_JSON = text(
    "messages_json", "The rendered messages, canonical JSON, images by digest; null for recorded-only rubrics.", null=True
)
FACTS_JSON = text("facts_json", "What the rubric's rules look at (nulls, words, values), canonical JSON.")
N_OUTPUT_TOKENS_EXPECTED = count("n_output_tokens_expected", "Output tokens the rubric declares for a reply.", unit="tokens")

# --- what came back ---------------------------------------------------------------------------------------------
ASK_INDEX = count("ask_index", "0 for the first ask, 1 for the one counted re-ask of an unreadable reply.")
REPLY_STATUS = text("status", "How the ask ended.", values=ReplyStatus)
REPLY_TEXT = text("reply_text", "The reply, verbatim.", null=True)
FINISH_REASON = text("finish_reason", "The provider's word for why the reply ended.", null=True)
REPLY_SHA256 = digest(
    "reply_sha256",
    "sha256 of what the judge said and to which ask, taken on arrival; null where it came before there were any.",
    null=True,
)
REFUSAL_TEXT = text("refusal_text", "The provider's refusal field.", null=True)
ERROR_DETAIL = text("error_detail", "The provider's error in one redacted line.", null=True)
ANSWERED_MODEL = text("answered_model", "The model that says it answered.", null=True)
N_INPUT_TOKENS = count("n_input_tokens", "Input tokens the provider billed.", null=True, unit="tokens")
N_OUTPUT_TOKENS = count("n_output_tokens", "Output tokens the provider billed.", null=True, unit="tokens")
N_CACHED_TOKENS = count(
    "n_cached_tokens", "Input tokens billed at the provider's reduced price for repeated beginnings.", null=True, unit="tokens"
)
LOGPROBS_JSON = text(
    "logprobs_json", "The reply's token log-probabilities as the provider gave them, where asked for.", null=True
)
COST_USD = number("cost_usd", "What the reply cost, where the price is known.", unit="USD", low=0)
LATENCY_S = number("latency_s", "From sending to the last byte.", unit="s", low=0)
N_ATTEMPTS = count("n_attempts", "Attempts recorded for this ask.")
RECEIVED_AT = Field("received_at", UTC_TIMESTAMP, "When the reply was stored.", is_nullable=True)
ORIGIN = text("origin", "Where the reply came from.", null=True, values=ReplyOrigin)

# --- what was read ----------------------------------------------------------------------------------------------
DIMENSION = text("dimension", "The dimension's key in its rubric.")
SCORE = number("score", "The judge's number; null where none was given or could be read.")
SCORE_STATUS = text("status", "What became of the dimension.", values=ScoreStatus)
NOTE = text("note", "What the judge wrote beside the number.", null=True)
SCORE_SPAN = text(
    "score_span",
    "Where the number stands in reply_text: [start, end] in characters from 0, end excluded, as JSON. Null without a score.",
    null=True,
)
ASK_INDEX_READ = Field("ask_index", pa.int64(), "The ask the scores were read from.", is_nullable=True, minimum=0)
BOUND_LOW = number("bound_low", "The lowest this score can have been (the score itself where scored).", null=False)
BOUND_HIGH = number("bound_high", "The highest this score can have been.", null=False)
IS_IN_RANGE = Field("is_in_range", pa.bool_(), "The score lies on the rubric's scale; null without a score.", is_nullable=True)
IS_ON_STEP = Field("is_on_step", pa.bool_(), "The score lies on the rubric's step; null without a score.", is_nullable=True)
IS_RULE_KEPT = Field("is_rule_kept", pa.bool_(), "No declared rule forbids the score; null without a score.", is_nullable=True)

# --- data checks ------------------------------------------------------------------------------------------------
PUBLISHED = digest("publication_id", "The publication this row belongs to: digest of snapshot, benchmark file and code.")
CHECK = text("check", "Name of the data check: table.column.expectation.")
CHECK_STATUS = text("status", "How the check ended.", values=CheckStatus)
SEVERITY = text("severity", "What a failure does.", values=CheckSeverity)
N_CHECKED = count("n_checked", "Rows the check looked at.")
N_FAILING = count("n_failing", "Rows that failed it.")
FAILING_KEYS_JSON = text("failing_keys_json", "Keys of failing rows (the first thousand), JSON list.", null=True)
TABLE_NAME = text("table_name", "The table the row was quarantined from.")
ROW_KEY_JSON = text("row_key_json", "The row's key, canonical JSON.")

# --- published cells --------------------------------------------------------------------------------------------
CELL_ID = text("cell_id", "First 12 hexadecimal characters of the cell's address; what `salon explain` takes.")
RUN_DATE = Field("run_date", pa.date32(), "The benchmark's logical date.")
BENCHMARK = text("benchmark", "The benchmark file's name.")
CELL_CATEGORY = text("category", "The category; `__macro__` (mean over categories) and `__micro__` (over images) for totals.")
METRIC = text("metric", "What is estimated: 'mean', or 'share_at_least_K', the share of scores of K or more.")
ESTIMAND = text("estimand", "For what population the figure speaks.", values=Estimand)
ESTIMATE = number("estimate", "The figure; null where the reason says so.")
SE = number("se", "Standard error under the estimand; prompts are the clusters.", low=0)
CI_LOW = number("ci_low", "Lower end of the interval.")
CI_HIGH = number("ci_high", "Upper end of the interval.")
CI_LEVEL = number("ci_level", "Nominal level of the interval.", null=False, low=0, high=1)
CI_METHOD = text("ci_method", "How the interval was made.", null=True)
DF = number("df", "Degrees of freedom of the interval.", low=0)
SCALE_LOW = number("scale_low", "Lower end of the dimension's scale.", null=False)
SCALE_HIGH = number("scale_high", "Upper end of the dimension's scale.", null=False)
N_PROMPTS = count("n_prompts", "Prompts with at least one score.")
N_IMAGES = count("n_images", "Samples with at least one score.")
N_JUDGEMENTS = count("n_judgements", "Judgements the cell should hold.")
N_SCORED = count("n_scored", "Judgements with a score that counts.")
N_FAILED = count("n_failed", "Judgements without a score that counts.")
N_NOT_APPLICABLE = count("n_not_applicable", "").or_null(
    "Judgements whose reply says in a declared word that the question does not apply, and items whose parent failed; in no other "
    "count."
)
N_RULE_VIOLATIONS = count("n_rule_violations", "Readable scores a declared rule forbids; part of n_failed.")
WHY_NO_SCORE = text("reason", "Why these judgements have no score that counts.")
N_FAILED_SO = count("n_failed", "How many.")
FAIL_RATE = number("fail_rate", "n_failed / n_judgements.", low=0, high=1)
COVERAGE = number("coverage", "n_scored / n_judgements.", low=0, high=1)
COVERAGE_FLOOR = number("coverage_floor", "The benchmark's floor under which the cell is blocked.", null=False, low=0, high=1)
CELL_BOUND_LOW = number("bound_low", "The mean if every failure were the worst score it can have been.")
CELL_BOUND_HIGH = number("bound_high", "The mean if every failure were the best score it can have been.")
CELL_BOUND_CI_LOW = number(
    "bound_ci_low", "Lower end of bound_low's interval, or ci_low where that is lower; for prompts like these."
)
CELL_BOUND_CI_HIGH = number("bound_ci_high", "Upper end of bound_high's interval, or ci_high where that is higher.")
DESIGN_EFFECT = number("design_effect", "Clustered variance over the variance of as many independent images.", low=0)
CELL_STATUS = text("status", "What the cell is.", values=CellStatus)

# --- distributions, health --------------------------------------------------------------------------------------
SCORE_FROM = number("score_from", "Scores from here, inclusive.", null=False)
SCORE_BELOW = number("score_below", "Scores under this; null for the highest.")
SHARE = number("share", "Share of the scores in this step, weighted as the mean is.", null=False, low=0, high=1)
SHARE_AT_LEAST = number("share_at_least", "Share of the scores of score_from or more.", null=False, low=0, high=1)
SHARE_CI_LOW = number("ci_low", "Lower end of share_at_least's interval.", low=0, high=1)
SHARE_CI_HIGH = number("ci_high", "Upper end of share_at_least's interval.", low=0, high=1)
N_SCORES = count("n_scores", "Judgements with a score in this step.")
MEASURE = text("measure", "What is measured.", values=HealthMeasure)
WORD = text("word", "The reason, status, quantile or model that the measure is split by; empty where it is not.")
VALUE = number("value", "The figure; null where nobody said.")
N_KNOWN = count("n_known", "Asks or judgements the figure is taken over.")

# --- runs -------------------------------------------------------------------------------------------------------
STARTED_AT = Field("started_at", UTC_TIMESTAMP, "When the run started.")
FINISHED_AT = Field("finished_at", UTC_TIMESTAMP, "When the run finished.")
PUBLICATION_ID = digest("publication_id", "The publication the run made or found; null where it made none.", null=True)
OUTCOME = text("outcome", "published, unchanged, blocked, or stopped: ended before that, by an error, killed or told to stop.")
N_REQUESTS = count("n_requests", "Distinct requests of the plan.")
N_CACHED = count("n_cached", "Requests whose reply was already stored.")
N_ASKED = count("n_asked", "Attempts sent in this run, retries and re-asks included.")
N_SAMPLES = count("n_samples", "Samples of the dataset.")
N_SAMPLES_OK = count("n_samples_ok", "Samples that could be used.")
RUN_BY = text("asked_by", "backfill, nightly or run: the command; null in rows of before this was kept.", null=True)
IS_AT_LEAST = Field(
    "is_at_least",
    pa.bool_(),
    "Whether more may have been billed than tokens and cost say: attempts that were sent ended without a reply, a reply said no "
    "tokens, or the ledger was out of use at the end and others may have bought more; null in rows of before this was kept.",
    is_nullable=True,
)
CODE_VERSION = digest("code_version", "sha256 over Salon's own source files.")

# --- partitions -------------------------------------------------------------------------------------------------
PARTITION_ID = digest("partition_id", "sha256 over benchmark, checkpoint, dataset and the digests of rubric and judge.")
PARTITION_DATASET_ID = digest("dataset_id", "sha256 over the sorted sample ids of the checkpoint alone.")
JUDGE_DIGEST = digest("judge_digest", "sha256 over what makes the judge's answers others.")
SOURCES_JSON = text("sources_json", "The sources the checkpoint has samples of, JSON list.")
PARTITION_STATE = text("state", "planned, running, done or failed, as it was last written down.")
N_LEFT = count("n_left", "Requests without a final reply.")
ONLINE_USD = number("online_usd", "What is left would cost asked one by one, as last previewed.", unit="USD", low=0)
BATCH_USD = number("batch_usd", "What is left would cost by the Batch API, as last previewed.", unit="USD", low=0)
ASKED_BY = text("asked_by", "backfill, nightly or run.")
PARTITION_DETAIL = text("detail", "Why it failed or is not done; null otherwise.", null=True)
CHANGED_AT = Field("changed_at", UTC_TIMESTAMP, "When the row was written.")
OWNER_HOST = text("host", "The machine of the process that wrote it; null where processes cannot be looked up.", null=True)
OWNER_PID = count("pid", "That process's number.")
OWNER_STARTED = text("process_started", "When that process began, in the machine's own ticks.")
