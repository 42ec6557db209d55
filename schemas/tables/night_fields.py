"""Columns about nights and the judge itself: series, drift, partitions, bridges, reliability. Others: fields.py."""

import pyarrow as pa

from schemas.benchmark.exam import PlantedFault, Sight
from schemas.statuses.nights import DriftVerdict
from schemas.tables import fields as f
from schemas.tables.field import UTC_TIMESTAMP, Field, count, digest, flag, number, share, text

# --- the series of nights ---------------------------------------------------------------------------------------
MEASURED_BY = Field(
    "measured_by", pa.string(), "The judge that was asked; differs from judge_model if a bridge joins an old series."
)
BRIDGE_SE = number("bridge_se", "The bridge's part of se; 0 if judge_model itself was asked.", null=False, low=0)
ANCHOR_SET = Field("anchor_set", pa.string(), "sha256 over the sorted sample ids of the frozen anchors.", is_nullable=True)
ANCHOR_ESTIMATE = number(
    "anchor_estimate",
    "Mean of the frozen anchors, judged again this night. If some have no score: the anchors' mean level plus how far the scored "
    "ones lie from their own levels; null if too few have one.",
)
ANCHOR_SE = number("anchor_se", "Standard error of anchor_estimate, with prompts as clusters.", low=0)
N_ANCHORS_FAILED = count(
    "n_anchors_failed",
    "Anchor judgements without a score this night; null without anchors.",
    null=True,
)
ANCHOR_BRIDGE_SE = number("anchor_bridge_se", "The bridge's part of anchor_se.", null=False, low=0)
SCALE_WIDTH = number("scale_width", "Highest minus lowest possible score.", null=False, low=0)

# --- drift ------------------------------------------------------------------------------------------------------
N_BASELINE = count(
    "n_baseline", "Nights in the baseline. Limits begin once it is complete; it then grows while nights are quiet."
)
BASELINE_MEAN = number("baseline_mean", "Mean of the baseline's nights, with outliers clipped.")
BASELINE_SD = number(
    "baseline_sd",
    "Standard deviation between the baseline's nights, with outliers clipped (at least the minimum in docs/nights.md).",
    low=0,
)
BASELINE_AUTOCORRELATION = number(
    "baseline_autocorrelation", "Correlation of a baseline night with the night before (lag one), at least 0.", low=0, high=1
)
EWMA = number("ewma", "Exponentially weighted moving average of the nights since the baseline.")
LIMIT_LOW = number("limit_low", "Lower control limit of the night; an ewma below it is an alarm.")
LIMIT_HIGH = number("limit_high", "Upper control limit of the night; an ewma above it is an alarm.")
ANCHOR_EWMA = number("anchor_ewma", "Exponentially weighted moving average of the anchors.")
ANCHOR_LIMIT_LOW = number("anchor_limit_low", "Lower control limit of anchor_ewma.")
ANCHOR_LIMIT_HIGH = number("anchor_limit_high", "Upper control limit of anchor_ewma.")
ALPHA = number("alpha", "Probability of a false alarm in this series on this night, without its anchors.", low=0, high=1)
ALPHA_SPENT = number(
    "alpha_spent",
    "Sum of alpha and the anchors' own alpha since limits began: the expected number of false alarms so far.",
    low=0,
)
N_FAMILY = count("n_family", "Series watched this night, including anchors; they share the allowed false alarms.")
ANCHOR_P = number("anchor_p", "p-value for no change of the anchors (for the verdict, uncorrected).", low=0, high=1)
DIFFERENCE_P = number(
    "difference_p", "p-value for no change of model minus anchors (for the verdict, uncorrected).", low=0, high=1
)
IS_ALARM = flag("is_alarm", "Whether the series or its anchors are beyond their limits this night.")
VERDICT = Field("verdict", pa.string(), "What the alarm is attributed to.", values=DriftVerdict)
CHANGED_ON = Field(
    "changed_on",
    pa.date32(),
    "Most likely first night of the change: in the anchors if the verdict is `judge`, in model minus anchors if it is `model`, "
    "otherwise in the model's own series. Null without an alarm.",
    is_nullable=True,
)
SHIFT = number("shift", "Mean since changed_on minus the mean before it.")
SHIFT_SE = number("shift_se", "Standard error of shift, from the spread between nights.", low=0)

# --- partitions -------------------------------------------------------------------------------------------------
PARTITION_ID = digest("partition_id", "sha256 over benchmark, checkpoint, dataset, rubric and the digests of rubric and judge.")
PARTITION_DATASET_ID = digest("dataset_id", "sha256 over the sorted sample ids of the checkpoint alone.")
JUDGE_DIGEST = digest(
    "judge_digest",
    "sha256 over the judge's model, parameters, repeats, share, deployment, structured output and how it is shown pictures.",
)
SOURCES_JSON = text("sources_json", "The sources that have samples of the checkpoint, as a JSON list.")
PARTITION_STATE = text("state", "`planned`, `running`, `done` or `failed`, as last written.")
N_LEFT = count("n_left", "Requests without a final reply.")
ONLINE_USD = number("online_usd", "What the remaining requests would cost one by one, as of the last preview.", unit="USD", low=0)
BATCH_USD = number(
    "batch_usd", "What the remaining requests would cost by the Batch API, as of the last preview.", unit="USD", low=0
)
ASKED_BY = text("asked_by", "The command: `backfill`, `nightly` or `run`.")
PARTITION_DETAIL = text("detail", "Why the partition failed or is not done; otherwise null.", null=True)
CHANGED_AT = Field("changed_at", UTC_TIMESTAMP, "When the row was written.")
OWNER_HOST = text("host", "Host of the process that wrote the row; null if processes cannot be looked up.", null=True)
OWNER_PID = count("pid", "Process id of that process.")
OWNER_STARTED = text("process_started", "Start time of that process, in the host's own ticks.")

# --- bridges ----------------------------------------------------------------------------------------------------
JUDGE_OLD = Field("judge_old", pa.string(), "The judge that was replaced.")
JUDGE_NEW = Field("judge_new", pa.string(), "The judge that replaced it.")
BRIDGE_KIND = Field("bridge_kind", pa.string(), "`offset`, or `line` if a slope was declared.")
CENTRE_OLD = number("centre_old", "Mean of the old judge over the common set.")
OFFSET = number("offset", "Mean of the new judge over the common set minus that of the old judge.")
OFFSET_SE = number("offset_se", "Standard error of offset, at centre_old.", low=0)
SLOPE = number("slope", "Points of the new judge for one point of the old judge; 1 for `offset`.")
SLOPE_SE = number("slope_se", "Standard error of slope; 0 for `offset`.", low=0)
OFFSET_SLOPE_COV = number("offset_slope_cov", "Covariance of offset and slope; 0 for `offset`.")

# --- the judge itself -------------------------------------------------------------------------------------------
N_SCORES = count("n_scores", "Scores that count, with each repeat counted.")
VAR_PROMPT = number("var_prompt", "Variance between prompts of a category; null if the design cannot separate it.", low=0)
VAR_IMAGE = number("var_image", "Variance between images of a prompt; null if the design cannot separate it.", low=0)
VAR_JUDGE = number("var_judge", "Variance between repeats of one image; null without repeats.", low=0)
VAR_IMAGE_JUDGE = number("var_image_judge", "var_image + var_judge; also known without repeats.", low=0)
N_TRUNCATED = count("n_truncated", "Variance components with a negative estimate, shown as 0.")
ICC = share("icc", "Share of the variance between images that asking once more would reproduce.")
ICC_LOW = share("icc_low", "Lower end of icc's interval.")
ICC_HIGH = share("icc_high", "Upper end of icc's interval.")
RELIABILITY = share("reliability", "icc for the mean of the existing repeats: the generalizability coefficient.")
N_REPEATS_MEAN = number("n_repeats_mean", "Harmonic mean of the repeats per image.", low=0)
IS_AT_HAND = flag("is_at_hand", "Whether this is the design of the existing scores; the other rows are alternatives.")
N_PROMPTS_PLANNED = count("n_prompts", "Prompts in the design.")
N_IMAGES_PLANNED = count("n_images_per_prompt", "Images per prompt; of the existing scores rounded.")
N_REPEATS_PLANNED = count("n_repeats", "Judgements per image; of the existing scores rounded.")
COST_RATIO = number("cost_ratio", "Judgements of the design divided by the existing scores.", null=False, low=0)
SE_CLAIMS = number("se_prompts_like_these", "Predicted standard error of the `__macro__` mean for prompts like these.", low=0)
SE_TRENDS = number(
    "se_these_prompts", "Predicted standard error of the `__macro__` mean for these prompts (what varies between nights).", low=0
)
JUDGE_A = Field("judge_a", pa.string(), "A judge, or `__jury__` for all judges together.")
JUDGE_B = Field("judge_b", pa.string(), "The judge that it is compared with, or `__jury__`.")
JURY_METRIC = Field(
    "metric",
    pa.string(),
    "The figure, as defined in docs/nights.md (JuryMetric or AgreementMetric); `quadratic_kappa` here is of numbers, also of "
    "means of repeats, which are no labels.",
)
N_JUDGES = count("n_judges", "Number of judges.")
N_ITEMS = count("n_items", "Samples that all of them scored (for the alpha of `__jury__`, at least two).")
NIGHT_STATUS = Field("status", pa.string(), "`ok`, or `null` if there is no figure; then `reason` says why.")

# --- the judge's exam -------------------------------------------------------------------------------------------
EXAM = (
    text("exam_id", "Id of the row (12 hexadecimal characters), for `salon explain`."), f.PUBLISHED, f.RUN_DATE,
    f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.DIMENSION,
    text("fault", "The fault that was planted.", values=PlantedFault),
    flag("is_meant", "Whether the dimension should notice the fault; null if not declared.", null=True),
    count("n_samples", "Samples (times repeats) that count: sample, harmless twin and faulted twin all have a score."),
    count("n_prompts", "Prompts of those samples (the units of the intervals)."),
    count("n_lost", "Samples whose faulted twin has no score, although the sample and its harmless twin have one."),
    count("n_no_room", "Samples left out because their own score is less than a step above the scale's lower end."),
    share("noticed", "Share of faulted twins that score at least a step below their sample."),
    share("noticed_low", "Lower end of noticed's interval."), share("noticed_high", "Upper end of noticed's interval."),
    share("false_notices", "Share of harmless twins that do the same: the judge's noise."),
    share("false_notices_low", "Lower end of false_notices' interval."),
    share("false_notices_high", "Upper end of false_notices' interval."),
    share("net", "noticed minus false_notices.", low=-1), share("net_low", "Lower end of net's interval.", low=-1),
    share("net_high", "Upper end of net's interval.", low=-1),
    share("net_low_adjusted", "Lower end of net's interval, corrected for the rows of the family.", low=-1),
    share("net_high_adjusted", "Upper end of net's corrected interval.", low=-1), f.CI_LEVEL, f.CI_METHOD,
    number("drop", "Mean score of the harmless twins minus that of the faulted ones, in points of the dimension."),
    number("drop_low", "Lower end of drop's interval."), number("drop_high", "Upper end of drop's interval."),
    number("step", "How far a score must fall to count as noticed.", null=False, low=0), f.SCALE_LOW, f.SCALE_HIGH,
    share("floor", "Share that should be noticed: `exam.floor` in the benchmark file.", null=False),
    text("verdict", "Conclusion from the corrected interval and the floor; null without an interval.", null=True, values=Sight),
    text("family", "Rows corrected together: `exam`, or `exam, other` for faults that the dimension is not meant to notice."),
    count("n_family", "Rows in the family that have an interval."), f.REASON,
)  # fmt: skip
EXAM_KEY = ("rubric_id", "judge_model", "dimension", "fault")
