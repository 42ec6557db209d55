"""Columns of what pairs of pictures say: win rates, ratings, position bias, votes. The rest is in fields.py."""

from dataclasses import replace

from schemas.statuses.cells import RatedState
from schemas.tables import comparison_fields as c
from schemas.tables import fields as f
from schemas.tables import people_fields as o
from schemas.tables.field import count, flag, number, share, text

_RUN = (f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.DIMENSION)
CATEGORY = text(
    "category",
    "The category, `__macro__` (categories weigh the same) or `__micro__` (pairs of pictures weigh the same).",
)
N_PROMPTS = count("n_prompts", "Prompts with a judged pair (the units of the interval).")
N_PAIRS = count("n_pairs", "Pairs of pictures in the row. Both orders, and all repeats, of a pair count once.")
COVERAGE = share("coverage", "Share of the requested verdicts received; without repeats, judged pairs / n_pairs.")

# --- preferences ------------------------------------------------------------------------------------------------
PREFERENCES = (
    text("pair_id", "Id of the row (12 hexadecimal characters), for `salon explain`."), *_RUN, f.JUDGE_MODEL,
    CATEGORY,
    text("model_a", "Model of a: the newer checkpoint, or the one compared with the baseline; of two models the first by name."),
    c.CHECKPOINT_A, c.MODEL_B, c.CHECKPOINT_B,
    flag("is_to_baseline", "Whether b is the benchmark file's baseline."),
    flag("is_to_predecessor", "Whether b is the previous checkpoint of the same model."),
    share(
        "win_rate",
        "Share of judged pairs that a wins; of `__macro__` the mean of the categories' shares. A tie, or a pair whose two orders "
        "disagree, counts as half.",
    ),
    number("se", "Standard error of win_rate, with prompts as clusters.", low=0), f.DF,
    share("ci_low", "Lower end of win_rate's interval, not corrected for multiple comparisons."),
    share("ci_high", "Upper end of win_rate's uncorrected interval."), f.CI_LEVEL, f.CI_METHOD,
    share("ci_low_adjusted", "Lower end of win_rate's interval, corrected like p_adjusted: above 0.5 if a is proven better."),
    share("ci_high_adjusted", "Upper end of win_rate's corrected interval."),
    share(
        "win_rate_agreed",
        "win_rate over only the pairs whose two orders agree (with repeats: of each pair the mean of the repeats that do); a tie "
        "counts as half.",
    ),
    share("bound_low", "win_rate if every unjudged pair had the worst possible outcome for a."),
    share("bound_high", "win_rate if every unjudged pair had the best possible outcome for a."),
    share("order_bound_low", "bound_low if a also lost every pair whose orders disagree."),
    share("order_bound_high", "bound_high if a also won every pair whose orders disagree."),
    c.TEST, number("p", "Two-sided p-value for a win rate of one half.", low=0, high=1), c.P_ADJUSTED, c.VERDICT, c.ADJUSTMENT,
    c.FAMILY, c.N_FAMILY, c.IS_PRIMARY, N_PROMPTS, N_PAIRS,
    count("n_win", "Pairs that a wins in both orders (with repeats: on average)."),
    count("n_tie", "Pairs that are a tie in both orders (with repeats: on average)."),
    count("n_loss", "Pairs that b wins in both orders (with repeats: on average)."),
    count("n_order_dependent", "Pairs whose two orders disagree (with repeats: in a repeat, and neither side wins on average)."),
    count("n_unjudged", "Pairs without a readable verdict in at least one order (with repeats: in every repeat)."),
    COVERAGE, f.COVERAGE_FLOOR,
    flag("is_stopped_early", "Whether asking stopped before all planned prompts; p and interval remain valid."),
    f.CELL_STATUS, f.REASON,
    count("n_verdicts_asked", "Verdicts requested, one per repeat of a pair."), count("n_verdicts", "Verdicts received."),
    count("n_unanswered", "Verdicts that lack a reply, which the next run asks for again; the others have an unreadable one."),
)  # fmt: skip
PREFERENCES_KEY = ("rubric_id", "dimension", "judge_model", "category", "model_a", "checkpoint_a", "model_b", "checkpoint_b")

# --- ratings ----------------------------------------------------------------------------------------------------
PREFERENCE_RATINGS = (
    *_RUN, text("judge_model", "The judge, `__pooled__` (all judges' verdicts) or `__people__` (people's votes)."), f.MODEL,
    f.CHECKPOINT,
    text("state", "Whether the checkpoint has a rating.", values=RatedState), f.REASON,
    number("rating", "Bradley-Terry rating above the anchor; 400 points are odds of 10 to 1.", unit="points"),
    number("se", "Standard error of the rating, with prompts as clusters.", unit="points", low=0), f.DF,
    number("ci_low", "Lower end of the rating's interval.", unit="points"),
    number("ci_high", "Upper end of the rating's interval.", unit="points"), f.CI_LEVEL, f.CI_METHOD,
    text("anchor", "What has 0 points: the baseline as `model/checkpoint`, or `__mean__` of the rated.", null=True),
    c.RANK_LOW, c.RANK_HIGH, c.N_RANKED, c.ADJUSTMENT, c.FAMILY, c.N_FAMILY,
    number("tie_parameter", "Davidson's v: equal checkpoints tie with odds of v to 2. Null if ties are half wins.", low=0),
    N_PROMPTS, count("n_pairs", "The checkpoint's judged pairs of pictures."),
    count("n_opponents", "Checkpoints that it was judged against."),
    count("n_win", "Pairs that it wins in both orders."),
    count("n_tie", "Pairs that are a tie or whose orders disagree."), count("n_loss", "Pairs that it loses in both orders."),
    count("n_pairs_asked", "Pairs of pictures that were to be judged."),
    replace(COVERAGE, about="Share of the requested verdicts received, over all its pairs."), f.COVERAGE_FLOOR,
    count("n_opponents_blocked", "Opponents with whom too few of its pairs have a verdict: in neither rating nor rank."),
    count("n_pairs_rated", "Judged pairs that the rating uses; null without a rating.", null=True),
)  # fmt: skip
PREFERENCE_RATINGS_KEY = ("rubric_id", "dimension", "judge_model", "model", "checkpoint")

# --- position bias ----------------------------------------------------------------------------------------------
POSITION_BIAS = (
    *_RUN, f.JUDGE_MODEL, CATEGORY,
    share("first_wins", "Share of verdicts for the picture shown first (a tie counts as half): 0.5 without position bias."),
    share("first_wins_low", "Lower end of first_wins' interval."),
    share("first_wins_high", "Upper end of first_wins' interval."),
    share("order_dependent", "Share of pairs whose two orders disagree (with repeats: mean over pairs of the share of repeats)."),
    share("order_dependent_low", "Lower end of order_dependent's interval."),
    share("order_dependent_high", "Upper end of order_dependent's interval."),
    share("always_first", "Share of pairs in which the picture shown first wins both times (with repeats: likewise)."),
    share("always_second", "Share of pairs in which the picture shown second wins both times (with repeats: likewise)."),
    share("ties", "Share of single verdicts that are ties."),
    f.CI_LEVEL, f.CI_METHOD, count("n_prompts", "Prompts with a pair judged in both orders."), N_PAIRS,
    count("n_both_orders", "Pairs with a readable verdict in both orders; the shares are over these."),
    f.CELL_STATUS, f.REASON, COVERAGE, f.COVERAGE_FLOOR,
)  # fmt: skip
POSITION_BIAS_KEY = ("rubric_id", "dimension", "judge_model", "category")

# --- people's votes ---------------------------------------------------------------------------------------------
VOTES = (
    text("vote_key", "Where the vote is: file and row."),
    replace(f.SAMPLE_ID, name="sample_id_a").or_null("The sample shown as a; null if the row matches none, or several."),
    replace(f.SAMPLE_ID, name="sample_id_b").or_null("The sample shown as b; null if the row matches none, or several."),
    f.DIMENSION, o.RATER,
    number("vote", "1 if a is better, 0 if b is, 0.5 for neither; null without a valid vote.", low=0, high=1),
    text("shown_first", "Which sample the rater saw first: `a` or `b`; null if the table does not say.", null=True),
    o.RATING_STATUS, f.DETAIL,
)  # fmt: skip
