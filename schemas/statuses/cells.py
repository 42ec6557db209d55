"""All statuses and reasons of published cells, comparisons and rankings. For figures against people: people.py."""

from enum import StrEnum


class CellStatus(StrEnum):
    """Whether a published figure has an estimate and an interval."""

    OK = "ok"  # an estimate with its interval
    NO_INTERVAL = "no_interval"  # an estimate without an interval; the reason says why, and is null for counts (`unscored`)
    BLOCKED = "blocked"  # coverage is below the floor; the reason is the most common failure
    NULL = "null"  # the number does not exist; the reason says why


class CellReason(StrEnum):
    """Why a published cell lacks its estimate or its interval, if no failure reason says it."""

    NOT_IN_ALL_CATEGORIES = "not_in_all_categories"  # a total of a dimension that not every category is asked about
    SCALES_DIFFER = "scales_differ"  # of older publications: a total of a figure whose scale differs between categories
    CATEGORY_MISSING = "category_missing"  # a `__macro__` mean that lacks a category which others in the benchmark have
    NOT_APPLICABLE = "not_applicable"  # it applies to no judgement, or to none in the category that a `__macro__` mean lacks
    TOO_FEW_PROMPTS = "too_few_prompts"  # a category with only one scored prompt, so the variance between prompts is unknown
    NO_VARIATION = "no_variation"  # every prompt has the same mean, and it is not an end of the scale
    ONE_IMAGE_PER_PROMPT = "one_image_per_prompt"  # for `these_prompts`: no prompt has two scored samples, so nothing varies


class Total(StrEnum):
    """Values of the category column that are not categories of the data."""

    MACRO = "__macro__"  # the unweighted mean of the category means
    MICRO = "__micro__"  # the mean over all images
    UNNAMED = "__unnamed__"  # the samples without a category, if other samples have one


class Estimand(StrEnum):
    """The population of prompts that a figure is about."""

    PROMPTS_LIKE_THESE = "prompts_like_these"  # the prompts are a sample of such prompts: for claims about a model
    THESE_PROMPTS = "these_prompts"  # the prompts are all there are, and only pictures and replies vary: for trends


class ComparisonKind(StrEnum):
    """Why two checkpoints are compared."""

    PREDECESSOR = "predecessor"  # b is the checkpoint directly before a, of the same model
    BASELINE = "baseline"  # b is the benchmark file's baseline
    EACH_OTHER = "each_other"  # every two checkpoints of a ranking; rank ranges follow from these


class ComparisonTest(StrEnum):
    """The test that a comparison's p comes from."""

    PAIRED_T = "paired_t_clustered"  # Student's t over paired prompts
    SIGN_FLIP = "sign_flip"  # exact sign-flip test: sixteen prompts or fewer, or every prompt differs by the same amount
    SCORE_T = "score_t_clustered"  # for win rates: Wilson's score test over prompts, with Student's t
    ANYTIME = "anytime_valid"  # for adaptive pairs: a betting test, and the score test once all prompts were asked


class Failing(StrEnum):
    """Which of a comparison's two checkpoints fails unequally."""

    A = "a"
    B = "b"
    BOTH = "both"  # one more often, the other where scores are low


class Correction(StrEnum):
    """How p and intervals are corrected for the number of comparisons in a family."""

    BONFERRONI = "bonferroni"  # in at least 95 % of families, no difference found is false
    BENJAMINI_HOCHBERG = "benjamini_hochberg"  # on average, at most 5 % of the differences found are false


class ComparisonVerdict(StrEnum):
    """What a comparison says about a, after correction for its family."""

    HIGHER = "higher"  # a is higher than b
    LOWER = "lower"  # a is lower than b
    OPEN = "open"  # these prompts cannot tell
    FAILURES_COULD_TURN_IT = "failures_could_turn_it"  # there is a difference, but the judgements without a score could undo it


class StandingState(StrEnum):
    """Whether a row of `standings` has a rank, or why not."""

    RANKED = "ranked"  # compared with every other ranked checkpoint
    NOT_COMPARED = "not_compared"  # no rank, perhaps with an estimate; the reason says why
    BLOCKED = "blocked"  # coverage is below the floor; the reason is the most common failure
    TOO_FEW = "too_few"  # fewer prompts than a comparison needs


class ComparisonReason(StrEnum):
    """Why a comparison lacks its delta or p, or a row of `standings` its rank."""

    RUBRIC_DIFFERS = "rubric_differs"  # different versions of the rubric judged the two
    JUDGE_DIFFERS = "judge_differs"  # only a different judge judged the other checkpoint
    ANSWERING_MODEL_DIFFERS = "answering_model_differs"  # under the judge's name, different models answered for a and b
    DATASET_DIFFERS = "dataset_differs"  # the two share no prompt in this category
    PREDECESSOR_MISSING = "predecessor_missing"  # the checkpoint directly before is known, but not judged here
    BASELINE_MISSING = "baseline_missing"  # no sample of this benchmark belongs to the baseline
    TOO_FEW_PAIRED_PROMPTS = "too_few_paired_prompts"  # fewer prompts scored for both than the benchmark file requires
    NO_SUCH_TOTAL = "no_such_total"  # one of the two cells is null; `benchmark_long` says why
    BLOCKED = "blocked"  # one of the two cells is blocked, or all to rank it with; `benchmark_long` says why
    NO_VARIATION = "no_variation"  # the prompts' differences do not vary: no interval, and no p if categories differ in sign
    ALONE = "alone"  # no other checkpoint has an estimate, and none is blocked
    TOO_MANY_TO_RANK = "too_many_to_rank"  # more checkpoints than `statistics.max_ranked`


class RatedState(StrEnum):
    """Whether a row of `preference_ratings` has a rating."""

    RATED = "rated"  # chains of wins and losses connect it with every other rated checkpoint, both ways
    NOT_RATED = "not_rated"  # no finite rating exists; the reason says why
    BLOCKED = "blocked"  # too few pairs with some opponents have a verdict (see `unjudged`), and the others give no rating


class RatingReason(StrEnum):
    """Why a checkpoint has no rating, or no interval for it."""

    NOT_JUDGED = "not_judged"  # none of its pairs has a verdict
    UNJUDGED = "unjudged"  # blocked: too few pairs have a verdict in both orders, or none of one category
    ISLAND = "island"  # no chain of judged pairs leads from it to the rated checkpoints
    WON_ALL = "won_all"  # it, or its group, lost and tied nothing against the rated ones: stronger than any number
    LOST_ALL = "lost_all"  # it, or its group, won and tied nothing against the rated ones: weaker than any number
    SEPARATED = "separated"  # connected to the rated ones only through checkpoints that won or lost everything
    TOO_FEW_PROMPTS = "too_few_prompts"  # rated, but without an interval: judged on one prompt
    NO_VARIATION = "no_variation"  # rated, but without an interval: every prompt says the same


class PairReason(StrEnum):
    """Why a row of `preferences` or `position_bias` lacks a figure, if CellReason and ComparisonReason do not say it."""

    UNJUDGED = "unjudged"  # too few pairs have a verdict in both orders (coverage is below the floor), or none of a category
    STOPPED_EARLY = "stopped_early"  # asking stopped before all planned prompts; only the total that was watched is tested


class HealthMeasure(StrEnum):
    """What a row of `health` measures."""

    N_JUDGEMENTS = "n_judgements"  # judgements in the plan
    N_PLANNED = "n_planned"  # those of them that have a request
    N_AGAIN = "n_again"  # those of them whose sample is a duplicate and shares the first one's judgement; no row if none
    N_REQUESTS = "n_requests"  # distinct requests behind them; more if a sample takes several, fewer if samples share a question
    N_WITHOUT_SCORE = "n_without_score"  # judgements that lack a score that counts in some dimension; `word` is the reason
    N_REPLIES = "n_replies"  # asks by how they ended; `word` is the reply's status
    N_SAID = "n_said"  # failed asks by the provider's message, the most common ones; `word` is the message
    N_FILTER_SAID = "n_filter_said"  # the same of filtered asks
    N_CUT = "n_cut"  # answered asks that the provider cut at a length; `word` is its finish reason
    N_REASKED = "n_reasked"  # requests that were asked a second time
    N_ATTEMPTS = "n_attempts"  # attempts, including retries
    N_ANSWERED_BY = "n_answered_by"  # replies by answering model; `word` is its name
    LATENCY_S = "latency_s"  # latency of answered asks; `word` is the quantile (`p50`, `p90`, `p99`)
    N_INPUT_TOKENS = "n_input_tokens"  # sum over the asks that report them
    N_OUTPUT_TOKENS = "n_output_tokens"  # sum over the asks that report them
    COST_USD = "cost_usd"  # sum over the asks whose price is known; a request that several checkpoints share counts in each
