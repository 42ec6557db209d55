"""Columns of what is compared: comparisons, standings, the wide table. The rest is in fields.py."""

from schemas.statuses.cells import ComparisonKind, ComparisonTest, ComparisonVerdict, Correction, Failing, StandingState
from schemas.statuses.people import LabelCheck
from schemas.tables.field import Field, count, flag, number, share, text


def _difference(name: str, other: str) -> tuple[Field, ...]:
    """The columns of `standings` about one comparison: delta, its interval, p, verdict, reason and prompts, in this order."""
    return (
        number(f"delta_{name}", f"This checkpoint's mean minus that of {other}, over shared prompts."),
        number(f"delta_{name}_low", f"Lower end of delta_{name}'s corrected interval."),
        number(f"delta_{name}_high", f"Upper end of delta_{name}'s corrected interval."),
        number(f"p_{name}", f"Corrected p-value of delta_{name}.", low=0, high=1),
        text(f"verdict_{name}", f"Verdict on delta_{name}.", null=True, values=ComparisonVerdict),
        text(f"reason_{name}", f"Why delta_{name} or its p is missing.", null=True),
        count(f"n_prompts_{name}", f"Prompts that delta_{name} is over.", null=True),
    )


# --- comparisons ------------------------------------------------------------------------------------------------
COMPARISON = text("comparison", "Why a and b are compared.", values=ComparisonKind)
CELL_ID_A = text("cell_id_a", "The cell of a in `benchmark_long`.")
CELL_ID_B = text("cell_id_b", "The cell of b; null if it has none.", null=True)
MODEL_A = text("model_a", "Model of a.")
CHECKPOINT_A = text("checkpoint_a", "Checkpoint of a.")
MODEL_B = text("model_b", "Model of b.")
CHECKPOINT_B = text("checkpoint_b", "Checkpoint of b.")
DELTA = number("delta", "Mean of a minus mean of b, over the prompts scored for both.")
DELTA_LOW = number("ci_low", "Lower end of delta's interval, not corrected for multiple comparisons.")
DELTA_HIGH = number("ci_high", "Upper end of delta's uncorrected interval.")
DELTA_LOW_ADJUSTED = number(
    "ci_low_adjusted", "Lower end of delta's interval, corrected like p_adjusted: it excludes 0 exactly if that is under 0.05."
)
DELTA_HIGH_ADJUSTED = number("ci_high_adjusted", "Upper end of delta's corrected interval.")
DELTA_BOUND_LOW = number(
    "delta_bound_low",
    "Delta, over the prompts judged for both, if each failure of a had its lowest possible score and each of b its highest; "
    "at most delta.",
)
DELTA_BOUND_HIGH = number(
    "delta_bound_high", "Delta if each failure of a had its highest possible score and each of b its lowest; at least delta."
)
DELTA_BOUND_CI_LOW = number(
    "delta_bound_ci_low",
    "Lower end of delta_bound_low's interval, corrected like p_adjusted: it allows for failures and sampling error at once.",
)
DELTA_BOUND_CI_HIGH = number("delta_bound_ci_high", "Upper end of delta_bound_high's corrected interval.")
TEST = text("test", "The test that p comes from.", null=True, values=ComparisonTest)
P = number("p", "Two-sided p-value for no difference.", low=0, high=1)
P_ADJUSTED = number("p_adjusted", "p corrected for the family's comparisons.", low=0, high=1)
VERDICT = text("verdict", "The conclusion about a; ranks, colors and wording follow it.", null=True, values=ComparisonVerdict)
ADJUSTMENT = text("adjustment", "How p and interval are corrected.", null=True, values=Correction)
FAMILY = text("family", "Family: rows with the same text were corrected together.", null=True)
IS_PRIMARY = flag(
    "is_primary",
    "Whether the row is in the primary family, on which claims and alerts rest; else it is exploratory. Null without p.",
    null=True,
)
N_FAMILY = count("n_family", "Comparisons in the family; one that appears as several kinds counts once.", null=True)
N_PROMPTS_PAIRED = count("n_prompts_paired", "Prompts scored for both checkpoints (paired prompts).")
N_PROMPTS_IDENTICAL = count(
    "n_prompts_identical",
    "Paired prompts for which both checkpoints are asked the very same, pictures byte for byte: the difference is 0 there, "
    "whatever the judge says. Null if the two were not compared.",
    null=True,
)
WIN = count("win", "Paired prompts on which a scores higher.")
TIE = count("tie", "Paired prompts on which both score the same.")
LOSS = count("loss", "Paired prompts on which b scores higher.")
MDE80 = number(
    "mde80",
    "Minimum detectable effect: the true difference found in 80 % of cases with this se (at 5 %, two-sided, uncorrected). "
    "Null for five prompts or fewer.",
    low=0,
)
FAIL_RATE_A = share("fail_rate_a", "Failure rate of a.")
FAIL_RATE_B = share("fail_rate_b", "Failure rate of b.")
P_FAILURES = number(
    "p_failures",
    "Two-sided p-value for a failing more on as many prompts as b does (exact sign test, uncorrected).",
    low=0,
    high=1,
)
P_FAILURES_LOW = number(
    "p_failures_low",
    "p-value for neither checkpoint failing more on prompts that the other scores low (uncorrected). Null without failures.",
    low=0,
    high=1,
)
HAS_UNEQUAL_FAILURES = flag(
    "has_unequal_failures",
    "Whether one checkpoint fails on more prompts, or fails on prompts that the other scores low: p_failures or p_failures_low, "
    "corrected, is under 0.025. `failing` says which one.",
    null=True,
)
FAILING = text("failing", "Which of the two fails unequally; null if neither does.", null=True, values=Failing)
FAILS_MORE = flag(
    "has_unequal_failures",
    "Whether this checkpoint fails on more prompts than another one of its ranking that it is compared with, or fails on prompts "
    "that the other scores low. Null if it is compared with none.",
    null=True,
)

# --- corrected by people -----------------------------------------------------------------------------------------
RATER_SE = number(
    "rater_se",
    "The part of se that comes from the choice of raters. Null if it cannot be estimated: one rater, anonymous raters, more "
    "than 100 raters, or no prompts in common.",
    low=0,
)
P_LABELS_RANDOM = number(
    "p_labels_random", "Two-sided p-value for the judge scoring labelled prompts and samples like the others.", low=0, high=1
)
LABEL_CHECK = text(
    "label_check",
    "Whether the labelled prompts look like a random part of all prompts; null in rows without a judge.",
    null=True,
    values=LabelCheck,
)
PAIRED_SE = number("se", "Standard error of delta, for the choice of prompts and of raters.", low=0)
N_RANKED_SO = count("n_ranked", "Number of ranked checkpoints in this ranking by this estimator.", null=True)

# --- standings and the wide table -------------------------------------------------------------------------------
IS_HEADLINE = flag(
    "is_headline",
    "Whether the dimension is primary: as the benchmark file declares, else `overall_score`, else every dimension of a rubric "
    "without one.",
)
STATE = text("state", "Whether the checkpoint has a rank, or why not.", values=StandingState)
RANK_LOW = count("rank_low", "Best possible rank: 1 + the number of ranked checkpoints that are proven higher.", null=True)
RANK_HIGH = count("rank_high", "Worst possible rank: n_ranked minus the number proven lower.", null=True)
N_RANKED = count("n_ranked", "Number of ranked checkpoints in this ranking.", null=True)
N_SHARED_PROMPTS = count(
    "n_shared_prompts",
    "Prompts scored for every ranked checkpoint. If this one is not ranked: the most that it shares with any other.",
    null=True,
)
N_CATEGORIES = count("n_categories", "Categories in the total, weighted equally; null if there are fewer than two.", null=True)
N_PROMPTS_FEWEST = count("n_prompts_smallest_category", "Prompts with a score in the smallest of these categories.", null=True)
SMALLEST_CATEGORY = text(
    "smallest_category", "The smallest of these categories; the first by name if several are equal.", null=True
)
N_PROMPTS_MOST = count("n_prompts_largest_category", "Prompts with a score in the largest of these categories.", null=True)
N_PROMPTS_NEEDED = count("n_prompts_needed", "Shared prompts that a comparison needs in each category.")
SHARED_ESTIMATE = number(
    "shared_estimate", "The mean over the n_shared_prompts alone; null without a rank, or if a category has none of them."
)
IS_REORDERED = flag(
    "is_reordered",
    "Whether the means over shared prompts put this checkpoint and another ranked one in the opposite order.",
    null=True,
)
PLACE = count(
    "place",
    "Place among its model's known checkpoints, from 1 for the oldest; null if natural order of their names says the same.",
    null=True,
)
PREDECESSOR = text("predecessor", "The checkpoint directly before, of the same model; it may be missing here.", null=True)
TO_PREDECESSOR = _difference("predecessor", "the previous checkpoint")
DELTA_PREDECESSOR, P_PREDECESSOR = TO_PREDECESSOR[0], TO_PREDECESSOR[3]
N_IDENTICAL = tuple(
    count(f"n_identical_{name}", f"Of n_prompts_{name}, those asked the very same: see comparisons.", null=True)
    for name in ("predecessor", "baseline")
)
BASELINE = text("baseline", "The baseline, as `model/checkpoint`.", null=True)
TO_BASELINE = _difference("baseline", "the baseline")
DELTA_BASELINE, P_BASELINE = TO_BASELINE[0], TO_BASELINE[3]
MICRO_ESTIMATE = number("micro_estimate", "The mean over all images (`__micro__`).")
MICRO_CI_LOW = number("micro_ci_low", "Lower end of micro_estimate's confidence interval.")
MICRO_CI_HIGH = number("micro_ci_high", "Upper end of micro_estimate's confidence interval.")
CATEGORIES_JSON = text(
    "categories_json", 'Estimates by category, as a JSON object such as {"colors":7.5}; null for a category without an estimate.'
)
