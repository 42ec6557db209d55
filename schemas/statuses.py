"""The closed sets of words that table columns hold: one line a word saying when it is used. No logic."""

from enum import StrEnum


class SampleStatus(StrEnum):
    """What ingest found."""

    OK = "ok"  # usable; the image, if the row has one, decodes
    MISSING_FILE = "missing_file"  # the manifest names a file that is not there
    NOT_A_FILE = "not_a_file"  # a folder, a device, a link: not a regular file
    OUTSIDE_ROOT = "outside_root"  # the path, or the link it is, leaves the source's folder
    REMOTE_REFUSED = "remote_refused"  # a URL; Salon does not fetch
    EMPTY_FILE = "empty_file"  # zero bytes
    FILE_TOO_LARGE = "file_too_large"  # more bytes than an image may have
    NOT_AN_IMAGE = "not_an_image"  # no allowed decoder knows these bytes
    TOO_MANY_PIXELS = "too_many_pixels"  # above the pixel cap, refused before decoding
    BROKEN_IMAGE = "broken_image"  # the header is good, decoding fails
    MISSING_VALUE = "missing_value"  # a column this source needs is null in this row
    BAD_VALUE = "bad_value"  # a value that is not of the column's type
    DUPLICATE = "duplicate"  # the same content and role as an earlier sample, whose judgement counts for both
    REPEATED_ID = "repeated_id"  # another content under the id of an earlier row, which counts


class TextFlag(StrEnum):
    """What a sample's text holds that may be meant for the judge. The text is never altered; whoever reads the scores is told."""

    ADDRESSES_JUDGE = "addresses_judge"  # speaks to whoever judges, or asks for a score or for instructions to be set aside
    IMITATES_ANSWER = "imitates_answer"  # holds what looks like a judge's answer: a label or key with a number
    IMITATES_STRUCTURE = "imitates_structure"  # holds marks that divide a conversation: roles, template tokens, <chatend>
    HIDDEN_CHARACTERS = "hidden_characters"  # holds characters that people do not see and models read


class JudgementStatus(StrEnum):
    """What the plan decided about one sample under one rubric."""

    PLANNED = "planned"  # there is a request for it
    DUPLICATE = "duplicate"  # of older releases: an earlier sample again, no part of any figure; now planned as that one is
    UNUSABLE_SAMPLE = "unusable_sample"  # ingest found that the sample cannot be used
    MISSING_COLUMN = "missing_column"  # the rubric needs a value this sample does not have
    NO_PROMPT = "no_prompt"  # the rubric has no prompt for the sample's category
    UNKNOWN_VALUE = "unknown_value"  # a column holds a word that is not among those the rubric says it may hold


class ReplyStatus(StrEnum):
    """How one ask ended, mapped from the provider's errors in the client and nowhere else."""

    ANSWERED = "answered"  # a conforming completion arrived
    FILTERED = "filtered"  # the provider's content policy refused the request or the answer
    REJECTED = "rejected"  # the provider calls the request invalid (4xx); asked once
    UNAUTHORIZED = "unauthorized"  # the key is not accepted (401, 403)
    NO_CREDIT = "no_credit"  # insufficient_quota: the account is empty
    RATE_LIMITED = "rate_limited"  # 429 until the attempts were used up
    SERVER_ERROR = "server_error"  # 5xx until the attempts were used up
    TIMED_OUT = "timed_out"  # no complete reply within the deadline; may have been billed
    UNREACHABLE = "unreachable"  # no connection, or reset
    BAD_RESPONSE = "bad_response"  # a 200 that is not a completion
    NOT_ASKED = "not_asked"  # planned, never sent


FINAL_REPLY_STATUSES = frozenset({ReplyStatus.ANSWERED, ReplyStatus.FILTERED, ReplyStatus.REJECTED})
"""Asked once and kept for ever; every other status is asked again by the next run."""
PROVIDER_FAILURES = frozenset({
    ReplyStatus.SERVER_ERROR, ReplyStatus.TIMED_OUT, ReplyStatus.BAD_RESPONSE, ReplyStatus.RATE_LIMITED,
})  # fmt: skip
"""The provider's own failures, of one request or of all."""


class ReplyOrigin(StrEnum):
    """Where a reply came from."""

    ASKED = "asked"  # bought by Salon, one request at a time
    BATCH = "batch"  # bought through the provider's Batch API, or from a file of results
    RECORDED = "recorded"  # imported: the reply text as it was recorded elsewhere
    REBUILT = "rebuilt"  # imported: the text was rebuilt from columns by a template


class ScoreStatus(StrEnum):
    """What became of one dimension of one request."""

    SCORED = "scored"  # the reply says it, readable, on the scale, no rule against it
    RULE_VIOLATION = "rule_violation"  # readable, kept on the row, out of the mean
    UNREADABLE = "unreadable"  # there is a reply and no score; the reason says why
    NO_REPLY = "no_reply"  # there is no reply; the reason is the reply's status
    NOT_APPLICABLE = "not_applicable"  # the reply says so in a declared word: out of mean and coverage, counted beside them
    NOT_ASKED_FOR = "not_asked_for"  # an item whose parent failed, by the rubric's own rule: as what is not applicable
    MISSING_OPERAND = "missing_operand"  # a derived figure, and something it is made of has no score; the reason is that one's


class PairOutcome(StrEnum):
    """What both orders of a pair say together; a is the checkpoint whose name comes first."""

    WIN_A = "win_a"
    TIE = "tie"
    WIN_B = "win_b"
    ORDER_DEPENDENT = "order_dependent"  # both were read, and they differ: the place decided, not the picture
    UNJUDGED = "unjudged"  # one of the two, or both, could not be read or never came


NO_FAILURES = frozenset({ScoreStatus.NOT_APPLICABLE, ScoreStatus.NOT_ASKED_FOR})
"""Statuses without a score that are no failures: in neither mean nor coverage, counted beside them."""


class ParseReason(StrEnum):
    """Why a reply gave no score; the order is the precedence of docs/replies.md."""

    EMPTY = "empty"
    REFUSAL = "refusal"
    MISSING_INPUT = "missing_input"
    TRUNCATED = "truncated"
    NOT_FOUND = "not_found"
    TEMPLATE_ECHO = "template_echo"
    MISSING_KEY = "missing_key"
    MALFORMED = "malformed"
    WRONG_TYPE = "wrong_type"
    NON_INTEGER = "non_integer"
    OUT_OF_RANGE = "out_of_range"
    SCALE_MISMATCH = "scale_mismatch"
    AMBIGUOUS = "ambiguous"
    RULE_VIOLATION = "rule_violation"
    NOT_APPLICABLE = "not_applicable"
    NOT_ASKED_FOR = "not_asked_for"


class CellStatus(StrEnum):
    """What a published cell is."""

    OK = "ok"  # an estimate with its interval
    NO_INTERVAL = "no_interval"  # an estimate; the reason says why there is no interval
    BLOCKED = "blocked"  # coverage under the floor; the reason is the commonest failure
    NULL = "null"  # no such number exists; the reason says why


class CheckStatus(StrEnum):
    """How one data check ended."""

    PASSED = "passed"
    FAILED = "failed"


class CheckSeverity(StrEnum):
    """What a failed data check does."""

    BLOCKING = "blocking"  # stops publication
    WARNING = "warning"  # is published beside the table


class CellReason(StrEnum):
    """Why a published cell lacks its estimate or its interval, where no failure word says it."""

    NOT_IN_ALL_CATEGORIES = "not_in_all_categories"  # a total of a dimension that not every category is asked about
    SCALES_DIFFER = "scales_differ"  # a total of a dimension whose scale is not the same in every category
    CATEGORY_MISSING = "category_missing"  # a macro mean without a category that others of the benchmark have
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
    SIGN_FLIP = "sign_flip"  # twelve prompts or fewer, or every prompt differs by the same amount: exact, all signs flipped
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


class RatingReason(StrEnum):
    """Why pairs give a checkpoint no rating."""

    NOT_JUDGED = "not_judged"  # none of its pairs has a verdict
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
