"""What published cells, comparisons and rankings are, or why they are not: closed lists. Of figures against people: people.py."""

from enum import StrEnum


class CellStatus(StrEnum):
    """What a published cell is."""

    OK = "ok"  # an estimate with its interval
    NO_INTERVAL = "no_interval"  # an estimate; the reason says why there is no interval
    BLOCKED = "blocked"  # coverage under the floor; the reason is the commonest failure
    NULL = "null"  # no such number exists; the reason says why


class CellReason(StrEnum):
    """Why a published cell lacks its estimate or its interval, where no failure word says it."""

    NOT_IN_ALL_CATEGORIES = "not_in_all_categories"  # a total of a dimension that not every category is asked about
    SCALES_DIFFER = "scales_differ"  # a total of a dimension whose scale is not the same in every category
    CATEGORY_MISSING = "category_missing"  # a macro mean without a category that others of the benchmark have
    NOT_APPLICABLE = "not_applicable"  # it applies to none of the judgements, or the category a macro mean lacks is so
    TOO_FEW_PROMPTS = "too_few_prompts"  # a category with one scored prompt: no variance between prompts to see
    NO_VARIATION = "no_variation"  # every prompt has the same mean, and it is not an end of the scale
    ONE_IMAGE_PER_PROMPT = "one_image_per_prompt"  # these prompts: no prompt has two scored samples, so nothing varies within one


class Total(StrEnum):
    """What stands in the category column of a published cell that is no category of the data."""

    MACRO = "__macro__"  # the unweighted mean of the category means
    MICRO = "__micro__"  # the mean over all images
    UNNAMED = "__unnamed__"  # the samples without a category, where other samples have one


class Estimand(StrEnum):
    """For what population a figure speaks."""

    PROMPTS_LIKE_THESE = "prompts_like_these"  # the prompts are a sample: for claims about a model
    THESE_PROMPTS = "these_prompts"  # the prompts are all there are, only pictures and replies vary: for trends


class ComparisonKind(StrEnum):
    """Why two checkpoints are held against each other."""

    PREDECESSOR = "predecessor"  # b is the checkpoint before a, of the same model, in natural order
    BASELINE = "baseline"  # b is the benchmark file's baseline
    EACH_OTHER = "each_other"  # every two checkpoints of one ranking; rank ranges follow from these


class ComparisonTest(StrEnum):
    """What gave a comparison's p."""

    PAIRED_T = "paired_t_clustered"  # Student's t over paired prompts
    SIGN_FLIP = "sign_flip"  # sixteen prompts or fewer, or every prompt differs by the same amount: exact, all signs flipped
    SCORE_T = "score_t_clustered"  # of win rates: Wilson's score test over prompts, with Student's t
    ANYTIME = "anytime_valid"  # of pairs asked until decided: betting, and the score test where all prompts were asked


class Correction(StrEnum):
    """How the p and the intervals of a family are corrected for their number."""

    BONFERRONI = "bonferroni"  # no false difference in the whole family, but in 5 % of families
    BENJAMINI_HOCHBERG = "benjamini_hochberg"  # at most 5 % of the differences found are false, on average


class ComparisonVerdict(StrEnum):
    """What a comparison says of a, after correction for all of its family."""

    HIGHER = "higher"  # higher than b
    LOWER = "lower"  # lower than b
    OPEN = "open"  # these prompts cannot tell
    FAILURES_COULD_TURN_IT = "failures_could_turn_it"  # a difference, and what has no score could make it none


class StandingState(StrEnum):
    """Whether a row of `standings` has a rank."""

    RANKED = "ranked"  # compared with every other ranked one
    NOT_COMPARED = "not_compared"  # an estimate, perhaps, and no rank; the reason says why
    BLOCKED = "blocked"  # coverage under the floor; the reason is the commonest failure
    TOO_FEW = "too_few"  # fewer prompts than a comparison needs


class ComparisonReason(StrEnum):
    """Why a comparison has no delta, or no p; why a row of `standings` has no rank."""

    RUBRIC_DIFFERS = "rubric_differs"  # the two were judged by different versions of the rubric
    JUDGE_DIFFERS = "judge_differs"  # only another judge judged the other one
    ANSWERING_MODEL_DIFFERS = "answering_model_differs"  # under the judge's name one model answered for a and another for b
    DATASET_DIFFERS = "dataset_differs"  # they share no prompt in this category
    BASELINE_MISSING = "baseline_missing"  # no sample of this benchmark is the baseline's
    TOO_FEW_PAIRED_PROMPTS = "too_few_paired_prompts"  # fewer prompts scored for both than the benchmark file asks for
    NO_SUCH_TOTAL = "no_such_total"  # one of the two cells is null: benchmark_long says why
    BLOCKED = "blocked"  # one of the two cells is blocked: benchmark_long says why
    NO_VARIATION = "no_variation"  # the prompts' differences do not vary, and do not agree in sign over the categories
    ALONE = "alone"  # there is no other with an estimate
    TOO_MANY_TO_RANK = "too_many_to_rank"  # more checkpoints than statistics.max_ranked


class RatedState(StrEnum):
    """Whether a row of `preference_ratings` has a rating."""

    RATED = "rated"  # wins and losses lead from it to every other rated one, and back
    NOT_RATED = "not_rated"  # no finite rating exists; the reason says why
    BLOCKED = "blocked"  # none follows from the pairs that may count: with some opponents coverage is under the floor


class RatingReason(StrEnum):
    """Why pairs give a checkpoint no rating."""

    NOT_JUDGED = "not_judged"  # none of its pairs has a verdict
    UNJUDGED = "unjudged"  # blocked: too few pairs have a verdict in both orders
    ISLAND = "island"  # no chain of judged pairs leads from it to the rated ones
    WON_ALL = "won_all"  # it, or the group it is in, lost and tied nothing against the rated ones: stronger than any number
    LOST_ALL = "lost_all"  # it, or the group it is in, won and tied nothing against the rated ones
    SEPARATED = "separated"  # joined to them only through checkpoints that won or lost everything
    TOO_FEW_PROMPTS = "too_few_prompts"  # of a rated one without an interval: judged on one prompt
    NO_VARIATION = "no_variation"  # of a rated one without an interval: every prompt says the same


class PairReason(StrEnum):
    """Why a row of `preferences` or `position_bias` lacks a figure, where CellReason and ComparisonReason do not say it."""

    UNJUDGED = "unjudged"  # too few pairs have a verdict in both orders: coverage is under the floor, or nothing was judged
    STOPPED_EARLY = "stopped_early"  # asked on fewer prompts than planned: only the total that was watched while asking is tested


class HealthMeasure(StrEnum):
    """What a row of `health` measures."""

    N_JUDGEMENTS = "n_judgements"  # judgements of the plan
    N_PLANNED = "n_planned"  # of them with a request
    N_AGAIN = "n_again"  # of them of samples that are earlier ones again, whose judgement counts for both; no row where none is
    N_REQUESTS = "n_requests"  # distinct requests behind them: fewer where samples share a question
    N_WITHOUT_SCORE = "n_without_score"  # judgements with a dimension without a score that counts; the word is the reason
    N_REPLIES = "n_replies"  # asks by how they ended; the word is the reply's status
    N_SAID = "n_said"  # asks without a completion by what the provider said of it, the commonest ones; the word is its sentence
    N_REASKED = "n_reasked"  # requests that were asked a second time
    N_ATTEMPTS = "n_attempts"  # attempts, retries included
    N_ANSWERED_BY = "n_answered_by"  # replies by the model that says it answered; the word is its name
    LATENCY_S = "latency_s"  # quantile of the answered asks' latency; the word is the quantile
    N_INPUT_TOKENS = "n_input_tokens"  # sum over asks that say
    N_OUTPUT_TOKENS = "n_output_tokens"  # sum over asks that say
    COST_USD = "cost_usd"  # sum over asks whose price is known
