"""Columns of what is compared: comparisons, standings, the wide table. The rest is in fields.py."""

import pyarrow as pa

from schemas.statuses.cells import ComparisonKind, ComparisonTest, ComparisonVerdict, Correction, StandingState
from schemas.statuses.people import LabelCheck
from schemas.tables.field import Field, count, number, text


def _flag(name: str, about: str, *, null: bool = False) -> Field:
    return Field(name, pa.bool_(), about, is_nullable=null)


def _difference(name: str, other: str) -> tuple[Field, ...]:
    """What a standing says of one comparison of it: delta, its interval, p, verdict, why not, and prompts, in this order."""
    return (
        number(f"delta_{name}", f"Delta to {other}."),
        number(f"delta_{name}_low", "Its ci_low_adjusted."),
        number(f"delta_{name}_high", "Its ci_high_adjusted."),
        number(f"p_{name}", "Its p_adjusted.", low=0, high=1),
        text(f"verdict_{name}", "Its verdict.", null=True, values=ComparisonVerdict),
        text(f"reason_{name}", "Why there is no delta or no p.", null=True),
        count(f"n_prompts_{name}", "Prompts scored for both.", null=True),
    )


# --- comparisons ------------------------------------------------------------------------------------------------
COMPARISON = text("comparison", "Why these two are compared.", values=ComparisonKind)
CELL_ID_A = text("cell_id_a", "The first cell.")
CELL_ID_B = text("cell_id_b", "The second cell; null where there is none.", null=True)
MODEL_A = text("model_a", "The first one's model.")
CHECKPOINT_A = text("checkpoint_a", "The first one's checkpoint.")
MODEL_B = text("model_b", "The second one's model.")
CHECKPOINT_B = text("checkpoint_b", "The second one's checkpoint.")
DELTA = number("delta", "Mean of a less mean of b, over the prompts scored for both.")
DELTA_LOW = number("ci_low", "Lower end of delta's interval, not corrected for the number of comparisons.")
DELTA_HIGH = number("ci_high", "Upper end of delta's interval.")
DELTA_LOW_ADJUSTED = number(
    "ci_low_adjusted", "Lower end of the interval that is corrected as p_adjusted is: beyond 0 where that is < 0.05."
)
DELTA_HIGH_ADJUSTED = number("ci_high_adjusted", "Upper end of the corrected interval.")
DELTA_BOUND_LOW = number(
    "delta_bound_low",
    "Delta over the prompts judged for both if each failure of a were the worst, of b the best it can have been.",
)
DELTA_BOUND_HIGH = number("delta_bound_high", "The same the other way round.")
DELTA_BOUND_CI_LOW = number(
    "delta_bound_ci_low",
    "Lower end of delta_bound_low's interval, corrected as p_adjusted is: failures and sampling error at once.",
)
DELTA_BOUND_CI_HIGH = number("delta_bound_ci_high", "Upper end of delta_bound_high's corrected interval.")
TEST = text("test", "What gave p.", null=True, values=ComparisonTest)
P = number("p", "Two-sided p of no difference.", low=0, high=1)
P_ADJUSTED = number("p_adjusted", "p corrected for the family.", low=0, high=1)
VERDICT = text("verdict", "What is said of a: rank, colour and words follow from it.", null=True, values=ComparisonVerdict)
ADJUSTMENT = text("adjustment", "How p and interval were corrected.", null=True, values=Correction)
FAMILY = text("family", "The comparisons that were corrected together: rows with the same text.", null=True)
IS_PRIMARY = _flag(
    "is_primary", "Of the primary family: what claims and alerts are made of; false: exploratory. Null without p.", null=True
)
N_FAMILY = count("n_family", "How many comparisons the family has; one under several kinds counts once.", null=True)
N_PROMPTS_PAIRED = count("n_prompts_paired", "Prompts scored for both.")
WIN = count("win", "Paired prompts on which a is higher.")
TIE = count("tie", "Paired prompts on which both are the same.")
LOSS = count("loss", "Paired prompts on which b is higher.")
MDE80 = number("mde80", "True difference found in 80 % of cases with this se (5 %, two-sided, uncorrected).", low=0)
FAIL_RATE_A = number("fail_rate_a", "fail_rate of a.", low=0, high=1)
FAIL_RATE_B = number("fail_rate_b", "fail_rate of b.", low=0, high=1)
P_FAILURES = number("p_failures", "Two-sided p of equal failure rates: exact sign test over prompts, uncorrected.", low=0, high=1)
P_FAILURES_LOW = number(
    "p_failures_low",
    "p that neither fails more where the other's scores are low; uncorrected. Null without failures.",
    low=0,
    high=1,
)
HAS_UNEQUAL_FAILURES = _flag(
    "has_unequal_failures",
    "One fails more often than the other, or where scores are low: p_failures or p_failures_low, corrected, is under 0.025.",
    null=True,
)
FAILS_MORE = _flag(
    "has_unequal_failures", "It fails more often than another of its ranking, or where the other's scores are low.", null=True
)

# --- corrected by people -----------------------------------------------------------------------------------------
RATER_SE = number(
    "rater_se", "The part of se for other raters than these; null where one rater, or ratings apart, leave it unseen.", low=0
)
P_LABELS_RANDOM = number(
    "p_labels_random", "Two-sided p that the judge scores labelled prompts and samples as it does the others.", low=0, high=1
)
LABEL_CHECK = text(
    "label_check", "Whether the labels look like a random part; null where no judge is meant.", null=True, values=LabelCheck
)
PAIRED_SE = number("se", "Standard error of delta, prompts and raters as they could have been others.", low=0)
N_RANKED_SO = count("n_ranked", "Checkpoints that have a rank in this ranking by this estimator.", null=True)

# --- standings and the wide table -------------------------------------------------------------------------------
IS_HEADLINE = _flag(
    "is_headline",
    "A primary dimension: as the benchmark file declares, else overall_score where the rubric has one, else every one.",
)
STATE = text("state", "Whether it has a rank.", values=StandingState)
RANK_LOW = count("rank_low", "Best rank the comparisons allow: 1 + those that are higher.", null=True)
RANK_HIGH = count("rank_high", "Worst rank they allow: n_ranked less those that are lower.", null=True)
N_RANKED = count("n_ranked", "Checkpoints that have a rank in this ranking.", null=True)
N_SHARED_PROMPTS = count(
    "n_shared_prompts", "Prompts scored for every ranked one; where not compared, the most it shares with any other.", null=True
)
N_CATEGORIES = count(
    "n_categories", "Categories of the total, each of which weighs the same; null where it has fewer than two.", null=True
)
N_PROMPTS_FEWEST = count("n_prompts_smallest_category", "Prompts with a score in the smallest of them.", null=True)
SMALLEST_CATEGORY = text("smallest_category", "The smallest of them; the first by name of several.", null=True)
N_PROMPTS_MOST = count("n_prompts_largest_category", "Prompts with a score in the largest of them.", null=True)
N_PROMPTS_NEEDED = count("n_prompts_needed", "Shared prompts a comparison needs in each category.")
SHARED_ESTIMATE = number("shared_estimate", "The mean over the shared prompts alone; null where there is no rank.")
IS_REORDERED = _flag("is_reordered", "By the means over shared prompts it stands on the other side of a ranked one.", null=True)
PREDECESSOR = text("predecessor", "The checkpoint before, of the same model.", null=True)
TO_PREDECESSOR = _difference("predecessor", "the checkpoint before")
DELTA_PREDECESSOR, P_PREDECESSOR = TO_PREDECESSOR[0], TO_PREDECESSOR[3]
BASELINE = text("baseline", "The baseline, as model/checkpoint.", null=True)
TO_BASELINE = _difference("baseline", "the baseline")
DELTA_BASELINE, P_BASELINE = TO_BASELINE[0], TO_BASELINE[3]
MICRO_ESTIMATE = number("micro_estimate", "The mean over images.")
MICRO_CI_LOW = number("micro_ci_low", "Lower end of its interval.")
MICRO_CI_HIGH = number("micro_ci_high", "Upper end of its interval.")
CATEGORIES_JSON = text("categories_json", 'Estimates by category, JSON object such as {"colors":7.5}; null where blocked.')
