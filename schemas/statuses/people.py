"""Who is held against whom, how, and why a figure is missing, where people have rated: closed lists. Of cells: cells.py."""

from enum import StrEnum


class RatingStatus(StrEnum):
    """What became of one cell of a table of ratings, or of one vote."""

    OK = "ok"  # a number, of one sample, on the declared scale
    MISSING = "missing"  # the cell is empty: this rater did not rate this sample
    BAD_VALUE = "bad_value"  # not a number
    OUT_OF_RANGE = "out_of_range"  # a number off the declared scale
    OFF_STEP = "off_step"  # a number between two steps of the declared scale
    UNMATCHED = "unmatched"  # no sample of the dataset is meant
    AMBIGUOUS = "ambiguous"  # more than one sample could be meant
    DUPLICATE = "duplicate"  # the same number again by the same rater
    CONFLICTING = "conflicting"  # the same rater gave this sample two numbers, or this pair two votes: neither is taken
    UNKNOWN_WORD = "unknown_word"  # of a vote, as the next: a word that [ratings.votes] does not declare
    SAME_SAMPLE = "same_sample"  # both sides are one sample
    SAME_CHECKPOINT = "same_checkpoint"  # both samples are of one checkpoint
    DIFFERENT_PROMPTS = "different_prompts"  # the two samples answer two prompts
    NOT_COMPARED = "not_compared"  # no pair of the benchmark has the sample, or no rubric of pairs the dimension


class Assessor(StrEnum):
    """Who or what gave the numbers that are compared."""

    JUDGE = "judge"  # a judge of the benchmark, by its replies
    METRIC = "metric"  # an automatic metric whose numbers stand beside the ratings
    RATER = "rater"  # one person
    RATERS = "raters"  # all persons together


UNNAMED = "__unnamed__"
"""Stands for a rater whom nothing names, where [ratings] says that nobody knows who rated."""


def unnamed(number: object) -> str:
    """The rater of the so-manieth rating that people without a name gave a sample: not one person over several samples."""
    return f"{UNNAMED[:-2]}_{number}__"


def is_named(rater: str) -> bool:
    """Whether it is one person (or file) in all of its ratings, who can be held against others."""
    return not rater.startswith(UNNAMED[:-2])


class Against(StrEnum):
    """What stands in the columns `subject` and `against` of an agreement where it is no one rater."""

    RATERS_MEAN = "__raters_mean__"  # the mean of the raters who rated the sample
    OTHER_RATERS_MEAN = "__other_raters_mean__"  # the mean of the other raters who rated the sample
    EACH_OTHER = "__each_other__"  # all raters at once, missing cells allowed
    EACH_RATER = "__each_rater__"  # every vote of every rater
    RATERS_MAJORITY = "__raters_majority__"  # the vote that most raters of the pair gave; a tie where no vote leads
    OTHER_RATERS_MAJORITY = "__other_raters_majority__"  # the same of the other raters of the pair


class AgreementMetric(StrEnum):
    """How two assessments of the same samples are compared."""

    QUADRATIC_KAPPA = "quadratic_kappa"  # Cohen's weighted kappa, squared distances on the scale as weights
    LINEAR_KAPPA = "linear_kappa"  # Cohen's weighted kappa, distances on the scale as weights
    COHEN_KAPPA = "cohen_kappa"  # Cohen's kappa without weights: every two labels are as far apart
    KRIPPENDORFF_ALPHA = "krippendorff_alpha"  # Krippendorff's alpha, ordinal
    KRIPPENDORFF_ALPHA_INTERVAL = "krippendorff_alpha_interval"  # by squared distances on the scale
    KRIPPENDORFF_ALPHA_NOMINAL = "krippendorff_alpha_nominal"  # same label or not
    SPEARMAN = "spearman"  # Spearman's rank correlation
    KENDALL_TAU_B = "kendall_tau_b"  # Kendall's tau-b
    PEARSON = "pearson"  # Pearson's correlation
    PAIRWISE_ACCURACY = "pairwise_accuracy"  # share of pairs of samples ordered, or tied, the same way
    BIAS = "bias"  # mean of subject minus against, on the scale
    SYSTEM_KENDALL_TAU = "system_kendall_tau"  # Kendall's tau of the checkpoints' means: +1 for a pair ordered alike, else -1
    SYSTEM_PAIRWISE_ACCURACY = "system_pairwise_accuracy"  # share of pairs of checkpoints whose means are ordered alike
    VOTE_ACCURACY = "vote_accuracy"  # share of pairs of pictures both give the same: a win, a tie, a loss
    VOTE_ACCURACY_WITHOUT_TIES = "vote_accuracy_without_ties"  # the same where neither says tie
    ORDER_DEPENDENT = "order_dependent"  # share of the judged pairs people voted on whose two orders disagree: ties above
    UNJUDGED = "unjudged"  # share of the asked pairs people voted on that have no verdict: not above


class AgreementReason(StrEnum):
    """Why an agreement or a corrected mean lacks its estimate or its interval."""

    NO_SCORES = "no_scores"  # the judge has no score for any rated sample
    NO_RATINGS = "no_ratings"  # no usable rating
    TOO_FEW_ITEMS = "too_few_items"  # fewer than two samples assessed by both
    TOO_FEW_PROMPTS = "too_few_prompts"  # too few prompts for an interval, or for a correction
    TOO_MANY_ITEMS = "too_many_items"  # more samples than are compared pair by pair
    NO_VARIATION = "no_variation"  # one side gives every sample the same number
    SCALE_NOT_DECLARED = "scale_not_declared"  # the two cannot be put on one scale
    NOT_ON_LABELS = "not_on_labels"  # a number that is no label of the scale: kappa is for labels
    OFF_SCALE = "off_scale"  # the corrected mean lies off the scale
    ALL_LABELLED = "all_labelled"  # every prompt has ratings: nothing is left to correct with


MIN_LABELLED = 10
"""Under this many labelled prompts the tuning follows noise: nothing is corrected."""
MIN_IN_STRATUM = 3
"""Two labels of a category are alike by chance too often: differences of nothing are found in 12 % of cases at 5 %."""


class Estimator(StrEnum):
    """How a mean over prompts was made from a judge's scores and people's ratings."""

    JUDGE = "judge"  # the judge's scores of every prompt
    LABELS = "labels"  # people's ratings of the prompts they rated
    PREDICTION_POWERED = "prediction_powered"  # the judge's scores, corrected by the ratings (PPI++)
    JUDGE_ERROR = "judge_error"  # of a comparison: the judge's difference less people's; higher: the judge is kinder to a


class LabelCheck(StrEnum):
    """Whether the labels look like a random part of the prompts, by the judge's scores."""

    RANDOM = "random"  # nothing speaks against it
    CHOSEN_BY_SCORE = "chosen_by_score"  # labelled prompts, or samples, are scored otherwise than the others
    CANNOT_TELL = "cannot_tell"  # every prompt is labelled, or fewer than five are, or are not
