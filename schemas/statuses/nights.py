"""What drift, jury and reliability say of a night and its judges, or why they say nothing: closed lists."""

from enum import StrEnum


class DriftVerdict(StrEnum):
    """What a night's alarm is blamed on."""

    QUIET = "quiet"  # within the limits
    MODEL = "model"  # the model's scores moved, and not with the anchors
    JUDGE = "judge"  # the anchors moved, and the model's scores no otherwise than they
    BOTH = "both"  # the anchors moved, and the model's scores otherwise than they
    UNKNOWN = "unknown"  # no verdict; the reason says why


class DriftReason(StrEnum):
    """Why a night has no verdict, where no word of the cell says it."""

    BASELINE_INCOMPLETE = "baseline_incomplete"  # fewer nights than the baseline needs
    NOTHING_NEW = "nothing_new"  # the same checkpoint with the same replies: no new observation
    SEVERAL_CHECKPOINTS = "several_checkpoints"  # the night holds several checkpoints of the model: which one is the series?
    NO_ANCHOR = "no_anchor"  # an alarm, and no anchors were asked this night
    ANCHOR_BASELINE_INCOMPLETE = "anchor_baseline_incomplete"  # an alarm, and too few nights of these anchors
    CANNOT_SEPARATE = "cannot_separate"  # an alarm that the anchors neither show nor rule out: too few anchors


class JuryMetric(StrEnum):
    """How several judges are compared at once; two of them also by the words of AgreementMetric."""

    ICC_AGREEMENT = "icc_agreement"  # one judge's scores stand for another's, level included: ICC(2,1), ICC(A,1)
    ICC_AGREEMENT_MEAN = "icc_agreement_mean"  # the same for the mean of all judges at hand: ICC(2,k), ICC(A,k)
    ICC_CONSISTENCY = "icc_consistency"  # one judge's scores stand for another's, level apart: ICC(3,1), ICC(C,1)
    ICC_CONSISTENCY_MEAN = "icc_consistency_mean"  # the same for the mean of all judges at hand: ICC(3,k), ICC(C,k)


class ReliabilityReason(StrEnum):
    """Why a figure about the judge itself does not exist."""

    NO_REPEATS = "no_repeats"  # every image was judged once: judge and image cannot be told apart
    ONE_IMAGE_PER_PROMPT = "one_image_per_prompt"  # image and prompt cannot be told apart
    TOO_FEW_PROMPTS = "too_few_prompts"  # no category has two prompts
    NO_VARIATION = "no_variation"  # every score is the same
    ONE_JUDGE = "one_judge"  # agreement needs two judges
    TOO_FEW_ITEMS = "too_few_items"  # fewer than two samples that every judge scored
