"""Publishing agreement with people: an immutable folder with its page, then its pointer. The benchmark's own is publication.py.

`publish/v1/<benchmark>/agreement/<agreement_id>/` holds agreement, corrected and ratings (Parquet and CSV), agreement.md,
provenance.json and the manifest.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

import polars as pl

from schemas.identities import RunIds
from schemas.statuses import AgreementMetric, Total
from schemas.tables import AGREEMENT, CORRECTED, RATINGS, SCHEMA_VERSION, Table, conform
from tasks.context import StageContext
from tasks.lake.atomic_files import scratch, write_bytes, write_parquet
from tasks.lake.object_store.cache_folder import pull, push
from tasks.publish.exports import escape_markdown, to_csv, to_markdown
from tasks.publish.folders import (
    LAYOUT,
    MANIFEST,
    POINTER,
    PROVENANCE,
    PublicationName,
    Published,
    as_json,
    is_published,
    manifest_of,
    take_place,
)
from tasks.publish.identity import provenance
from tasks.publish.publication import Draft

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


FOLDER = "agreement"


def agreement_id(ratings: pl.DataFrame, ids: RunIds, run_date: date) -> str:
    """sha256 hex of everything an agreement is made from: the same inputs are the same publication."""
    inputs = {
        "code_version": ids.code_version, "dataset_id": ids.dataset_id, "plan_id": ids.plan_id,
        "ratings": ratings_digest(ratings), "reading_id": ids.reading_id, "run_date": run_date.isoformat(),
        "schema_version": SCHEMA_VERSION,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def ratings_digest(ratings: pl.DataFrame) -> str:
    """sha256 hex over the rows of the ratings table as canonical JSON lines, in their order."""
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in ratings.select(RATINGS.columns).iter_rows())
    whole = hashlib.sha256()
    for line in lines:
        whole.update(f"{line}\n".encode())
    return whole.hexdigest()


def find_agreement(lake_root: Path, benchmark: str, key: str) -> Path | None:
    """The folder of an agreement that was published before. Raises CorruptLakeError where it is not whole."""
    folder = lake_root / "publish" / LAYOUT / benchmark / FOLDER / key
    if not is_published(folder):
        return None
    pull(lake_root, folder.relative_to(lake_root).as_posix())
    return folder


def publish_agreement(context: StageContext, tables: Mapping[Table, pl.DataFrame], *, is_there: bool = False) -> Published:
    """Write the folder whole, unless it `is_there`, then point `agreement/latest.json` to it. Raises StoreError."""
    lake_root = context.lake.root
    name = PublicationName(context.benchmark.name, context.ids.publication_id, context.run_date)
    said = provenance(context, ratings_sha256=ratings_digest(tables[RATINGS]))
    home = lake_root / "publish" / LAYOUT / name.benchmark / FOLDER
    folder, staging = home / name.publication_id, lake_root / "staging"
    is_new = False if is_there else _written(lake_root, folder, Draft(name, tables, said))
    if not is_new:
        pull(lake_root, folder.relative_to(lake_root).as_posix())
    pointer = name.said | {"manifest_sha256": hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()}
    write_bytes(as_json(pointer), home / POINTER, staging)
    push(lake_root, home / POINTER)
    return Published(folder, name.publication_id, is_new, is_current=True)


def _written(lake_root: Path, folder: Path, made: Draft) -> bool:
    """Write the folder's files, the manifest last; False where the folder was there when it was to take its place."""
    staging = lake_root / "staging"
    with scratch(lake_root, "agreement") as staged:
        for table, frame in made.tables.items():
            _write(table, frame, staged, staging)
        page = agreement_page(made.tables[AGREEMENT], made.tables[CORRECTED], made.name)
        write_bytes(page.encode(), staged / "agreement.md", staging)
        write_bytes(as_json(dict(made.provenance) | made.name.said), staged / PROVENANCE, staging)
        write_bytes(manifest_of(staged, made.name.said), staged / MANIFEST, staging)
        return take_place(staged, folder)


def _write(table: Table, frame: pl.DataFrame, staged: Path, staging: Path) -> None:
    write_parquet(conform(frame.rechunk(), table).combine_chunks(), staged / f"{table.name}.parquet", staging)
    write_bytes(to_csv(frame.select(table.columns)), staged / f"{table.name}.csv", staging)
