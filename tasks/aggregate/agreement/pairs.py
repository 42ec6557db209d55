"""Who is held against whom over which samples: judges, metrics and raters of one dimension. The figures are agreement.py.

Everything that can be is put on the rubric's scale: a judge's scores stand there already, people's ratings by the linear
map between the scale they declare and the rubric's. What declares no scale keeps its numbers and is compared by ranks alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from rubrics.model import Rubric
from schemas.metrics import IS_OF_WHOLE
from schemas.statuses.cells import Total
from schemas.statuses.people import Against, Assessor, held_by_name, is_named
from schemas.statuses.rows import JudgementStatus, ReplyStatus, ScoreStatus
from tasks.aggregate.intervals import Floats, on_grid
from tasks.aggregate.scales import scale

ALL = "__all__"
_DIGITS = 14
"""Of one number, more than of a mean of several: rounded twice to as many, equal means would differ again."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scope:
    """Some samples (`rows`, over all items) and their prompts, sorted; `clusters` numbers each sample's prompt, shape (n,)."""

    model: str
    checkpoint: str
    category: str
    rows: Mask
    prompts: tuple[str, ...]
    clusters: npt.NDArray[np.int64]


def scopes(items: pl.DataFrame, wanted: Mask) -> Iterator[Scope]:
    """All wanted samples, always; then every category and every checkpoint that has some, where there is more than one.

    `items` needs prompt_id, category, model and checkpoint; a null category beside named ones is `__unnamed__`.
    """
    prompts = items["prompt_id"].to_numpy()
    yield _scope(ALL, ALL, Total.MICRO.value, wanted, prompts)
    if items["category"].null_count() < items.height:
        named = items["category"].fill_null(Total.UNNAMED.value)
        for category in named.unique().sort():
            rows = wanted & (named == category).to_numpy()
            if rows.any():
                yield _scope(ALL, ALL, category, rows, prompts)
    makers = items.select("model", "checkpoint").unique().sort("model", "checkpoint")
    for model, checkpoint in makers.iter_rows() if makers.height > 1 else ():
        rows = wanted & ((items["model"] == model) & (items["checkpoint"] == checkpoint)).to_numpy()
        if rows.any():
            yield _scope(model, checkpoint, Total.MICRO.value, rows, prompts)


def _scope(model: str, checkpoint: str, category: str, rows: Mask, prompts: npt.NDArray[np.object_]) -> Scope:
    names, clusters = np.unique(prompts[rows].astype(str), return_inverse=True)
    return Scope(model, checkpoint, category, rows, tuple(names.tolist()), clusters.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Assessment:
    """The numbers one judge, metric or person gave in a dimension: for each sample of `Rated.items` one, NaN where none.

    `step` is the distance of two labels on the rubric's scale, None where any number can be; `has_scale` says whether the
    numbers stand on the rubric's scale. `failed`: the samples that a judge was asked about and gave no score.
    """

    kind: Assessor
    name: str
    values: Floats
    step: float | None
    has_scale: bool
    failed: Mask | None = None


@dataclass(frozen=True, slots=True)
class Rated:
    """One dimension of one rubric: its samples, sorted, and everybody's numbers for them."""

    rubric: Rubric
    dimension: str
    low: float
    high: float
    items: pl.DataFrame  # sample_id, prompt_id, category, model, checkpoint
    judges: tuple[Assessment, ...]
    metrics: tuple[Assessment, ...]
    raters: tuple[Assessment, ...]

    @property
    def by_name(self) -> list[Assessment]:
        """The raters who are held against others by name; all of them count in means and alphas."""
        names = held_by_name(rater.name for rater in self.raters)
        return [rater for rater in self.raters if rater.name in names]

    @property
    def are_named(self) -> Mask:
        """Which raters are one person each, shape (raters,): only what these lean to is known."""
        return np.array([is_named(rater.name) for rater in self.raters], dtype=bool)

    def raters_values(self, without: str | None = None) -> Floats:
        """Shape (samples, raters): the persons' numbers, less one person's."""
        columns = [rater.values for rater in self.raters if rater.name != without]
        return np.column_stack(columns) if columns else np.empty((self.items.height, 0))


@dataclass(frozen=True, slots=True)
class Pair:
    """A subject and what it is held against, over the same samples."""

    subject: Assessment
    against: str
    other: Assessment
    n_raters: int


def pairs(rated: Rated) -> Iterator[Pair]:
    """Judges and metrics against the raters' mean and each rater; each rater against each other and against the rest's mean.

    Where there is one rater, he is his own mean and keeps his labels: the pair names him. Others are in means alone.
    """
    raters, n = rated.by_name, len(rated.raters)
    for subject in (*rated.judges, *rated.metrics):
        if n == 1 and not raters:
            yield Pair(subject, Against.RATERS_MEAN.value, rated.raters[0], n)
        if n != 1:
            yield Pair(_to_means(rated, subject), Against.RATERS_MEAN.value, people(rated, Against.RATERS_MEAN), n)
        for rater in raters:
            yield Pair(subject, rater.name, rater, 1)
    for place, rater in enumerate(raters):
        for other in raters[place + 1 :]:
            yield Pair(rater, other.name, other, 2)
        if n > 2:
            rest = people(rated, Against.OTHER_RATERS_MEAN, without=rater.name)
            yield Pair(_to_means(rated, rater), rest.name, rest, n)


def people(rated: Rated, name: Against, without: str | None = None) -> Assessment:
    """The mean of the raters, less one, as an assessment of its own; a mean is no label."""
    has_scale = all(rater.has_scale for rater in rated.raters)
    mean = mean_of_raters(rated.raters_values(without))
    return _to_means(rated, Assessment(Assessor.RATERS, name.value, mean, None, has_scale))


def _to_means(rated: Rated, one: Assessment) -> Assessment:
    """The same, rounded as means are: a number that is equal to a mean is so beside it. One of no scale equals none."""
    is_metric = one.kind is Assessor.METRIC and not one.has_scale
    size = max(abs(rated.low), abs(rated.high)) if one.has_scale else None
    return one if is_metric else replace(one, values=on_grid(one.values, size))


def mean_of_raters(values: Floats) -> Floats:
    """The mean over those who rated the sample, NaN where nobody did; shape (samples, raters) in, (samples,) out."""
    n_each = np.sum(~np.isnan(values), axis=1)
    return np.where(n_each > 0, np.nansum(values, axis=1) / np.maximum(n_each, 1), np.nan)


def rated_dimension(
    items: pl.DataFrame, scores: pl.DataFrame, ratings: pl.DataFrame, rubric: Rubric, dimension: str, judges: list[str]
) -> Rated:
    """Put one dimension's numbers side by side. `items` as items_of(), `scores` as judge_values(), `ratings` the usable ones."""
    low, high = scale(rubric, None, dimension)
    step = next(one.step for one in rubric.dimensions if one.key == dimension)
    mine = ratings.filter(pl.col("dimension") == dimension)
    found = {kind: _of_kind(items, mine.filter(pl.col("kind") == kind.value), kind, (low, high)) for kind in _RATING_KINDS}
    asked = scores.filter(pl.col("dimension") == dimension)
    size = max(abs(low), abs(high))
    judged = tuple(_judge(items, asked.filter(pl.col("judge_model") == name), name, step, size) for name in judges)
    return Rated(rubric, dimension, low, high, items, judged, found[Assessor.METRIC], found[Assessor.RATER])


def _judge(items: pl.DataFrame, asked: pl.DataFrame, name: str, step: float | None, size: float) -> Assessment:
    failed = items["sample_id"].is_in(asked.filter(pl.col("score").is_null())["sample_id"].implode()).to_numpy()
    values = on_grid(_column(items, asked, "score"), size, _DIGITS)
    return Assessment(Assessor.JUDGE, name, values, step, has_scale=True, failed=failed)


def held_against(rated: Rated, judge: str) -> Rated:
    """The same dimension with this judge in the place of the raters."""
    others = tuple(one for one in rated.judges if one.name != judge)
    return replace(rated, judges=others, raters=tuple(one for one in rated.judges if one.name == judge))


_RATING_KINDS = (Assessor.METRIC, Assessor.RATER)
_ASIDE = (ScoreStatus.NOT_APPLICABLE.value, ScoreStatus.NOT_ASKED_FOR.value)


def items_of(judgements: pl.LazyFrame, rubric: Rubric) -> pl.DataFrame:
    """The rubric's samples, once each, sorted: what they are and which prompt they belong to."""
    mine = judgements.filter(pl.col("rubric_id") == rubric.id, pl.col("occasion") == "")
    columns = ["sample_id", "prompt_id", "category", "model", "checkpoint"]
    return mine.select(columns).unique("sample_id", keep="any").sort("sample_id").collect()


def judge_values(judgements: pl.LazyFrame, scores: pl.LazyFrame, rubric: Rubric) -> pl.DataFrame:
    """judge_model, sample_id, dimension, score: repeats averaged; only scores that count. Duplicates are not rated: no part.

    The score is null where the sample was asked about, and no repeat has one.
    """
    mine = judgements.filter(
        pl.col("rubric_id") == rubric.id, pl.col("occasion") == "", pl.col("status") == JudgementStatus.PLANNED.value,
        pl.col("duplicate_of_sample_id").is_null(),
    )  # fmt: skip
    is_asked = ~pl.col("status").is_in(_ASIDE) & pl.col("reason").ne_missing(ReplyStatus.NOT_ASKED.value)
    counted = scores.filter(pl.col("rubric_id") == rubric.id, is_asked, IS_OF_WHOLE)
    counted = counted.with_columns(score=pl.when(pl.col("status") == ScoreStatus.SCORED.value).then("score"))
    joined = mine.select("judge_model", "sample_id", "repeat", "request_key").join(
        counted.select("request_key", "dimension", "score"), on="request_key"
    )
    ordered = joined.sort("judge_model", "sample_id", "dimension", "repeat").collect()
    keys = ["judge_model", "sample_id", "dimension"]
    return ordered.group_by(keys, maintain_order=True).agg(pl.col("score").mean())


def _of_kind(items: pl.DataFrame, ratings: pl.DataFrame, kind: Assessor, ends: tuple[float, float]) -> tuple[Assessment, ...]:
    names = ratings["rater"].unique().sort().to_list()
    return tuple(_assessment(items, ratings.filter(pl.col("rater") == name), kind, name, ends) for name in names)


def _assessment(items: pl.DataFrame, ratings: pl.DataFrame, kind: Assessor, name: str, ends: tuple[float, float]) -> Assessment:
    """The numbers on the rubric's scale where every one of them declares a scale; else as they are."""
    has_scale = ratings["scale_low"].null_count() == 0
    steps = set[float | None]()
    if has_scale:
        width, theirs = ends[1] - ends[0], pl.col("scale_high") - pl.col("scale_low")
        ratings = ratings.with_columns(
            rating=ends[0] + (pl.col("rating") - pl.col("scale_low")) * width / theirs,
            scale_step=pl.col("scale_step") * width / theirs,
        )
        steps = set(ratings["scale_step"].unique().to_list())
    step = next(iter(steps)) if len(steps) == 1 else None
    values = _column(items, ratings, "rating")
    return Assessment(kind, name, on_grid(values, max(map(abs, ends)), _DIGITS) if has_scale else values, step, has_scale)


def _column(items: pl.DataFrame, numbers: pl.DataFrame, name: str) -> Floats:
    by_sample: Mapping[str, float] = dict(numbers.select("sample_id", name).iter_rows())
    return np.array([by_sample.get(sample, np.nan) for sample in items["sample_id"]], dtype=np.float64)
