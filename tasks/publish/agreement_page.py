"""agreement.md: who agrees with whom, as a page that can be pasted elsewhere. The whole of it is in agreement.parquet."""

from collections.abc import Iterator

import polars as pl

from schemas.statuses import AgreementMetric, Total
from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.folders import PublicationName

ALL = "__all__"
_SHORT = {
    AgreementMetric.SPEARMAN: "Spearman", AgreementMetric.KENDALL_TAU_B: "Kendall τ-b", AgreementMetric.PEARSON: "Pearson",
    AgreementMetric.PAIRWISE_ACCURACY: "pairwise accuracy", AgreementMetric.QUADRATIC_KAPPA: "quadratic κ",
    AgreementMetric.KRIPPENDORFF_ALPHA: "Krippendorff α", AgreementMetric.BIAS: "bias",
}  # fmt: skip
_NOTES = """\
In brackets: 95 % intervals, prompts drawn with replacement. A figure that does not exist has its reason in its place.
Per category, per checkpoint: `agreement.csv`. Formulas and sources: docs/agreement.md.
"""


def agreement_page(agreement: pl.DataFrame, corrected: pl.DataFrame, name: PublicationName) -> str:
    """A table for each rubric and dimension over all samples, and one of the means."""
    lines = [f"# Agreement with people: {escape_markdown(name.benchmark)}, {name.run_date.isoformat()}\n"]
    overall = agreement.filter(model=ALL, category=Total.MICRO.value)
    for (rubric_id, dimension), rows in overall.group_by("rubric_id", "dimension", maintain_order=True):
        lines.append(f"## {escape_markdown(rubric_id)}: {escape_markdown(dimension)}\n")
        headers = ["", "against", *_SHORT.values(), "samples", "prompts"]
        lines.append(to_markdown(headers, _agreement_lines(rows), n_text_columns=2))
    lines.append("## Means\n")
    headers = ["rubric", "dimension", "judge", "model", "checkpoint", "estimator", "mean", "prompts", "labelled"]
    lines.append(to_markdown(headers, _mean_lines(corrected.filter(category=Total.MICRO.value)), n_text_columns=6))
    return "\n".join([*lines, _NOTES, f"Publication {name.publication_id}.\n"])


def _agreement_lines(rows: pl.DataFrame) -> Iterator[list[object]]:
    who = ["subject_kind", "subject", "against", "against_dimension"]
    for (kind, subject, against, other), mine in rows.group_by(who, maintain_order=True):
        by_metric = {row["metric"]: row for row in mine.iter_rows(named=True)}
        figures = [_figure(by_metric.get(metric.value)) for metric in _SHORT]
        target = against if other is None else f"{against} ({other})"
        row = mine.row(0, named=True)
        yield [f"{kind} {subject}", target, *figures, row["n_items"], row["n_prompts"]]


def _mean_lines(rows: pl.DataFrame) -> Iterator[list[object]]:
    for row in rows.iter_rows(named=True):
        named = [row[name] for name in ("rubric_id", "dimension", "judge_model", "model", "checkpoint", "estimator")]
        yield [*named, _figure(row), row["n_prompts"], row["n_prompts_labelled"]]


def _figure(row: dict[str, object] | None) -> str:
    if row is None:
        return ""
    estimate, low, high = row["estimate"], row["ci_low"], row["ci_high"]
    if not isinstance(estimate, float):
        return str(row["reason"])
    if not isinstance(low, float) or not isinstance(high, float):
        return f"{estimate:.3f} ({row['reason']})"
    return f"{estimate:.3f} ({low:.3f} to {high:.3f})"
