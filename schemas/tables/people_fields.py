"""The columns of ratings, of agreement with people, and of several judges as one. All others are fields.py and its neighbours."""

from schemas.statuses.people import AgreementMetric, Assessor, Estimator, RatingStatus
from schemas.tables.field import count, flag, number, share, text

# --- against people ---------------------------------------------------------------------------------------------
RATING_KEY = text("rating_key", "Where the rating is: file, row, column and dimension.")
RATER = text(
    "rater", "Name of the rater or metric. Anonymous raters are `__unnamed_1__` and so on, numbered anew for each sample or pair."
)
RATER_KIND = text("kind", "Whether a person or an automatic metric gave the rating.", values=Assessor)
RATING = number("rating", "The number as given; null if there is none.")
RATING_SCALE_LOW = number("scale_low", "Lower end of the rater's declared scale.")
RATING_SCALE_HIGH = number("scale_high", "Upper end of the rater's declared scale.")
RATING_STEP = number("scale_step", "Step of the rater's scale; null if any number is allowed.", low=0)
RATING_STATUS = text("status", "Whether the rating or vote counts, and if not, why.", values=RatingStatus)
SUBJECT_KIND = text("subject_kind", "What kind of assessor the subject is.", values=Assessor)
SUBJECT = text(
    "subject", "Name of the judge, metric or rater; `__each_other__` for all raters at once, `__each_rater__` for every vote."
)
AGAINST = text(
    "against",
    "What the subject is compared with: a rater, the judge of `--against-judge`, `__raters_mean__`, `__other_raters_mean__` or "
    "`__each_other__`; for votes also `__raters_majority__` or `__other_raters_majority__`.",
)
AGAINST_DIMENSION = text("against_dimension", "The dimension that `against` rated; null if it is the same.", null=True)
AGREEMENT_MODEL = text("model", "The image model that made the samples, or `__all__`.")
AGREEMENT_CHECKPOINT = text("checkpoint", "The checkpoint, or `__all__`.")
AGREEMENT_CATEGORY = text("category", "The category, or `__micro__` for all samples.")
AGREEMENT_METRIC = text("metric", "How subject and `against` are compared.", values=AgreementMetric)
AGREEMENT_SCALE_LOW = number(
    "scale_low", "Lower end of the scale that both were mapped to; null if only ranks, or votes, are compared."
)
AGREEMENT_SCALE_HIGH = number(
    "scale_high", "Upper end of the scale that both were mapped to; null if only ranks, or votes, are compared."
)
N_ITEMS = count("n_items", "Samples that both assessed. For `system_` metrics: checkpoints; for votes: pairs of pictures.")
N_RATERS = count(
    "n_raters",
    "People whose ratings the figure uses (anonymous: the most that rated one sample); 1 if a judge is the reference.",
)
N_RATERS_BESIDE = N_RATERS.not_null(
    "People whose ratings the figure uses (anonymous: the most that rated one sample); 1 if a judge is the reference. With the "
    "estimator `judge`, which uses none, those of the rows beside it."
)
N_ITEM_PROMPTS = count("n_prompts", "Prompts of those samples (the units of the interval).")
JUDGE_OR_NULL = text("judge_model", "The judge; null if the figure is from people (or the reference judge) alone.", null=True)
ESTIMATOR = text("estimator", "How the figure is estimated.", values=Estimator)
TUNING = number("power_tuning", "Weight of the judge's scores (lambda); null for other estimators.")
N_LABELLED = count("n_prompts_labelled", "Prompts with human ratings.")
N_ALL_PROMPTS = count("n_prompts", "Prompts that the estimator uses.")
HAS_UNEVEN_PROMPTS = flag(
    "has_uneven_prompts",
    "Whether some prompts of a category have more scored pictures than others; then this mean over prompts can differ from the "
    "leaderboard's mean over pictures. Null for people's own means.",
    null=True,
)
PROMPT_SE = number("se", "Standard error of the estimate, with prompts as independent units; it includes rater_se.", low=0)

# --- several judges as one --------------------------------------------------------------------------------------
JUDGES_JSON = text(
    "judges_json",
    'Each judge\'s mean over the same samples, a JSON object such as {"eye-1":7.5,"eye-2":7.1}; null for one without an '
    "estimate, and for all where the cell has none: benchmark_long has each judge's own.",
)
JUDGE_SPREAD = number("judge_spread", "Highest minus lowest of the judges' means over the same samples.", low=0)
N_POOLED_SAMPLES = count("n_samples", "Samples in the cell, scored or not, but for those that no judge finds applicable.")
N_POOLED_JUDGEMENTS = count(
    "n_judgements", "Judgements by all judges together: of a sample as many as the most repeats of a judge."
)
N_POOLED_FAILED = count(
    "n_failed",
    "Those of n_judgements without a score: of a sample the largest share that a judge lacks, rounded up; a sample that "
    "some judges score and others call not applicable lacks one. `failures` has each judge's reasons.",
)
N_POOLED_IMAGES = count("n_images", "Samples that every judge scored; the figure is over these.")
POOLED_COVERAGE = share("coverage", "1 - n_failed / n_judgements; null without judgements.")
