"""Columns of what pairs of pictures say: win rates, ratings, position bias, votes. The rest is in fields.py."""

from dataclasses import replace

import pyarrow as pa

from schemas.statuses.cells import RatedState
from schemas.tables import comparison_fields as c
from schemas.tables import fields as f
from schemas.tables import people_fields as o
from schemas.tables.field import Field, count, number, text


def _share(name: str, about: str) -> Field:
    return number(name, about, low=0, high=1)


def _flag(name: str, about: str) -> Field:
    return Field(name, pa.bool_(), about)


_RUN = (f.PUBLISHED, f.RUN_DATE, f.BENCHMARK, f.DATASET_ID, f.RUBRIC_ID, f.RUBRIC_VERSION, f.DIMENSION)
CATEGORY = text(
    "category",
    "The category; `__macro__` (categories weigh the same) and `__micro__` (all pairs of pictures weigh the same) for totals.",
)
N_PROMPTS = count("n_prompts", "Prompts with a judged pair: the units of the interval.")
N_PAIRS = count("n_pairs", "Pairs of pictures the row should hold; one asked in both orders, or repeatedly, is one.")
COVERAGE = _share("coverage", "Verdicts that came / those asked for: judged pairs / n_pairs where nothing is asked repeatedly.")

# --- preferences ------------------------------------------------------------------------------------------------
PREFERENCES = (
    text("pair_id", "First 12 hexadecimal characters of the row's address; what `salon explain` takes."), *_RUN, f.JUDGE_MODEL,
    CATEGORY,
    text("model_a", "The first one's model: of the newer checkpoint, and of what is held against the baseline."),
    c.CHECKPOINT_A, c.MODEL_B, c.CHECKPOINT_B,
    _flag("is_to_baseline", "b is the benchmark file's baseline."),
    _flag("is_to_predecessor", "b is the checkpoint before a, of the same model."),
    _share("win_rate", "Share of judged pairs that a wins; a tie is half, and so is a pair whose two orders disagree."),
    number("se", "Its standard error, prompts being the clusters.", low=0), f.DF,
    _share("ci_low", "Lower end of win_rate's interval, not corrected for the number of comparisons."),
    _share("ci_high", "Upper end of it."), f.CI_LEVEL, f.CI_METHOD,
    _share("ci_low_adjusted", "Lower end of the interval that is corrected as p_adjusted is: above 0.5 where a is higher."),
    _share("ci_high_adjusted", "Upper end of it."),
    _share("win_rate_agreed", "The same share over the pairs whose two orders agree; ties are half."),
    _share("bound_low", "win_rate if each unjudged pair were the worst for a that it can have been."),
    _share("bound_high", "win_rate if each unjudged pair were the best for a."),
    _share("order_bound_low", "bound_low if moreover a lost each pair whose orders disagree."),
    _share("order_bound_high", "bound_high if moreover a won each of them."),
    c.TEST, number("p", "Two-sided p of a win rate of one half.", low=0, high=1), c.P_ADJUSTED, c.VERDICT, c.ADJUSTMENT,
    c.FAMILY, c.N_FAMILY, c.IS_PRIMARY, N_PROMPTS, N_PAIRS,
    count("n_win", "Pairs a wins in both orders; asked repeatedly, on average."),
    count("n_tie", "Pairs that are a tie in both orders; asked repeatedly, on average."),
    count("n_loss", "Pairs b wins in both orders; asked repeatedly, on average."),
    count("n_order_dependent", "Pairs whose two orders disagree; asked repeatedly, those that are even and disagree once."),
    count("n_unjudged", "Pairs with no readable verdict in at least one order; asked repeatedly, of every repeat."),
    COVERAGE, f.COVERAGE_FLOOR,
    _flag("is_stopped_early", "Fewer prompts than planned were asked: p and interval hold however often one looked."),
    f.CELL_STATUS, f.REASON,
    count("n_verdicts_asked", "Verdicts asked for, each repeat of a pair one."), count("n_verdicts", "Verdicts that came."),
)  # fmt: skip
PREFERENCES_KEY = ("rubric_id", "dimension", "judge_model", "category", "model_a", "checkpoint_a", "model_b", "checkpoint_b")

# --- ratings ----------------------------------------------------------------------------------------------------
PREFERENCE_RATINGS = (
    *_RUN, text("judge_model", "The judge; `__pooled__` for all judges' verdicts, `__people__` for people's votes."), f.MODEL,
    f.CHECKPOINT,
    text("state", "Whether it has a rating.", values=RatedState), f.REASON,
    number("rating", "Bradley-Terry strength less that of the anchor; 400 points are odds of 10 to 1.", unit="points"),
    number("se", "Its standard error, prompts being the clusters.", unit="points", low=0), f.DF,
    number("ci_low", "Lower end of its interval.", unit="points"),
    number("ci_high", "Upper end of its interval.", unit="points"), f.CI_LEVEL, f.CI_METHOD,
    text("anchor", "What has 0 points: the baseline as model/checkpoint, or `__mean__` of the rated.", null=True),
    c.RANK_LOW, c.RANK_HIGH, c.N_RANKED, c.ADJUSTMENT, c.FAMILY, c.N_FAMILY,
    number("tie_parameter", "Davidson's: two equal checkpoints tie with odds of so many to 2.", low=0),
    N_PROMPTS, count("n_pairs", "Its judged pairs of pictures."), count("n_opponents", "Checkpoints it was judged against."),
    count("n_win", "Pairs it wins in both orders."),
    count("n_tie", "Pairs that are a tie, or whose orders disagree."), count("n_loss", "Pairs it loses in both orders."),
    count("n_pairs_asked", "Pairs of pictures it should be judged on."),
    replace(COVERAGE, about="Verdicts that came / those asked for, over all its pairs."), f.COVERAGE_FLOOR,
    count("n_opponents_blocked", "Opponents with whom its pairs are under the floor: no part of the rating, nor of the rank."),
    count("n_pairs_rated", "Judged pairs that its rating is made of; null without one.", null=True),
)  # fmt: skip
PREFERENCE_RATINGS_KEY = ("rubric_id", "dimension", "judge_model", "model", "checkpoint")

# --- position bias ----------------------------------------------------------------------------------------------
POSITION_BIAS = (
    *_RUN, f.JUDGE_MODEL, CATEGORY,
    _share("first_wins", "Share of verdicts for the picture shown first, a tie being half: 0.5 where position does not count."),
    _share("first_wins_low", "Lower end of its interval."), _share("first_wins_high", "Upper end of it."),
    _share("order_dependent", "Share of pairs whose two orders disagree."),
    _share("order_dependent_low", "Lower end of its interval."), _share("order_dependent_high", "Upper end of it."),
    _share("always_first", "Share of pairs in which the picture shown first wins both times."),
    _share("always_second", "Share of pairs in which the picture shown second wins both times."),
    _share("ties", "Share of single verdicts that are a tie."),
    f.CI_LEVEL, f.CI_METHOD, count("n_prompts", "Prompts with a pair that has both verdicts."), N_PAIRS,
    count("n_both_orders", "Pairs with a readable verdict in both orders: what the shares are taken over."),
    f.CELL_STATUS, f.REASON, COVERAGE, f.COVERAGE_FLOOR,
)  # fmt: skip
POSITION_BIAS_KEY = ("rubric_id", "dimension", "judge_model", "category")

# --- people's votes ---------------------------------------------------------------------------------------------
VOTES = (
    text("vote_key", "Where the vote stands: file and row."),
    replace(f.SAMPLE_ID, name="sample_id_a").or_null("The sample shown as a; null where none, or no one alone, is meant."),
    replace(f.SAMPLE_ID, name="sample_id_b").or_null("The sample shown as b."), f.DIMENSION, o.RATER,
    number("vote", "1 where a is better, 0 where b is, 0.5 for neither; null where the vote does not say.", low=0, high=1),
    text("shown_first", "Which of the two the rater was shown first: a or b; null where the table does not say.", null=True),
    o.RATING_STATUS, f.DETAIL,
)  # fmt: skip
