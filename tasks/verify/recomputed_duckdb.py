"""A publication's part of salon.duckdb: its rows, which publications there are, the SQL of views and macros, all recomputed.

The file is somebody else's: of what it holds the rows of its own tables are read and nothing is run. A view, a macro or a
computed column is a program of whoever wrote it: it reads any file, or never ends.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from schemas.tables.catalogue import TABLES
from tasks.lake.object_store.cache_folder import pull
from tasks.publish.duckdb_file import NAME as DUCKDB
from tasks.publish.duckdb_file import declare
from tasks.publish.duckdb_views import OF_AGREEMENTS, STORAGE, quoted
from tasks.publish.machine_tables import LARGE_NAMES, LISTING
from tasks.stopping import heeding_stop
from tasks.verify.publication import is_agreement, read_json
from tasks.verify.rows import NOTHING, Difference, compare_rows, shown

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_SQL = f"{DUCKDB}: views and macros"
_EXCLUDED = re.compile(r"(?<=EXCLUDE \()[^()]*(?=\))")
"""A set to DuckDB: each time that it reads and writes a file the order may be another."""
_HINT = (
    f"the views and macros of {DUCKDB} are not those that this release writes: a file of an earlier release also differs like "
    "this; a run rewrites it, so run again and then verify"
)


_N_LISTED = 1_000_000
_N_MORE = 1000
"""Rows that are read beyond twice those that there should be; those of a file that holds more differ all the same."""
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false", "autoload_known_extensions": "false", "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false", "lock_configuration": "true",
}  # fmt: skip
_TABLES = """SELECT table_name FROM system.main.duckdb_tables()
WHERE schema_name = 'main' AND NOT temporary AND NOT contains(sql, 'GENERATED ALWAYS')"""
"""By the full name of the function: the file may hold a macro of the short one."""


@dataclass(slots=True)
class ComparedFile:
    """What differs, what was done, and what to do about views of another release."""

    done: str
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compare_duckdb(published: Path, lake_root: Path, derived: Path | None) -> ComparedFile:
    """The benchmark's salon.duckdb: the publication's rows against the tables made again, the rest against the same anew.

    `derived`: the folder made again, beside its own tables for machines; None where it could not be made, nor rows compared.
    The lake's own tables for machines are no measure of it: they may be what was changed.
    """
    import duckdb

    of = _of_benchmark(published)
    paths = _made_again(derived, is_agreement=is_agreement(published)) if derived else {}
    pull(lake_root, of)
    if not (of / DUCKDB).is_file():
        return ComparedFile(f"there is no {DUCKDB}")
    found = ComparedFile(
        f"{len(paths)} tables of {DUCKDB} with their rows of this publication; its list of publications, views and macros"
    )
    try:
        with opened(of / DUCKDB) as file:
            missing = [Difference(f"{DUCKDB}: {name}", "", "", NOTHING, "the table") for name in paths.keys() - file.names]
            found.differences += sorted(missing, key=lambda one: one.place)
            for name, path in ((name, path) for name, path in paths.items() if name in file.names):
                made = pl.read_parquet(path, hive_partitioning=False)
                held = file.rows(name, 2 * made.height + _N_MORE, published.name)
                shared = {column: dtype for column, dtype in made.schema.items() if column in held.columns}
                key = OF_AGREEMENTS[name].key if is_agreement(published) else TABLES[name].key
                held = held.select(shared.keys()).cast(pl.Schema(shared))
                found.differences += compare_rows(f"{DUCKDB}: {name}", held, made, key)
        with tempfile.TemporaryDirectory(prefix="salon-verify-") as folder:
            anew = Path(folder) / DUCKDB
            with duckdb.connect(str(anew), config=STORAGE) as database:
                declare(database, lake_root, of.name)
            _compare_declared(found, of / DUCKDB, anew)
    except (duckdb.Error, pl.exceptions.PolarsError, OSError) as error:
        said = f"cannot be read: {str(error).splitlines()[0]}"
        found.differences.append(Difference(DUCKDB, "", "", said, "the publication's rows"))
    return found


def _made_again(derived: Path, *, is_agreement: bool) -> dict[str, Path]:
    """The files of the folder made again whose rows stand in the benchmark's file, by the tables' names there."""
    if is_agreement:
        paths = {name: derived / f"{table.name}.parquet" for name, table in OF_AGREEMENTS.items()}
        return {name: path for name, path in paths.items() if path.is_file()}
    files = (read_json(derived / LISTING) or {}).get("files", [])
    return {file["table"]: _of_benchmark(derived).parent / file["path"] for file in files if file["table"] not in LARGE_NAMES}


def _of_benchmark(folder: Path) -> Path:
    """The benchmark's folder that a published one stands in."""
    return folder.parents[1] if is_agreement(folder) else folder.parent


def _compare_declared(found: ComparedFile, file: Path, anew: Path) -> None:
    """Add what differs in the list of publications, and in the SQL, as DuckDB itself writes it out of both files."""
    for name in ("publications", "agreements"):
        made = _listed(anew, name, _N_LISTED)
        held = _listed(file, name, 2 * made.height + _N_MORE)
        found.differences += compare_rows(f"{DUCKDB}: {name}", held, made, ["publication_id"])
    published, derived = _sql_of(file), _sql_of(anew)
    differing = [name for name in sorted(published.keys() | derived.keys()) if published.get(name) != derived.get(name)]
    for name in differing:
        mine, again = published.get(name, NOTHING), derived.get(name, NOTHING)
        n_same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, again, strict=False)))
        start = 0 if NOTHING in (mine, again) else max(0, n_same - 40)
        found.differences.append(Difference(_SQL, name, "", shown(mine[start:]), shown(again[start:])))
    found.notes += [_HINT] if differing else []


def _listed(file: Path, name: str, limit: int) -> pl.DataFrame:
    """The publications or agreements that a file lists; a file of an older release lists no agreements."""
    with opened(file) as database:
        if name in database.names:
            return database.rows(name, limit).sort("publication_id")
    return pl.DataFrame(schema={"publication_id": pl.String, "run_date": pl.Date, "is_current": pl.Boolean})


def _sql_of(file: Path) -> dict[str, str]:
    """The views and macros of a file. It may hold anything: what they read is not opened, they are only copied."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="salon-verify-") as folder:
        copy = Path(folder) / "copy.duckdb"
        with duckdb.connect() as database:
            database.execute(f"ATTACH {quoted(str(file))} AS held (READ_ONLY); ATTACH {quoted(str(copy))} AS copy")
            database.execute("SET enable_external_access = false")
            database.execute("COPY FROM DATABASE held TO copy (SCHEMA)")
        with duckdb.connect(str(copy)) as database:  # a function of DuckDB's tells the SQL too, but no default of an argument
            database.execute(f"EXPORT DATABASE {quoted(f'{folder}/export')}")
            script = (Path(folder) / "export" / "schema.sql").read_text("utf-8")
            said = [statement.query.strip() for statement in database.extract_statements(script)]
    return {_head(sql): _EXCLUDED.sub(_in_order, sql) for sql in said if sql.startswith(("CREATE VIEW ", "CREATE MACRO "))}


def _head(sql: str) -> str:
    """As in "VIEW trend"."""
    return sql.removeprefix("CREATE ").partition(" AS ")[0].partition(" (")[0]


def _in_order(names: re.Match[str]) -> str:
    return ", ".join(sorted(names.group().split(", ")))


@dataclass(frozen=True, slots=True)
class ForeignDuckDB:
    """One file, open. `names` are the tables of its main schema; a view of such a name is none, nor what computes its columns."""

    names: frozenset[str]
    _database: "DuckDBPyConnection"

    def rows(self, name: str, limit: int, publication: str | None = None) -> pl.DataFrame:
        """The rows of one of `names`, of a publication or all; no more than `limit`, since a small file can claim any number.

        Ends at once where the process is told to stop.
        """
        query, said = f'FROM main."{name}"', [publication] * (publication is not None)
        query += " WHERE publication_id = ?" * len(said)

        def read() -> "pa.Table":
            return self._database.sql(f"{query} LIMIT {limit}", params=said).to_arrow_table()

        return pl.DataFrame(heeding_stop(f"read {name}", read, self._database.interrupt))


@contextmanager
def opened(file: Path) -> Iterator[ForeignDuckDB]:
    """The file, open to be read. Raises duckdb.Error where it is none."""
    import duckdb

    with duckdb.connect(str(file), read_only=True, config=_CLOSED) as database:
        yield ForeignDuckDB(frozenset(name for (name,) in database.execute(_TABLES).fetchall()), database)
