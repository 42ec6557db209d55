"""All verdicts and reasons of drift, jury and reliability."""

from enum import StrEnum

N_BASELINE = 30
"""Nights that a series needs before it has limits."""


class DriftVerdict(StrEnum):
    """What a night's alarm is attributed to."""

    QUIET = "quiet"  # within the limits
    MODEL = "model"  # the model's scores moved, but not along with the anchors
    JUDGE = "judge"  # the anchors moved, and the model's scores moved alike
    BOTH = "both"  # the anchors moved, and the model's scores moved differently
    UNKNOWN = "unknown"  # no verdict; the reason says why


class DriftReason(StrEnum):
    """Why a night has no verdict, if the cell's own reason does not say it."""

    BASELINE_INCOMPLETE = "baseline_incomplete"  # fewer nights than the baseline needs
    NOTHING_NEW = "nothing_new"  # the same checkpoint with the same replies: no new observation
    SEVERAL_CHECKPOINTS = "several_checkpoints"  # the night has several checkpoints of the model; Salon does not choose one
    NO_ANCHOR = "no_anchor"  # an alarm, but no anchors were asked this night, or too few were scored
    ANCHOR_BASELINE_INCOMPLETE = "anchor_baseline_incomplete"  # an alarm, but too few nights of these anchors
    CANNOT_SEPARATE = "cannot_separate"  # an alarm that the anchors neither show nor rule out: too few or too noisy anchors


class JuryMetric(StrEnum):
    """How all judges are compared at once. Two judges are compared by values of AgreementMetric."""

    ICC_AGREEMENT = "icc_agreement"  # how well one judge's scores stand for another's, level included: ICC(2,1), ICC(A,1)
    ICC_AGREEMENT_MEAN = "icc_agreement_mean"  # the same for the mean of all judges: ICC(2,k), ICC(A,k)
    ICC_CONSISTENCY = "icc_consistency"  # how well one judge's scores stand for another's, level ignored: ICC(3,1), ICC(C,1)
    ICC_CONSISTENCY_MEAN = "icc_consistency_mean"  # the same for the mean of all judges: ICC(3,k), ICC(C,k)


class ReliabilityReason(StrEnum):
    """Why a figure about the judge itself is missing."""

    NO_REPEATS = "no_repeats"  # every image was judged once, so judge and image cannot be separated
    ONE_IMAGE_PER_PROMPT = "one_image_per_prompt"  # image and prompt cannot be separated
    TOO_FEW_PROMPTS = "too_few_prompts"  # no category has two prompts
    NO_VARIATION = "no_variation"  # every score is the same
    ONE_JUDGE = "one_judge"  # agreement needs two judges
    TOO_FEW_ITEMS = "too_few_items"  # fewer than two samples that every judge scored
