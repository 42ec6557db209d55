"""Publishing agreement with people or a judge: an immutable folder, then its pointer. The benchmark's own is publication.py.

`publish/v1/<benchmark>/agreement/<agreement_id>/` holds the tables of agreement and ratings (Parquet and CSV), agreement.md
(agreement_page.py), provenance.json and the manifest.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import polars as pl

from schemas.benchmark.file import Benchmark
from schemas.identities import RunIds
from schemas.lineage import Lineage
from schemas.tables.agreement import RATINGS, VOTES
from schemas.tables.table import Table, conform
from tasks.context import Reference, StageContext
from tasks.lake.atomic_files import scratch, write_bytes, write_parquet
from tasks.lake.object_store.cache_folder import pull, push
from tasks.publish.agreement_page import agreement_page
from tasks.publish.exports import to_csv
from tasks.publish.folders import (
    AGREEMENTS,
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
from tasks.publish.identity import provenance, publication_id
from tasks.publish.publication import Draft
from tasks.regular_files import content_of

AGAINST_JUDGE = "against_judge"


def agreement_id(benchmark: Benchmark, reference: Reference, ids: RunIds, run_date: date, lineage: Lineage) -> str:
    """sha256 hex of everything an agreement is made from: that of the benchmark's own publication, and what people said."""
    inputs = {
        "publication_id": publication_id(benchmark, ids, run_date, lineage), "ratings": rows_digest(reference.ratings, RATINGS),
    }  # fmt: skip
    if reference.votes.height:
        inputs["votes"] = rows_digest(reference.votes, VOTES)
    if reference.judge is not None:
        inputs[AGAINST_JUDGE] = reference.judge
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def given(reference: Reference) -> dict[Table, pl.DataFrame]:
    """What people said, as it is published: ratings always (none against a judge), votes where there are any."""
    ratings, votes, _ = reference
    return {RATINGS: ratings.select(RATINGS.columns)} | ({VOTES: votes.select(VOTES.columns)} if votes.height else {})


def reference_in(folder: Path) -> Reference:
    """What a published agreement holds scores against."""
    votes = folder / f"{VOTES.name}.parquet"
    said = json.loads(content_of(folder / PROVENANCE))["identities"].get(AGAINST_JUDGE)
    return Reference(
        pl.read_parquet(folder / f"{RATINGS.name}.parquet"), pl.read_parquet(votes) if votes.is_file() else VOTES.empty(), said
    )


def rows_digest(rows: pl.DataFrame, table: Table) -> str:
    """sha256 hex over a table's rows as canonical JSON lines, in their order."""
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows.select(table.columns).iter_rows())
    whole = hashlib.sha256()
    for line in lines:
        whole.update(f"{line}\n".encode())
    return whole.hexdigest()


def find_agreement(lake_root: Path, benchmark: str, key: str) -> Path | None:
    """The folder of an agreement that was published before. Raises CorruptLakeError where it is not whole."""
    folder = lake_root / "publish" / LAYOUT / benchmark / AGREEMENTS / key
    if not is_published(folder):
        return None
    pull(lake_root, folder)
    return folder


def publish_agreement(
    context: StageContext, tables: Mapping[Table, pl.DataFrame], judge: str | None = None, *, is_there: bool = False
) -> Published:
    """Write the folder whole, unless it `is_there`, then point `agreement/latest.json` to it. Raises StoreError.

    `judge`: the one that the others were held against, and not people.
    """
    lake_root = context.lake.root
    name = PublicationName(context.benchmark.name, context.ids.publication_id, context.run_date)
    more = {"votes_sha256": rows_digest(tables[VOTES], VOTES)} if VOTES in tables else {}
    more |= {AGAINST_JUDGE: judge} if judge is not None else {}
    said = provenance(context, ratings_sha256=rows_digest(tables[RATINGS], RATINGS), **more)
    home = lake_root / "publish" / LAYOUT / name.benchmark / AGREEMENTS
    folder, staging = home / name.publication_id, lake_root / "staging"
    has_looks = bool(context.benchmark.statistics.stopping.looks)
    page = agreement_page(tables, name, judge, has_looks=has_looks)
    is_new = False if is_there else _written(lake_root, folder, Draft(name, tables, said), page)
    if not is_new:
        pull(lake_root, folder)
    pointer = name.said | {"manifest_sha256": hashlib.sha256(content_of(folder / MANIFEST)).hexdigest()}
    write_bytes(as_json(pointer), home / POINTER, staging)
    push(lake_root, home / POINTER)
    return Published(folder, name.publication_id, is_new, is_current=True)


def _written(lake_root: Path, folder: Path, made: Draft, page: str) -> bool:
    """Write the folder's files, the manifest last; False where the folder was there when it was to take its place."""
    staging = lake_root / "staging"
    with scratch(lake_root, "agreement") as staged:
        for table, frame in made.tables.items():
            _write(table, frame, staged, staging)
        write_bytes(page.encode(), staged / "agreement.md", staging)
        write_bytes(as_json(dict(made.provenance) | made.name.said), staged / PROVENANCE, staging)
        write_bytes(manifest_of(staged, made.name.said), staged / MANIFEST, staging)
        return take_place(staged, folder)


def _write(table: Table, frame: pl.DataFrame, staged: Path, staging: Path) -> None:
    write_parquet(conform(frame.rechunk(), table).combine_chunks(), staged / f"{table.name}.parquet", staging)
    write_bytes(to_csv(frame.select(table.columns)), staged / f"{table.name}.csv", staging)
