"""Publishing: one immutable folder per publication, then the pointer (pointer.py). Finding and reading them is reading.py."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from schemas.metrics import CELL_ORDER
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS
from schemas.tables.stored import CHECKS, PICTURES, QUARANTINE
from schemas.tables.table import Table, conform
from tasks.lake.atomic_files import locked, scratch, write_bytes, write_parquet
from tasks.lake.object_store.cache_folder import pull
from tasks.lake.reading import Lake
from tasks.publish.duckdb_views import views_sql
from tasks.publish.exports import to_csv
from tasks.publish.folders import (
    MANIFEST,
    PROVENANCE,
    PublicationName,
    Published,
    as_json,
    manifest_of,
    publication_folder,
    take_place,
)
from tasks.publish.latex import leaderboard_tex
from tasks.publish.leaderboard import leaderboard_page
from tasks.publish.machine_tables import LISTING, place_tables
from tasks.publish.pointer import move_pointers
from tasks.publish.promotion import standing_in, standing_of
from tasks.publish.standings.pair_boards import pair_boards
from tasks.publish.standings.placed_cells import placed

VIEWS = "views.sql"


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be published: tables, and pages by their plain file names. Of one that `is_there` already, its cells alone.

    `further` are pages that are made one at a time, while they are written: together they may be larger than the memory.
    """

    name: PublicationName
    tables: Mapping[Table, pl.DataFrame]
    provenance: Mapping[str, Any]
    pages: Mapping[str, bytes] = field(default_factory=dict)
    is_there: bool = False
    further: Iterable[tuple[str, bytes]] = ()


def publish(lake_root: Path, made: Draft) -> Published:
    """Write `publish/v1/<benchmark>/<publication_id>/` whole, unless it is there, then move the pointers where they should move.

    benchmark_long, checks and quarantine are always written; the others as Parquet and CSV beside them.
    Before the folder takes its place, its tables and the lake's large ones are placed among the tables for machines.
    In a lake on a bucket all of it is put there, the manifest last; where another run was first, its folder counts.
    Raises StoreError where the disk or the bucket refuses; the pointer then says what it said before.
    """
    name = made.name
    folder = publication_folder(lake_root, name.benchmark, name.publication_id)
    with locked(lake_root, f"publication-{name.publication_id}"):
        is_new = False if made.is_there else _written(lake_root, folder, made)
        if not is_new:
            pull(lake_root, folder)
    # of one that is there already the draft holds cells alone: why some lack a number stands beside them in its folder
    standing = standing_of(made.tables, name.run_date) if is_new else standing_in(folder, name.run_date)
    why_not = move_pointers(lake_root, folder, benchmark=name.benchmark, standing=standing)
    return Published(folder, name.publication_id, is_new, why_not is None, why_not)


def _written(lake_root: Path, folder: Path, made: Draft) -> bool:
    """Write the folder's files, the manifest last; False where the folder was there when it was to take its place."""
    staging, named = lake_root / "staging", made.name.said
    texts = _texts(made) | {PROVENANCE: as_json(dict(made.provenance) | named)}
    with scratch(lake_root, "publication") as staged:
        written = _write_tables(staged, lake_root, made.tables)
        placed = place_tables(Lake(lake_root), made.name, written, made.provenance.get("identities") or {})
        texts[LISTING] = as_json(named | {"files": [asdict(file) for file in placed]})
        has_pictures = any(file.table == PICTURES.name for file in placed)
        views = views_sql(made.name.benchmark, made.name.publication_id, has_pictures=has_pictures)
        for name, content in (texts | {VIEWS: views.encode()}).items():
            write_bytes(content, staged / name, staging)
        for name, content in made.further:
            if Path(name).name != name or (staged / name).exists():
                raise ValueError(f"a page needs a plain file name that no other file of the publication has; not so: {name!r}")
            write_bytes(content, staged / name, staging)
        write_bytes(manifest_of(staged, named), staged / MANIFEST, staging)
        return take_place(staged, folder, [folder.parents[1] / file.path for file in placed])


def _texts(made: Draft) -> dict[str, bytes]:
    """The publication's files that are no Parquet, by name. Raises ValueError where a page would take another file's name."""
    ordered, pages = made.tables[BENCHMARK_LONG].sort(CELL_ORDER), dict(made.pages)
    further = {table: frame for table, frame in made.tables.items() if table not in (BENCHMARK_LONG, CHECKS, QUARANTINE)}
    cells = placed({**made.tables, BENCHMARK_LONG: ordered})
    pairs = pair_boards(made.tables)
    texts = {
        "benchmark_long.csv": to_csv(ordered.select(BENCHMARK_LONG.columns)),
        "leaderboard.md": leaderboard_page(cells, made.name, pairs, made.tables.get(COMPARISONS)).encode(),
        "leaderboard.tex": leaderboard_tex(cells, made.name, pairs).encode(),
    }
    texts |= {f"{t.name}.csv": to_csv(frame.sort(list(t.key)).select(t.columns)) for t, frame in further.items()}
    taken = {*texts, VIEWS, PROVENANCE, LISTING, MANIFEST}
    wrong = [name for name in pages if not name or name in taken or Path(name).name != name or name.endswith(".parquet")]
    if wrong:
        raise ValueError(f"pages are named by plain file names that no other file of a publication has; not so: {wrong}")
    return texts | pages


def _write_tables(staged: Path, lake_root: Path, tables: Mapping[Table, pl.DataFrame]) -> dict[Table, Path]:
    written = {}
    for table, frame in tables.items():
        order = CELL_ORDER if table is BENCHMARK_LONG else list(table.key)
        arrow = conform(frame.sort(order).rechunk(), table).combine_chunks()
        written[table] = staged / f"{table.name}.parquet"
        write_parquet(arrow, written[table], lake_root / "staging")
    return written
