"""The table `jury`: how several judges agree on the same samples. Judge against people is aggregate/agreement/agreement.py."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import polars as pl

from schemas.statuses.cells import CellStatus
from schemas.statuses.nights import JuryMetric, ReliabilityReason
from schemas.statuses.people import AgreementMetric
from schemas.tables.nights import JURY
from tasks.aggregate.agreement.jackknife import ends, pair_replicates
from tasks.aggregate.agreement.metrics import MIN_PROMPTS, has_enough_labels, krippendorff_alpha, n_prompts_alike, pair_metric
from tasks.aggregate.intervals import LEVEL, Counts, Floats, on_grid, without_rounding
from tasks.aggregate.reliability.components import image_means
from tasks.aggregate.reliability.jury_ends import intraclass_ends, rank_ends

WHOLE_JURY = "__jury__"
_PAIRS = (
    AgreementMetric.BIAS,
    AgreementMetric.QUADRATIC_KAPPA,
    AgreementMetric.SPEARMAN,
    AgreementMetric.KRIPPENDORFF_ALPHA,
)
_OF_MOMENTS = frozenset({AgreementMetric.BIAS, AgreementMetric.QUADRATIC_KAPPA})
_KEY = ["rubric_id", "rubric_version", "model", "checkpoint", "dimension"]
_SAMPLE = ["category", "prompt_id", "sample_id"]


def jury(rows: pl.DataFrame) -> pl.DataFrame:
    """The JURY table from scored() rows: every two judges, then all at once, on each checkpoint's samples in each dimension.

    Repeats are averaged first. Samples that a judge did not score are left out, except in the jury's alpha, which bears gaps.
    Intervals are of these judges, over prompts as those of agreement.
    """
    found = []
    for one in image_means(rows).partition_by(_KEY, maintain_order=True):
        named = {name: one[name][0] for name in _KEY}
        judges = sorted(one["judge_model"].unique())
        numbered = one.with_columns(judge=pl.col("judge_model").rank("dense"))  # a name can be another column's, or a pattern
        wide = numbered.pivot(on="judge", index=_SAMPLE, values="score").sort(_SAMPLE)
        values = on_grid(wide.select(str(number) for number in range(1, len(judges) + 1)).to_numpy().astype(np.float64))
        found += [named | row for row in _rows(judges, values, wide["prompt_id"].to_list())]
    return JURY.frame(found).sort(JURY.key)


def _rows(judges: list[str], values: Floats, prompts: list[str]) -> Iterator[dict[str, object]]:
    if len(judges) < 2:
        whole = {"judge_a": judges[0], "judge_b": judges[0], "n_judges": 1, "n_items": len(values)}
        yield whole | {"metric": JuryMetric.ICC_AGREEMENT.value} | _shown(None, None, ReliabilityReason.ONE_JUDGE)
        return
    for a, b in combinations(range(len(judges)), 2):
        both = values[:, [a, b]]
        is_used = ~np.isnan(both).any(axis=1)
        named = {"judge_a": judges[a], "judge_b": judges[b], "n_judges": 2, "n_items": int(is_used.sum())}
        kept = [prompts[row] for row in np.flatnonzero(is_used)]
        yield from (named | row for row in _pair_rows(both[is_used], kept))
    yield from _whole_rows(judges, values, prompts)


def _pair_rows(both: Floats, prompts: list[str]) -> Iterator[dict[str, object]]:
    clusters = _clusters(prompts)
    are_enough = len(set(prompts)) >= MIN_PROMPTS
    for metric in _PAIRS:
        if len(both) < 2:
            yield {"metric": metric.value} | _shown(None, None, ReliabilityReason.TOO_FEW_ITEMS)
            continue
        x, y = both[:, 0], both[:, 1]
        figure = pair_metric(metric, x, y)
        if metric in _OF_MOMENTS:
            is_drawn = are_enough and figure is not None and has_enough_labels(metric, both, clusters)
            replicates = pair_replicates(metric, x, y, clusters) if is_drawn else None
            found = None if figure is None else ends(metric, figure, replicates, LEVEL, n_prompts_alike(clusters))
        else:
            found = rank_ends(metric, figure, both, clusters)
        yield {"metric": metric.value} | _shown(figure, found, ReliabilityReason.NO_VARIATION)


def _whole_rows(judges: list[str], values: Floats, prompts: list[str]) -> Iterator[dict[str, object]]:
    named = {"judge_a": WHOLE_JURY, "judge_b": WHOLE_JURY, "n_judges": len(judges)}
    n_each = np.sum(~np.isnan(values), axis=1)
    (pairable, of_pairable), (complete, of_complete) = (
        (values[is_in], _clusters([prompts[row] for row in np.flatnonzero(is_in)]))
        for is_in in (n_each >= 2, n_each == len(judges))
    )
    metric: dict[str, object] = {"metric": AgreementMetric.KRIPPENDORFF_ALPHA.value, "n_items": len(pairable)}
    alpha = krippendorff_alpha(pairable)
    found = rank_ends(AgreementMetric.KRIPPENDORFF_ALPHA, alpha, pairable, of_pairable)
    yield named | metric | _shown(alpha, found, _why_none(len(pairable)))
    figures = intraclass(complete) if len(complete) >= 2 else dict.fromkeys(JuryMetric)
    drawn = intraclass_ends(figures, complete, of_complete)
    for kind, figure in figures.items():
        yield named | {"metric": kind.value, "n_items": len(complete)} | _shown(figure, drawn[kind], _why_none(len(complete)))


def _why_none(n_items: int) -> ReliabilityReason:
    return ReliabilityReason.NO_VARIATION if n_items >= 2 else ReliabilityReason.TOO_FEW_ITEMS


def intraclass(values: Floats) -> dict[JuryMetric, float | None]:
    """Intraclass correlations of (samples, judges) without gaps, judges crossed with samples.

    Shrout & Fleiss, Psychological Bulletin 86 (1979), cases 2 and 3; McGraw & Wong, Psychological Methods 1 (1996).
    """
    n, k = values.shape
    grand, by_item, by_judge = values.mean(), values.mean(axis=1), values.mean(axis=0)
    parts = by_item - grand, by_judge - grand, values - by_item[:, None] - by_judge[None, :] + grand
    of_items, of_judges, left = (float((without_rounding(part, np.abs(values).max()) ** 2).sum()) for part in parts)
    items, judges, error = k * of_items / (n - 1), n * of_judges / (k - 1), left / ((n - 1) * (k - 1))
    return {
        JuryMetric.ICC_AGREEMENT: _ratio(items - error, items + (k - 1) * error + k * (judges - error) / n),
        JuryMetric.ICC_AGREEMENT_MEAN: _ratio(items - error, items + (judges - error) / n),
        JuryMetric.ICC_CONSISTENCY: _ratio(items - error, items + (k - 1) * error),
        JuryMetric.ICC_CONSISTENCY_MEAN: _ratio(items - error, items),
    }


def _clusters(prompts: list[str]) -> Counts:
    return np.unique(prompts, return_inverse=True)[1].astype(np.int64)


def _shown(figure: float | None, found: tuple[float, float] | None, reason: ReliabilityReason) -> dict[str, object]:
    low, high = found or (None, None)
    status = CellStatus.NULL if figure is None else CellStatus.OK
    return {
        "estimate": figure, "ci_low": low, "ci_high": high, "status": status.value,
        "reason": reason.value if figure is None else None,
    }  # fmt: skip


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None
