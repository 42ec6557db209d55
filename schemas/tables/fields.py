"""Every column once: name, Arrow type, nullability, unit, bounds, description. Ratings and nights: the neighbouring files."""

import pyarrow as pa

from schemas.statuses.cells import CellStatus, Estimand, HealthMeasure
from schemas.statuses.rows import CheckSeverity, CheckStatus, JudgementStatus, ReplyOrigin, ReplyStatus, SampleStatus, ScoreStatus
from schemas.tables.field import IMAGE_TYPE, PICTURES_TYPE, UTC_TIMESTAMP, Field, count, digest, flag, number, share, text

# --- who and what -----------------------------------------------------------------------------------------------
SAMPLE_ID = digest("sample_id", "sha256 of the sample's content (image, texts) and role (model, checkpoint, item, seed).")
DATASET_ID = digest("dataset_id", "sha256 over the sorted sample ids of the dataset, and over which named source each is of.")
SOURCE = text("source", "Name of the source in the benchmark file.")
SOURCE_KEY = text("source_key", "Where the row is in its source, for people to read: a relative path, or file and row.")
ITEM_ID = text("item_id", "The source's own id of the row, if it has one.", null=True)
MODEL = text("model", "The image model under test; in `samples`, `__unknown__` if nobody could read who made the row.")
CHECKPOINT = text("checkpoint", "The model's checkpoint; `unnamed` if the source names none.")
PROMPT = text("prompt", "The prompt that the image model was given.", null=True)
CATEGORY = text("category", "The category under which the sample is reported.", null=True)
QUESTION = text("question", "The first question of a conversation.", null=True)
TEXT = text("text", "The text part of an answer; null if the answer has none.", null=True)
REFERENCE = text("reference", "The reference text that a caption is compared with.", null=True)
CAPTION_TYPE = text("caption_type", "The kind of caption that was requested, in the source's words.", null=True)
OUTPUT = text("output", "The text that the model under test wrote.", null=True)
SEED = Field("seed", pa.int64(), "Seed or index that distinguishes several samples of one prompt.", is_nullable=True)
IMAGE = Field("image", IMAGE_TYPE, "The picture as shown to the judge (Hugging Face Image feature).", is_nullable=True)
PICTURES = Field(
    "pictures", PICTURES_TYPE,
    "The sample's pictures in order: role, sha256 of the bytes shown, path in the source. Null in older lakes.", is_nullable=True,
)  # fmt: skip
IMAGE_SHA256 = digest("image_sha256", "sha256 of the picture's bytes as shown to the judge.", null=True)
FILE_SHA256 = digest("file_sha256", "sha256 of the original file's bytes.", null=True)
IMAGE_FORMAT = text("image_format", "Format of the bytes shown to the judge: PNG, JPEG or WEBP.", null=True)
IMAGE_TREATMENT = text("image_treatment", "How the picture was changed: `none`, or the steps of its re-encoding.", null=True)
WIDTH_PX = Field("width_px", pa.int32(), "Width of the picture as shown.", is_nullable=True, unit="px", minimum=1)
HEIGHT_PX = Field("height_px", pa.int32(), "Height of the picture as shown.", is_nullable=True, unit="px", minimum=1)
N_BYTES = count("n_bytes", "Size of the original file.", null=True, unit="B")
TEXTS_JSON = text(
    "texts_json",
    "Texts from columns that only the sample's rubrics know, as a JSON object by column; null if there are none.",
    null=True,
)
TEXT_FLAGS = text(
    "text_flags",
    "Texts that may be aimed at the judge, as `column:flag` (TextFlag), separated by commas; null if there are none.",
    null=True,
)
SAMPLE_STATUS = text("status", "Result of ingesting the sample.", values=SampleStatus)
DUPLICATE_OF = digest(
    "duplicate_of_sample_id", "For a duplicate: the earlier sample with the same content and role. Otherwise null.", null=True
)
DETAIL = text("detail", "One sentence that explains the status.", null=True)

# --- what is asked ----------------------------------------------------------------------------------------------
REQUEST_KEY = digest("request_key", "sha256 over canonical JSON of everything that can change the answer.")
RUBRIC_ID = text("rubric_id", "The rubric's id.")
RUBRIC_VERSION = text("rubric_version", "The rubric's declared version.")
RUBRIC_DIGEST = digest(
    "rubric_digest", "sha256 over rubric.toml and the prompts and example pictures that it names; changing one byte changes it."
)
JUDGE_MODEL = text("judge_model", "The judge's name, or else its model.")
REPEAT = count("repeat", "Number of the repeat, from 0.")
OCCASION = text(
    "occasion", "Normally empty. The date for anchors, which are judged again every night; `exam` for twins with planted faults."
)
PROMPT_ID = digest("prompt_id", "The independent unit, normally the prompt: sha256 of its values in the rubric's `unit` columns.")
VARIANT = text(
    "variant", "The category whose prompt was used, if the rubric has a prompt for each category; otherwise null.", null=True
)
ITEMS_JSON = text(
    "items_json",
    "For a sample with several items: a JSON list with each item's request_key, place in that request, id, kinds, weight and "
    "parents. The row's own request_key then identifies this list. If no request is planned, the items it has, without keys "
    "(null where nobody could read them). Null if the sample is one question.",
    null=True,
)
SECOND_SAMPLE_ID = text(
    "second_sample_id",
    "For a pair: the sample shown second (`sample_id` is the one shown first). Null for a single sample.",
    null=True,
)
SECOND_MODEL = text("second_model", "For a pair: the model of the sample shown second. Null for a single sample.", null=True)
SECOND_CHECKPOINT = text(
    "second_checkpoint", "For a pair: the checkpoint of the sample shown second. Null for a single sample.", null=True
)
FIRST_LOOK = count("first_look", "The look before which it is asked, from 1; null if the run has no looks.", null=True)
LOOK = count("look", "The look at which asking ended, from 1; null if the run has no looks.", null=True)
N_LOOKS = count("n_looks", "Number of looks planned; null if the run has no looks.", null=True)
ITEM = text("item", "Id of the item within its sample or request; empty if the score is for the whole.", null=True)
JUDGEMENT_STATUS = text("status", "What the plan decided for the sample.", values=JudgementStatus)
REASON = text("reason", "Why a score, figure, interval or rank is missing; otherwise null.", null=True)
PARAMETERS_JSON = text("parameters_json", "The judge's sampling parameters, as canonical JSON.")
MESSAGES_JSON = text(
    "messages_json",
    "The rendered messages as canonical JSON, with images as digests; null if only recorded replies are used.",
    null=True,
)
FACTS_JSON = text("facts_json", "What the rubric's rules look at (nulls, word counts, values), as canonical JSON.")
N_OUTPUT_TOKENS_EXPECTED = count(
    "n_output_tokens_expected", "Expected output tokens of a reply, as the rubric declares.", unit="tokens"
)

# --- what came back ---------------------------------------------------------------------------------------------
ASK_INDEX = count("ask_index", "0 for the first ask, 1 for the one re-ask after an unreadable reply.")
REPLY_STATUS = text("status", "How the ask ended.", values=ReplyStatus)
REPLY_TEXT = text("reply_text", "The reply, verbatim.", null=True)
FINISH_REASON = text("finish_reason", "Why the reply ended, in the provider's word.", null=True)
REPLY_SHA256 = digest(
    "reply_sha256",
    "sha256 of the judge's reply and its request, taken on arrival; null for replies older than this column.",
    null=True,
)
REFUSAL_TEXT = text("refusal_text", "The provider's refusal field.", null=True)
ERROR_DETAIL = text("error_detail", "The provider's error in one line, with secrets removed.", null=True)
ANSWERED_MODEL = text("answered_model", "The model that answered, as the provider reports it.", null=True)
N_INPUT_TOKENS = count("n_input_tokens", "Input tokens billed by the provider.", null=True, unit="tokens")
N_OUTPUT_TOKENS = count("n_output_tokens", "Output tokens billed by the provider.", null=True, unit="tokens")
N_CACHED_TOKENS = count(
    "n_cached_tokens", "Input tokens billed at the provider's reduced price for a cached prefix.", null=True, unit="tokens"
)
LOGPROBS_JSON = text(
    "logprobs_json", "The reply's token log-probabilities as the provider returned them; null if not requested.", null=True
)
COST_USD = number("cost_usd", "Cost of the reply; null if the price is unknown.", unit="USD", low=0)
LATENCY_S = number("latency_s", "Time from sending the request to the last byte of the reply.", unit="s", low=0)
N_ATTEMPTS = count("n_attempts", "Attempts sent for this ask.")
RECEIVED_AT = Field("received_at", UTC_TIMESTAMP, "When the reply was stored.", is_nullable=True)
ORIGIN = text("origin", "Where the reply came from.", null=True, values=ReplyOrigin)

# --- what was read ----------------------------------------------------------------------------------------------
DIMENSION = text("dimension", "The dimension's key in its rubric.")
SCORE = number("score", "The judge's score; null if the reply gave none or it could not be read.")
SCORE_STATUS = text("status", "Whether the dimension has a score, and if not, what happened.", values=ScoreStatus)
NOTE = text("note", "What the judge wrote beside the score or all scores of a reply; tags are spaces.", null=True)
SCORE_SPAN = text(
    "score_span",
    "Position of the score in reply_text, as JSON: [start, end] in characters from 0, end excluded. Null without a score, and "
    "for derived figures.",
    null=True,
)
ASK_INDEX_READ = Field("ask_index", pa.int64(), "The ask from whose reply the score was read.", is_nullable=True, minimum=0)
BOUND_LOW = number("bound_low", "The lowest value this score can have had (the score itself if scored).", null=False)
BOUND_HIGH = number("bound_high", "The highest value this score can have had (the score itself if scored).", null=False)
IS_IN_RANGE = flag("is_in_range", "Whether the score lies on the rubric's scale; null without a score.", null=True)
IS_ON_STEP = flag("is_on_step", "Whether the score falls on a step of the scale; null without a score.", null=True)
IS_RULE_KEPT = flag("is_rule_kept", "Whether the score breaks no declared rule; null without a score.", null=True)

# --- data checks ------------------------------------------------------------------------------------------------
PUBLISHED = digest("publication_id", "Id of the publication: sha256 over its inputs.")
CHECK = text("check", "Name of the data check: table.column.expectation.")
CHECK_STATUS = text("status", "Whether the check passed.", values=CheckStatus)
SEVERITY = text("severity", "What a failed check does.", values=CheckSeverity)
N_CHECKED = count("n_checked", "Rows that the check looked at.")
N_FAILING = count("n_failing", "Rows that failed the check, also where so many may and it passed.")
FAILING_KEYS_JSON = text("failing_keys_json", "Keys of the failing rows (the first thousand), as a JSON list.", null=True)
TABLE_NAME = text("table_name", "The table that contains the quarantined row.")
ROW_KEY_JSON = text("row_key_json", "Key of that row, as canonical JSON.")

# --- published cells --------------------------------------------------------------------------------------------
CELL_ID = text("cell_id", "Id of the cell (12 hexadecimal characters), for `salon explain`.")
RUN_DATE = Field("run_date", pa.date32(), "The run's logical date.")
BENCHMARK = text("benchmark", "Name of the benchmark.")
CELL_CATEGORY = text("category", "The category, `__macro__` (mean over categories) or `__micro__` (mean over images).")
METRIC = text("metric", "What is estimated: `mean`, or `share_at_least_K`, the share of scores of K or more.")
ESTIMAND = text("estimand", "The population of prompts that the figure is about.", values=Estimand)
ESTIMATE = number("estimate", "The figure; if null, `reason` says why.")
SE = number("se", "Standard error of the estimate, with prompts as clusters.", low=0)
CI_LOW = number("ci_low", "Lower end of the estimate's confidence interval.")
CI_HIGH = number("ci_high", "Upper end of the estimate's confidence interval.")
CI_LEVEL = number("ci_level", "Nominal confidence level.", null=False, low=0, high=1)
CI_METHOD = text("ci_method", "How the interval is computed.", null=True)
DF = number("df", "Degrees of freedom of the interval.", low=0)
SCALE_LOW = number("scale_low", "Lower end of the scale.", null=False)
SCALE_HIGH = number("scale_high", "Upper end of the scale.", null=False)
N_PROMPTS = count("n_prompts", "Prompts with at least one score.")
N_IMAGES = count("n_images", "Samples with at least one score; in a kind of items: items with at least one score.")
N_JUDGEMENTS = count("n_judgements", "Judgements in the cell, scored or not; in a kind of items: one for each item.")
N_SCORED = count("n_scored", "Judgements with a score that counts.")
N_FAILED = count("n_failed", "Judgements without a score that counts (failures).")
N_NOT_APPLICABLE = count("n_not_applicable", "").or_null(
    "Judgements to which the dimension does not apply (the reply says so in a declared word), and items whose parent failed. No "
    "other column counts them."
)
N_RULE_VIOLATIONS = count("n_rule_violations", "Readable scores that a declared rule forbids; n_failed includes them.")
WHY_NO_SCORE = text("reason", "Why these judgements have no score that counts.")
N_FAILED_SO = count("n_failed", "Number of judgements that failed for this reason.")
FAIL_RATE = share("fail_rate", "n_failed / n_judgements; null without judgements.")
COVERAGE = share("coverage", "Share of judgements with a score that counts; null without judgements.")
COVERAGE_FLOOR = share("coverage_floor", "The benchmark's minimum coverage; below it the cell is blocked.", null=False)
CELL_BOUND_LOW = number("bound_low", "The mean if every failure had the lowest score it can have had.")
CELL_BOUND_HIGH = number("bound_high", "The mean if every failure had the highest score it can have had.")
CELL_BOUND_CI_LOW = number(
    "bound_ci_low",
    "Lower end of bound_low's confidence interval, or ci_low if that is lower. Null for `these_prompts`.",
)
CELL_BOUND_CI_HIGH = number(
    "bound_ci_high",
    "Upper end of bound_high's confidence interval, or ci_high if that is higher. Null for `these_prompts`.",
)
DESIGN_EFFECT = number(
    "design_effect", "Variance with prompts as clusters, divided by the variance of as many independent images.", low=0
)
CELL_STATUS = text("status", "Whether estimate and interval exist.", values=CellStatus)

# --- distributions, health --------------------------------------------------------------------------------------
SCORE_FROM = number("score_from", "Lower end of the step, inclusive.", null=False)
SCORE_BELOW = number("score_below", "Upper end of the step, exclusive; null for the highest step.")
SHARE = share("share", "Share of the scores in this step, weighted as in the mean.", null=False)
SHARE_AT_LEAST = share("share_at_least", "Share of the scores that are score_from or more.", null=False)
SHARE_CI_LOW = share("ci_low", "Lower end of share_at_least's confidence interval.")
SHARE_CI_HIGH = share("ci_high", "Upper end of share_at_least's confidence interval.")
N_SCORES = count("n_scores", "Judgements with a score in this step.")
MEASURE = text("measure", "What is measured.", values=HealthMeasure)
WORD = text(
    "word", "What the measure is split by: a reason, status, quantile, model or provider's message. Empty if it is not split."
)
VALUE = number("value", "The measured value; null if no reply reports it.")
N_KNOWN = count("n_known", "Asks or judgements that the value is taken over.")

# --- runs -------------------------------------------------------------------------------------------------------
STARTED_AT = Field("started_at", UTC_TIMESTAMP, "When the run started.")
FINISHED_AT = Field("finished_at", UTC_TIMESTAMP, "When the run finished.")
PUBLICATION_ID = digest("publication_id", "The publication that the run made or found; null if it made none.", null=True)
OUTCOME = text(
    "outcome",
    "`published` and `unchanged`, also with blocked cells or held back from being current; `blocked`: a data check failed and "
    "nothing was published; `stopped`: it ended earlier, by an error, killed or told to stop; or `judged`: an exam, a probe "
    "or a bridge, which publish nothing.",
)
N_REQUESTS = count(
    "n_requests", "Distinct requests in the plan; where adaptive asking stopped early, those that the run came to."
)
N_CACHED = count("n_cached", "Requests whose reply was already stored (cache hits).")
N_ASKED = count("n_asked", "Attempts sent in this run, including retries and re-asks.")
N_SAMPLES = count("n_samples", "Samples in the dataset.")
N_SAMPLES_OK = count("n_samples_ok", "Usable samples.")
RUN_USD = number("cost_usd", "Cost of the run's replies whose price is known; null if there is none.", unit="USD", low=0)
RUN_BY = text(
    "asked_by",
    "The command: `backfill`, `nightly`, `run`, `exam`, `probe-injection` or `anchors bridge`. Null in rows older than this "
    "column.",
    null=True,
)
IS_AT_LEAST = flag(
    "is_at_least",
    "Whether the provider may have billed more than the tokens and cost say: attempts that were sent ended without a reply, or "
    "are still with its Batch API (the run that fetches them has their cost), a reply reported no tokens or has no known price, "
    "or the ledger was unavailable at the end and others may have bought more. Null in rows older than this column.",
    null=True,
)
CODE_VERSION = digest("code_version", "sha256 over Salon's own source files.")
