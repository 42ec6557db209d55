"""Human ratings: all values for who is compared with whom, how, and why a figure is missing. Those of cells: cells.py."""

import re
from collections.abc import Iterable
from enum import StrEnum


class RatingStatus(StrEnum):
    """Whether a rating or a vote counts, and if not, why."""

    OK = "ok"  # counts: a number for one sample, on the declared scale
    MISSING = "missing"  # the cell is empty: this rater did not rate this sample
    BAD_VALUE = "bad_value"  # not a number
    OUT_OF_RANGE = "out_of_range"  # a number outside the declared scale
    OFF_STEP = "off_step"  # a number between two steps of the declared scale
    RESERVED_NAME = "reserved_name"  # the rater is called as Salon calls its own rows: `__raters_mean__` and the like
    UNMATCHED = "unmatched"  # no sample of the dataset matches
    AMBIGUOUS = "ambiguous"  # more than one sample matches
    DUPLICATE = "duplicate"  # the same rater gave the same number again
    CONFLICTING = "conflicting"  # the same rater gave this sample two numbers, or this pair two votes; neither counts
    UNKNOWN_WORD = "unknown_word"  # a vote (like the next four): a word that `[ratings.votes]` does not declare
    SAME_SAMPLE = "same_sample"  # both sides are the same sample
    SAME_CHECKPOINT = "same_checkpoint"  # both samples are from the same checkpoint
    DIFFERENT_PROMPTS = "different_prompts"  # the two samples have different prompts
    NOT_COMPARED = "not_compared"  # no pair of the benchmark has the sample, or no rubric of pairs has the dimension


class Assessor(StrEnum):
    """Who or what gave the numbers that are compared."""

    JUDGE = "judge"  # a judge of the benchmark
    METRIC = "metric"  # an automatic metric whose numbers are in the table of ratings
    RATER = "rater"  # one person
    RATERS = "raters"  # all people together


UNNAMED = "__unnamed__"
"""Stands for a rater whom nothing names, where [ratings] says that nobody knows who rated."""


def unnamed(number: object) -> str:
    """The rater of a sample's n-th anonymous rating: not one person over several samples."""
    return f"{UNNAMED[:-2]}_{number}__"


def is_named(rater: str) -> bool:
    """Whether it is one person (or file) in all of its ratings, who can be held against others."""
    return not re.fullmatch(NO_ONE, rater)


MAX_NAMED_RATERS = 20
"""Pairs of raters grow with the square of their number: of more than these, none is held against others by name."""


def held_by_name(raters: Iterable[str]) -> list[str]:
    """Who is held against others by name, in this order: who has one, and nobody above MAX_NAMED_RATERS."""
    named = [rater for rater in raters if is_named(rater)]
    return named if len(named) <= MAX_NAMED_RATERS else []


NO_ONE = rf"{UNNAMED[:-2]}(_[0-9]+)?__"
"""What unnamed raters are called in the table `ratings`; a table made from it may say so too."""


def is_reserved(name: str) -> bool:
    """Whether it has the form of Salon's own names, such as those of `Against`: of two rows called so, one would be wrong."""
    return name.startswith("__") and name.endswith("__")


class Against(StrEnum):
    """Values of `subject` and `against` in `agreement` that are not a single rater."""

    RATERS_MEAN = "__raters_mean__"  # the mean of the raters who rated the sample
    OTHER_RATERS_MEAN = "__other_raters_mean__"  # the mean of the other raters who rated the sample
    EACH_OTHER = "__each_other__"  # all raters at once; ratings may be missing
    EACH_RATER = "__each_rater__"  # every vote of every rater
    RATERS_MAJORITY = "__raters_majority__"  # the most frequent vote on the pair; a tie if no vote leads
    OTHER_RATERS_MAJORITY = "__other_raters_majority__"  # the same among the other raters of the pair


class AgreementMetric(StrEnum):
    """How two assessments of the same samples are compared."""

    QUADRATIC_KAPPA = "quadratic_kappa"  # Cohen's weighted kappa, with squared distances on the scale as weights
    LINEAR_KAPPA = "linear_kappa"  # Cohen's weighted kappa, with distances on the scale as weights
    COHEN_KAPPA = "cohen_kappa"  # Cohen's kappa without weights: labels are equal or not
    KRIPPENDORFF_ALPHA = "krippendorff_alpha"  # Krippendorff's alpha, ordinal
    KRIPPENDORFF_ALPHA_INTERVAL = "krippendorff_alpha_interval"  # Krippendorff's alpha, by squared distances on the scale
    KRIPPENDORFF_ALPHA_NOMINAL = "krippendorff_alpha_nominal"  # Krippendorff's alpha: labels are equal or not
    SPEARMAN = "spearman"  # Spearman's rank correlation
    KENDALL_TAU_B = "kendall_tau_b"  # Kendall's tau-b
    PEARSON = "pearson"  # Pearson's correlation
    PAIRWISE_ACCURACY = "pairwise_accuracy"  # share of pairs of samples that both order the same way, or both tie
    BIAS = "bias"  # mean of subject minus `against`, on the scale
    UNSCORED = "unscored"  # share of rated samples that the judge was asked about and gave no score; no row where there is none
    UNSCORED_BIAS = "unscored_bias"  # people's mean of these minus that of the scored, on the scale if theirs is declared
    SYSTEM_KENDALL_TAU = "system_kendall_tau"  # Kendall's tau of the checkpoints' means: +1 for a pair ordered alike, else -1
    SYSTEM_PAIRWISE_ACCURACY = "system_pairwise_accuracy"  # share of pairs of checkpoints whose means have the same order
    VOTE_ACCURACY = "vote_accuracy"  # share of pairs of pictures with the same verdict: a, b or tie
    VOTE_ACCURACY_WITHOUT_TIES = "vote_accuracy_without_ties"  # the same over the pairs where neither says tie
    ORDER_DEPENDENT = "order_dependent"  # share of judged pairs with votes whose two orders disagree; above they count as ties
    UNJUDGED = "unjudged"  # share of requested pairs with votes that have no verdict; above they are left out


class AgreementReason(StrEnum):
    """Why an agreement or a corrected figure lacks its estimate or its interval."""

    NO_SCORES = "no_scores"  # the judge has no score for any rated sample
    NO_RATINGS = "no_ratings"  # there is no usable rating
    TOO_FEW_ITEMS = "too_few_items"  # fewer than two samples that both assessed
    TOO_FEW_PROMPTS = "too_few_prompts"  # too few prompts for an interval or a correction
    TOO_MANY_ITEMS = "too_many_items"  # more samples than are compared pair by pair
    NO_VARIATION = "no_variation"  # one side gives every sample the same number, or all prompts the same difference
    SCALE_NOT_DECLARED = "scale_not_declared"  # the two cannot be put on one scale
    NOT_ON_LABELS = "not_on_labels"  # a number is not a label of the scale, which kappa needs
    OFF_SCALE = "off_scale"  # the corrected mean lies outside the scale
    ALL_LABELLED = "all_labelled"  # every prompt has ratings, so there is nothing to correct
    BLOCKED = "blocked"  # for a comparison: one of the two cells is blocked; `benchmark_long` says why


MIN_LABELLED = 10
"""Under this many labelled prompts the tuning follows noise: nothing is corrected."""
MIN_IN_STRATUM = 3
"""Two labels of a category are alike by chance too often: differences of nothing are found in 12 % of cases at 5 %."""


class Estimator(StrEnum):
    """How a mean over prompts is estimated from a judge's scores and people's ratings."""

    JUDGE = "judge"  # the judge's scores on all prompts
    LABELS = "labels"  # people's ratings of the prompts that they rated
    PREDICTION_POWERED = "prediction_powered"  # the judge's scores, corrected by the ratings (PPI++)
    JUDGE_ERROR = "judge_error"  # for a comparison: the judge's difference minus people's; above 0, the judge is kinder to a


class LabelCheck(StrEnum):
    """Whether the labelled prompts look like a random part of all prompts, by the judge's scores."""

    RANDOM = "random"  # nothing suggests otherwise
    CHOSEN_BY_SCORE = "chosen_by_score"  # the judge scores labelled prompts, or samples, differently from the others
    CANNOT_TELL = "cannot_tell"  # fewer than five prompts are labelled, or fewer than five are not
