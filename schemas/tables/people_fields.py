"""The columns of ratings, of agreement with people, and of several judges as one. All others are fields.py and its neighbours."""

import pyarrow as pa

from schemas.statuses.people import AgreementMetric, Assessor, Estimator, RatingStatus
from schemas.tables.field import Field, count, number, text

# --- against people ---------------------------------------------------------------------------------------------
RATING_KEY = text("rating_key", "Where the cell stands: file, row, column and dimension.")
RATER = text(
    "rater", "The rater's, or metric's, name; of people without one `__unnamed_1__` and so on, anew for each sample, or pair."
)
RATER_KIND = text("kind", "A person or an automatic metric.", values=Assessor)
RATING = number("rating", "The number as it was given; null where there is none.")
RATING_SCALE_LOW = number("scale_low", "Lower end of the rater's declared scale.")
RATING_SCALE_HIGH = number("scale_high", "Upper end of the rater's declared scale.")
RATING_STEP = number("scale_step", "Distance of two labels of the rater's scale; null where any number is allowed.", low=0)
RATING_STATUS = text("status", "What became of the cell, or the vote.", values=RatingStatus)
SUBJECT_KIND = text("subject_kind", "What is compared.", values=Assessor)
SUBJECT = text(
    "subject", "The judge's, metric's or rater's name; `__raters__` for all raters at once, `__each_rater__` for every vote."
)
AGAINST = text(
    "against",
    "A rater's name, or the judge's of --against-judge, `__raters_mean__`, `__other_raters_mean__` or `__each_other__`; "
    "of votes `__raters_majority__`, `__other_raters_majority__`.",
)
AGAINST_DIMENSION = text("against_dimension", "The dimension `against` rated; null where it is the same.", null=True)
AGREEMENT_MODEL = text("model", "The image model that made the samples; `__all__` for all.")
AGREEMENT_CHECKPOINT = text("checkpoint", "The checkpoint; `__all__` for all.")
AGREEMENT_CATEGORY = text("category", "The category; `__micro__` for all samples.")
AGREEMENT_METRIC = text("metric", "How they are compared.", values=AgreementMetric)
AGREEMENT_SCALE_LOW = number("scale_low", "Lower end of the scale both were put on; null for ranks alone.")
AGREEMENT_SCALE_HIGH = number("scale_high", "Upper end of the scale both were put on; null for ranks alone.")
N_ITEMS = count("n_items", "Samples both assessed; of a `system_` metric, checkpoints; of votes, pairs of pictures.")
N_RATERS = count(
    "n_raters",
    "Persons whose ratings are in the figure, of unnamed ones the most that rated one sample; 1 where a judge stands in their "
    "place.",
)
N_ITEM_PROMPTS = count("n_prompts", "Prompts of those samples: the units of the interval.")
JUDGE_OR_NULL = text("judge_model", "The judge; null where people alone, or who stands in their place, are meant.", null=True)
ESTIMATOR = text("estimator", "How the mean was made.", values=Estimator)
TUNING = number("power_tuning", "How much of the judge's scores is used (lambda); null for other estimators.")
N_LABELLED = count("n_prompts_labelled", "Prompts with ratings.")
N_ALL_PROMPTS = count("n_prompts", "Prompts the estimator uses.")
HAS_UNEVEN_PROMPTS = Field(
    "has_uneven_prompts",
    pa.bool_(),
    "Within a category some prompts have more scored pictures than others: this mean, over prompts, can differ from the "
    "leaderboard's, over pictures. Null for people's own.",
    is_nullable=True,
)
PROMPT_SE = number("se", "Standard error with prompts as independent units.", low=0)

# --- several judges as one --------------------------------------------------------------------------------------
JUDGES_JSON = text(
    "judges_json", 'Each judge\'s mean over the same samples, JSON object such as {"eye-1":7.5,"eye-2":7.1}; null where blocked.'
)
JUDGE_SPREAD = number("judge_spread", "Highest less lowest of the judges' means over the same samples.", low=0)
N_POOLED_SAMPLES = count("n_samples", "Samples the cell should hold.")
N_POOLED_FAILED = count("n_failed", "Samples that not every judge scored; the judges' own reasons are in `failures`.")
N_POOLED_IMAGES = count("n_images", "Samples that every judge scored: what the figure is taken over.")
POOLED_COVERAGE = number("coverage", "n_images / n_samples.", low=0, high=1)
