"""salon.duckdb: a benchmark's small tables in one file, with their descriptions. Its views and macros are duckdb_views.py.

It stands beside the publications, not in one: the bytes of a DuckDB file are not the same twice.
"""

import functools
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from schemas.errors import CorruptLakeError, StoreError
from schemas.tables.catalogue import OF_PUBLICATION, TABLES, key_of_all
from schemas.tables.fields import CI_HIGH, CI_LOW, PUBLISHED, RUN_DATE
from schemas.tables.nights import DRIFT
from schemas.tables.published import BENCHMARK_LONG, PREFERENCE_RATINGS, PREFERENCES, STANDINGS
from schemas.tables.stored import RUNS
from schemas.tables.table import Table
from tasks.lake.atomic_files import locked, scratch, store_error, write_bytes
from tasks.lake.notes import read_notes
from tasks.lake.object_store.cache_folder import bring, push
from tasks.publish.duckdb_views import CURRENT, INTERVALS, OF_AGREEMENTS, OF_PUBLICATIONS, STORAGE, VIEWS, quoted, views_sql
from tasks.publish.folders import AGREEMENTS, LAYOUT
from tasks.publish.machine_tables import LARGE_NAMES, LISTING
from tasks.publish.reading import Publication, readable
from tasks.publish.small_tables import files_of, pull_small, put_back
from tasks.publish.withdrawn import had_nights, taken_back

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NAME = "salon.duckdb"
WARN = logging.getLogger("salon.publish").warning
_HELD = OF_PUBLICATIONS | OF_AGREEMENTS | {table.name: table for table in (RUNS, DRIFT)}
"""What is there even when empty: views need some, and a question should not fail before the first pair is judged."""


def deriving(lake_root: Path, benchmark: str) -> AbstractContextManager[None]:
    """While who holds it derives from all publications of a benchmark, the next waits: who writes last has read them all."""
    return locked(lake_root, f"derived-{benchmark}")


def write_duckdb(lake_root: Path, benchmark: str, say: Callable[[str], None] = WARN) -> Path | None:
    """Make `publish/v1/<benchmark>/salon.duckdb` anew, whole, from publications' small tables and agreements; None without any.

    Every small table is there, even when empty, and holds the rows of all publications, or agreements, with its column
    `publication_id`; `current_<table>` holds those of the current one. The other views: duckdb_views.py. A damaged file keeps
    no night back: it is made again, or left out, and `say` is told. Raises StoreError.
    """
    import duckdb

    try:
        return _write(lake_root, benchmark)
    except (StoreError, duckdb.Error):  # what a damaged file makes DuckDB raise depends on the bytes
        told, left_out = put_back(lake_root, benchmark)
        if not told:
            raise
    for sentence in told:
        say(sentence)
    return _write(lake_root, benchmark, left_out)


def _write(lake_root: Path, benchmark: str, left_out: Collection[Path] = ()) -> Path | None:
    pull_small(lake_root, benchmark)
    mine, held = _readable(lake_root, benchmark)
    older = [one for one in mine if LISTING not in one.files]
    every = {t: files_of(lake_root, t, benchmark, older, left_out) for t in TABLES.values() if t.name not in LARGE_NAMES}
    small = {table: files for table, files in every.items() if files}
    if BENCHMARK_LONG not in small and not held:
        return None
    import duckdb

    refused = (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException)  # a write, a commit, a sync
    target = lake_root / "publish" / LAYOUT / benchmark / NAME
    with scratch(lake_root, "duckdb") as folder, store_error(f"writing {target}"):
        folder.mkdir(parents=True)
        try:
            with duckdb.connect(str(folder / NAME), config={"threads": 1} | STORAGE) as database:
                database.begin()  # one commit: each table's own would sync the disk by itself
                _list_publications(database, gone := {*taken_back(lake_root)}, noted_nights(lake_root, benchmark), mine, held)
                for table, files in small.items():
                    _take(database, table.name, files, is_of_one=table in OF_PUBLICATION)
                for name, table in OF_AGREEMENTS.items():
                    paths = [bring(one.folder / f"{table.name}.parquet") for one in held if f"{table.name}.parquet" in one.files]
                    _take(database, name, [str(p) for p in paths if p.is_file() and p not in left_out], is_of_one=True)
                _declare(database, benchmark, gone)
                _describe(database)
                database.commit()
                database.checkpoint()  # the file's own, at closing, would keep to itself that the disk refused
        except refused as error:
            raise OSError(str(error)) from error
        except duckdb.InvalidInputException as error:
            raise CorruptLakeError(f"{target} cannot be made: a table that it is made from is broken: {error}") from error
        write_bytes((folder / NAME).read_bytes(), target, lake_root / "staging")
        push(lake_root, target)
    return target


def _take(database: "DuckDBPyConnection", name: str, files: Sequence[str], *, is_of_one: bool) -> None:
    """Make the table of files. `is_of_one`: a file is one publication's, or agreement's, whose id its folder is called by.

    Older ones have the id under another name, ratings not at all.
    """
    if not files:
        return
    source = f"read_parquet([{', '.join(map(quoted, files))}], filename = true, union_by_name = true, hive_partitioning = false)"
    columns = [column for column, *_ in database.execute(f"DESCRIBE FROM {source}").fetchall() if column != "filename"]
    if is_of_one:
        columns = [column for column in columns if column != "run_id"]
        own = f"replace(string_split(filename, '/')[-2], 'publication=', '') AS {PUBLISHED.name}"
    kept = [own if is_of_one and one == PUBLISHED.name else quoted(one, '"') for one in columns]
    kept += [own] if is_of_one and PUBLISHED.name not in columns else []
    database.execute(f'CREATE TABLE "{name}" AS SELECT {", ".join(kept)} FROM {source}')  # noqa: S608


def declare(database: "DuckDBPyConnection", lake_root: Path, benchmark: str) -> None:
    """What is in the file beside the tables' rows: which publications there are, views, macros. Its tables are empty."""
    gone = {*taken_back(lake_root)}
    _list_publications(database, gone, noted_nights(lake_root, benchmark), *_readable(lake_root, benchmark))
    _declare(database, benchmark, gone)


def _declare(database: "DuckDBPyConnection", benchmark: str, gone: set[str]) -> None:
    there = {name for (name,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for name, table in _HELD.items():
        if name not in there:
            _make_empty(database, name, table)
    database.execute(VIEWS)
    database.execute(views_sql(benchmark, gone=gone))


def _readable(lake_root: Path, benchmark: str) -> tuple[list[Publication], list[Publication]]:
    """The publications and the agreements that can be read."""
    return readable(lake_root, benchmark)[0], readable(lake_root, f"{benchmark}/{AGREEMENTS}")[0]


def _list_publications(
    database: "DuckDBPyConnection",
    gone: set[str],
    noted: set[str] | None,
    mine: Iterable[Publication],
    held: Iterable[Publication],
) -> None:
    ids: list[tuple[object, ...]] = [(one.publication_id, one.run_date, one.is_current) for one in mine]
    made = [(*row, row[0] in gone, noted is None or row[0] in noted) for row in ids]
    agreed: list[tuple[object, ...]] = [(one.publication_id, one.run_date, one.is_current) for one in held]
    for name, rows, more in (("publications", made, ", is_withdrawn BOOLEAN, is_night BOOLEAN"), ("agreements", agreed, "")):
        database.execute(f"CREATE TABLE {name} (publication_id VARCHAR PRIMARY KEY, run_date DATE, is_current BOOLEAN{more})")
        if rows:
            database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in rows[0])})", rows)  # noqa: S608


def noted_nights(lake_root: Path, benchmark: str) -> set[str] | None:
    """The publications that `salon nightly` noted as nights (flows/nights/record.py). Raises CorruptLakeError.

    None where it never did: all are.
    """
    what, remedy = "a valid record of a night", "delete it and run that night again"
    folder = lake_root / "nights" / benchmark
    noted = {*read_notes(lake_root, folder, lambda said: str(said["publication_id"]), what, remedy).values()}
    return noted if noted or had_nights(lake_root, benchmark) else None


def _make_empty(database: "DuckDBPyConnection", name: str, table: Table) -> None:
    schema = table.schema
    if PUBLISHED.name in key_of_all(table) and PUBLISHED.name not in table.columns:  # else read off the path
        schema = schema.append(pa.field(PUBLISHED.name, pa.string()))
    database.register("empty", pa.Table.from_batches([], schema))
    database.execute(f'CREATE TABLE "{name}" AS FROM empty')
    database.unregister("empty")


_LISTED = {
    "publications": "Every publication of the benchmark. Key: publication_id.",
    "agreements": "Every agreement with people or a judge. Key: publication_id.",
    "current_publication": "The publication that latest.json names; no row where none is current yet.",
    "nightly_publications": "Of each run date its night: of those with is_night, not taken back, its last run's. Key: run_date.",
    "leaderboard": "The rankings of the current publication, best first. Key: that of standings.",
    "win_rates": "Who wins how often in pairs, in the current publication. Key: that of preferences.",
    "pair_leaderboard": "The ratings that pairs give, in the current publication, best first. Key: that of preference_ratings.",
    "trend": "The totals of every night. Key: run_date, rubric_id, judge_model, dimension, model, checkpoint.",
}
_ABOUT = {
    "publication_id": PUBLISHED.about,
    "run_date": RUN_DATE.about,
    "is_current": "Whether latest.json names it: of agreements, agreement/latest.json.",
    "is_withdrawn": "Whether it was taken back (salon withdraw), and no run has made it since.",
    "is_night": "Whether it may be its date's night: salon nightly noted it as one, or has noted none of the benchmark yet.",
}
_MADE_OF = {"leaderboard": (STANDINGS, BENCHMARK_LONG), "trend": (BENCHMARK_LONG,), "win_rates": (PREFERENCES,),
    "pair_leaderboard": (PREFERENCE_RATINGS,)}  # fmt: skip


def _describe(database: "DuckDBPyConnection") -> None:
    """Comments on tables, views and their columns: what a row is, its key, what each column says.

    Those of `current_<table>` are the table's, and not described again: comments are half of what the file costs.
    """
    kinds = {name: kind for kind in ("table", "view") for (name,) in database.execute(_NAMES.format(kind=kind)).fetchall()}
    said = [f'COMMENT ON {kind} "{name}" IS {quoted(_said_of(name))}' for name, kind in kinds.items()]
    columns = database.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").fetchall()
    for name, column in ((name, column) for name, column in columns if name in _LISTED or name in _HELD):
        about = _abouts(name).get(column, "")
        which = f" {INTERVALS[name]}" if name in INTERVALS and column in (CI_LOW.name, CI_HIGH.name) else ""
        said.append(f'COMMENT ON COLUMN "{name}"."{column}" IS {quoted(about + which)}')
    database.execute(";".join(said))


_NAMES = "SELECT {kind}_name FROM duckdb_{kind}s() WHERE NOT internal"


def _said_of(name: str) -> str:
    if name in _LISTED:
        return _LISTED[name]
    called = name.removeprefix(CURRENT)
    table, of = _HELD[called], "agreement published last" if called in OF_AGREEMENTS else "current publication"
    if called == name:
        key, which = key_of_all(table), ""
    else:
        key, which = table.key, f"The rows of {called} of the {of}; its columns are described there. "
    return f"{which}{table.about}{' ' if table.about else ''}Key: {', '.join(key)}."


@functools.cache
def _abouts(name: str) -> dict[str, str]:
    """What the columns of a table or view of the file are."""
    tables = _MADE_OF.get(name) or (_HELD.get(name, RUNS),)
    fields = (field for table in reversed(tables) for field in table.fields)
    return _ABOUT | {field.name: field.about + (f" [{field.unit}]" if field.unit else "") for field in fields}
