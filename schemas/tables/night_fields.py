"""Columns of the tables about nights and the judge itself: series, drift, bridges, reliability. The rest is in fields.py."""

import pyarrow as pa

from schemas.benchmark.exam import PlantedFault, Sight
from schemas.statuses.nights import DriftVerdict
from schemas.tables import fields as f
from schemas.tables.field import Field, count, number, text

# --- the series of nights ---------------------------------------------------------------------------------------
MEASURED_BY = Field("measured_by", pa.string(), "The judge that was asked; not judge_model where a bridge joins an old series.")
BRIDGE_SE = number("bridge_se", "What the bridge adds to se; 0 where judge_model was asked itself.", null=False, low=0)
ANCHOR_SET = Field("anchor_set", pa.string(), "sha256 over the sorted sample ids of the frozen anchors.", is_nullable=True)
ANCHOR_ESTIMATE = number(
    "anchor_estimate",
    "The mean of the frozen anchors, asked anew this night; where some have no score, their mean on the baseline's nights plus "
    "what the others moved by.",
)
ANCHOR_SE = number("anchor_se", "Its prompt-clustered standard error.", low=0)
N_ANCHORS_FAILED = count(
    "n_anchors_failed",
    "Judgements of the anchors without a score this night; null without anchors.",
    null=True,
)
ANCHOR_BRIDGE_SE = number("anchor_bridge_se", "What the bridge adds to anchor_se.", null=False, low=0)
SCALE_WIDTH = number("scale_width", "Highest less lowest possible score.", null=False, low=0)

# --- drift ------------------------------------------------------------------------------------------------------
N_BASELINE = count(
    "n_baseline", "Nights of the baseline; the limits begin when the first are whole, and it grows with quiet nights."
)
BASELINE_MEAN = number("baseline_mean", "Mean of the baseline's nights, outliers bounded.")
BASELINE_SD = number(
    "baseline_sd",
    "Standard deviation between the baseline's nights, outliers bounded (at least the floor of docs/nights.md).",
    low=0,
)
BASELINE_AUTOCORRELATION = number(
    "baseline_autocorrelation", "How far a night of the baseline goes with the one before it; never below 0.", low=0, high=1
)
EWMA = number("ewma", "Exponentially weighted mean of the nights since the baseline.")
LIMIT_LOW = number("limit_low", "Lower control limit of the night: an ewma below it is an alarm.")
LIMIT_HIGH = number("limit_high", "Upper control limit of the night.")
ANCHOR_EWMA = number("anchor_ewma", "The same average over the anchors.")
ANCHOR_LIMIT_LOW = number("anchor_limit_low", "Lower control limit of the anchors.")
ANCHOR_LIMIT_HIGH = number("anchor_limit_high", "Upper control limit of the anchors.")
ALPHA = number("alpha", "Probability of a false alarm of this series on this night.", low=0, high=1)
ALPHA_SPENT = number("alpha_spent", "Sum of alpha since the limits began: false alarms to be expected by now.", low=0)
N_FAMILY = count("n_family", "Series under watch this night, anchors included: they share the false alarms allowed.")
ANCHOR_P = number("anchor_p", "p of no change on the anchors, for the verdict; not corrected.", low=0, high=1)
DIFFERENCE_P = number("difference_p", "p of no change in model less anchors, for the verdict; not corrected.", low=0, high=1)
IS_ALARM = Field("is_alarm", pa.bool_(), "The series or its anchors are beyond their limits this night.")
VERDICT = Field("verdict", pa.string(), "What changed.", values=DriftVerdict)
CHANGED_ON = Field(
    "changed_on",
    pa.date32(),
    "Most likely first night of the change: of the anchors where the verdict is judge, of model less anchors where it is model.",
    is_nullable=True,
)
SHIFT = number("shift", "Mean since changed_on less the mean before it.")
SHIFT_SE = number("shift_se", "Its standard error from the spread between nights.", low=0)

# --- bridges ----------------------------------------------------------------------------------------------------
JUDGE_OLD = Field("judge_old", pa.string(), "The judge that is replaced.")
JUDGE_NEW = Field("judge_new", pa.string(), "The judge that replaces it.")
BRIDGE_KIND = Field("bridge_kind", pa.string(), "'offset', or 'line' where a slope was declared.")
CENTRE_OLD = number("centre_old", "The old judge's mean over the common set.")
OFFSET = number("offset", "New judge's mean over the common set less the old one's.")
OFFSET_SE = number("offset_se", "Standard error of the offset at the centre.", low=0)
SLOPE = number("slope", "New judge's points for one point of the old; 1 for an offset.")
SLOPE_SE = number("slope_se", "Its standard error; 0 for an offset.", low=0)
OFFSET_SLOPE_COV = number("offset_slope_cov", "Covariance of offset and slope; 0 for an offset.")

# --- the judge itself -------------------------------------------------------------------------------------------
N_SCORES = count("n_scores", "Scores that count, repeats one by one.")
VAR_PROMPT = number("var_prompt", "Variance between prompts of a category; null where it cannot be told apart.", low=0)
VAR_IMAGE = number("var_image", "Variance between images of a prompt; null where it cannot be told apart.", low=0)
VAR_JUDGE = number("var_judge", "Variance between repeats of one image; null without repeats.", low=0)
VAR_IMAGE_JUDGE = number("var_image_judge", "var_image + var_judge: known also without repeats.", low=0)
N_TRUNCATED = count("n_truncated", "Components whose estimate was negative and is shown as 0.")
ICC = number("icc", "Share of the variance between images that a second asking would show again (one repeat).", low=0, high=1)
ICC_LOW = number("icc_low", "Lower end of its interval.", low=0, high=1)
ICC_HIGH = number("icc_high", "Upper end of its interval.", low=0, high=1)
RELIABILITY = number(
    "reliability", "The same for the mean of the repeats at hand: the generalisability coefficient.", low=0, high=1
)
N_REPEATS_MEAN = number("n_repeats_mean", "Harmonic mean of the repeats of an image.", low=0)
IS_AT_HAND = Field("is_at_hand", pa.bool_(), "The design the scores came from; the others are what could be bought instead.")
N_PROMPTS_PLANNED = count("n_prompts", "Prompts of the design.")
N_IMAGES_PLANNED = count("n_images_per_prompt", "Images of each prompt.")
N_REPEATS_PLANNED = count("n_repeats", "Times each image is judged.")
COST_RATIO = number("cost_ratio", "Judgements of the design over those at hand.", null=False, low=0)
SE_CLAIMS = number("se_prompts_like_these", "Predicted standard error of the macro mean for prompts like these.", low=0)
SE_TRENDS = number("se_these_prompts", "Predicted standard error for these prompts: what moves from night to night.", low=0)
JUDGE_A = Field("judge_a", pa.string(), "A judge, or `__jury__` for all of them together.")
JUDGE_B = Field("judge_b", pa.string(), "The judge it is held against; `__jury__` for all of them together.")
JURY_METRIC = Field("metric", pa.string(), "What is computed: docs/nights.md.")
N_JUDGES = count("n_judges", "Judges compared.")
N_ITEMS = count("n_items", "Samples that every one of them scored.")
NIGHT_STATUS = Field("status", pa.string(), "'ok', or 'null' where the reason says why there is no figure.")

# --- the judge's exam -------------------------------------------------------------------------------------------


def _share(name: str, about: str, low: float = 0.0) -> Field:
    return number(name, about, low=low, high=1)


EXAM = (
    text("exam_id", "First 12 hexadecimal characters of the row's address; what `salon explain` takes."), f.PUBLISHED, f.RUN_DATE,
    f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.JUDGE_MODEL, f.DIMENSION,
    text("fault", "What was planted.", values=PlantedFault),
    Field("is_meant", pa.bool_(), "Whether the dimension is to notice it; null where nothing says so.", is_nullable=True),
    count("n_samples", "Samples (times repeats) with a score untouched, of the harmless twin and of the faulted one."),
    count("n_prompts", "Their prompts: the units of the intervals."),
    count("n_lost", "Samples whose faulted twin has no score, while the untouched sample and its harmless twin have one."),
    count("n_no_room", "Samples left out because their untouched score is less than a step above the scale's end."),
    _share("noticed", "Share of faulted twins scored at least a step below the untouched sample."),
    _share("noticed_low", "Lower end of its interval."), _share("noticed_high", "Upper end of it."),
    _share("false_notices", "The same share of their harmless twins: what the judge's noise alone does."),
    _share("false_notices_low", "Lower end of its interval."), _share("false_notices_high", "Upper end of it."),
    _share("net", "noticed less false_notices.", -1), _share("net_low", "Lower end of its interval.", -1),
    _share("net_high", "Upper end of it.", -1),
    _share("net_low_adjusted", "Lower end of the interval that is corrected for the number of rows in the family.", -1),
    _share("net_high_adjusted", "Upper end of it.", -1), f.CI_LEVEL, f.CI_METHOD,
    number("drop", "Mean score of the harmless twins less that of the faulted ones, in the dimension's own points."),
    number("drop_low", "Lower end of its interval."), number("drop_high", "Upper end of it."),
    number("step", "How far a score has to fall to be a notice.", null=False, low=0), f.SCALE_LOW, f.SCALE_HIGH,
    number("floor", "The share that is to be noticed: exam.floor of the benchmark file.", null=False, low=0, high=1),
    text("verdict", "What follows from the corrected interval and the floor; null where there is none.", null=True, values=Sight),
    text("family", "What is corrected together: `exam`, or of faults a dimension is not meant for `exam, other`."),
    count("n_family", "Rows of the family with an interval."), f.REASON,
)  # fmt: skip
EXAM_KEY = ("rubric_id", "judge_model", "dimension", "fault")
