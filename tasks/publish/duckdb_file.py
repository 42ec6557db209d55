"""salon.duckdb: a benchmark's small tables in one file, with their descriptions; and the SQL macros over the large ones.

It stands beside the publications, not in one: the bytes of a DuckDB file are not the same twice.
"""

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from schemas.errors import CorruptLakeError
from schemas.tables.catalogue import TABLES
from schemas.tables.fields import PUBLISHED, RUN_DATE
from schemas.tables.nights import DRIFT
from schemas.tables.published import BENCHMARK_LONG, STANDINGS
from schemas.tables.stored import PICTURES, RUNS
from schemas.tables.table import Table
from tasks.lake.atomic_files import scratch, store_error, write_bytes
from tasks.lake.object_store.cache_folder import bucket_behind, pull, push
from tasks.publish.folders import LAYOUT
from tasks.publish.living_tables import living_table
from tasks.publish.machine_tables import FOLDER, LARGE, partition_folder, tables_folder
from tasks.publish.reading import publications

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NAME = "salon.duckdb"
LARGE_NAMES = frozenset(table.name for table, _ in LARGE)
"""The tables it does not hold: single samples and scores."""
_ALWAYS = (STANDINGS, RUNS, DRIFT)  # the views need them
_VIEWS = """\
CREATE VIEW current_publication AS SELECT * FROM publications WHERE is_current;
CREATE VIEW leaderboard AS
    SELECT rubric_id, judge_model, dimension, category, is_headline, rank_low, rank_high, n_ranked, model, checkpoint, estimate,
        ci_low, ci_high, delta_predecessor, delta_predecessor_low, delta_predecessor_high, p_predecessor, verdict_predecessor,
        delta_baseline, delta_baseline_low, delta_baseline_high, p_baseline, verdict_baseline, n_prompts, n_shared_prompts,
        n_images, n_judgements, n_failed, coverage, bound_low, bound_high, state, reason, cell_id
    FROM (
        SELECT * FROM standings
        UNION ALL BY NAME  -- of a publication from before there were standings: its means, without ranks
        SELECT * FROM benchmark_long ANTI JOIN standings USING (publication_id)
        WHERE category = '__macro__' AND metric = 'mean' AND estimand = 'prompts_like_these'
    ) SEMI JOIN current_publication USING (publication_id)
    ORDER BY rubric_id, judge_model, NOT is_headline, dimension, category, rank_low NULLS LAST, rank_high,
        estimate DESC NULLS LAST, model, checkpoint;
CREATE VIEW nightly_publications AS
    SELECT run_date, arg_max(publication_id, finished_at) AS publication_id
    FROM runs SEMI JOIN publications USING (publication_id) GROUP BY run_date ORDER BY run_date;
CREATE VIEW trend AS
    SELECT run_date, rubric_id, judge_model, dimension, model, checkpoint, estimate, ci_low, ci_high, coverage, status,
        publication_id
    FROM benchmark_long SEMI JOIN nightly_publications USING (publication_id)
    WHERE category = '__macro__' AND metric = 'mean' AND estimand = 'these_prompts'
        AND (estimate IS NOT NULL OR status = 'blocked')  -- no row for a total that cannot exist
    ORDER BY rubric_id, judge_model, dimension, model, run_date, checkpoint;
"""

_HEAD = """\
-- DuckDB macros over the large tables of {what}.
-- Their argument is the lake: its folder as an absolute path, or an address such as 's3://bucket/lake'. So they work from any
-- working directory:
--     .read views.sql
--     SELECT model, checkpoint, avg(score) FROM salon_judged('/data/lake') WHERE status = 'scored' GROUP BY ALL;
{more}"""
_ONE_OF_ALL = """\
-- Of one publication, publication_id := '<id>' opens its files alone; a condition opens every publication's first.
"""
_TABLE = """\
CREATE OR REPLACE MACRO salon_{table}({arguments}) AS TABLE
    SELECT * EXCLUDE (benchmark_name, publication), publication AS publication_id
    FROM read_parquet(lake || {path}, hive_partitioning = true, hive_types_autocast = false, union_by_name = true){later};
"""
_LATER = """
    UNION ALL BY NAME SELECT {columns} WHERE false /* files of older releases lack them */"""
_SHOWN = """\
-- A row for each picture that a sample shows: its role, its place among the sample's pictures, and what is known of it.
CREATE OR REPLACE MACRO salon_shown({arguments}) AS TABLE
    SELECT
        s.publication_id, s.sample_id, s.model, s.checkpoint, s.item_id, s.status, s.shown.role AS role, s.place,
        s.shown.path AS path, s.shown.sha256 AS image_sha256, p.file_sha256, p.image_format, p.image_treatment, p.width_px,
        p.height_px, p.n_bytes
    FROM (SELECT *, unnest(pictures) AS shown, generate_subscripts(pictures, 1) AS place FROM salon_samples({given})) s
    LEFT JOIN salon_pictures({given}) p ON p.publication_id = s.publication_id AND p.image_sha256 = s.shown.sha256;
"""
_JUDGED = """\
-- A row for each dimension of each judgement, with the sample's texts; one never planned has its reason and no dimension.
-- A duplicate has its twin's scores; of an older release it has no row.
CREATE OR REPLACE MACRO salon_judged({arguments}) AS TABLE
    SELECT
        j.publication_id, j.model, j.checkpoint, j.category, j.rubric_id, j.judge_model, s.dimension, s.score,
        coalesce(s.status, j.status) AS status, coalesce(s.reason, j.reason) AS reason, s.note, s.bound_low, s.bound_high,
        s.item, j.repeat, j.occasion, j.prompt_id, j.sample_id, j.request_key, p.source, p.source_key, p.item_id, p.prompt,
        p.question, p.text, p.reference, p.output, p.image_sha256
    FROM salon_judgements({given}) j
    LEFT JOIN salon_scores({given}) s ON s.publication_id = j.publication_id AND s.request_key = j.request_key
    LEFT JOIN salon_samples({given}) p ON p.publication_id = j.publication_id AND p.sample_id = j.sample_id
    WHERE j.status <> 'duplicate';
"""


def write_duckdb(lake_root: Path, benchmark: str) -> Path | None:
    """Make `publish/v1/<benchmark>/salon.duckdb` anew, whole, from the tables for machines; None where there are none yet.

    Every small table holds the rows of all publications, with its column `publication_id`; `standings`, `runs` and `drift` are
    there even when empty. The views: leaderboard (current), trend (of each run date the publication its last run made or found).
    Raises StoreError.
    """
    _pull_small(lake_root, benchmark)
    small = [table for table in TABLES.values() if table.name not in LARGE_NAMES and _glob(lake_root, table, benchmark)]
    if BENCHMARK_LONG not in small:
        return None
    import duckdb

    refused = (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException)  # a write, a commit, a sync
    target = lake_root / "publish" / LAYOUT / benchmark / NAME
    with scratch(lake_root, "duckdb") as folder, store_error(f"writing {target}"):
        folder.mkdir(parents=True)
        try:
            with duckdb.connect(str(folder / NAME), config={"threads": 1}) as database:
                database.begin()  # one commit: each table's own would sync the disk by itself
                _fill(database, lake_root, benchmark, small)
                database.commit()
        except refused as error:
            raise OSError(str(error)) from error
        except duckdb.InvalidInputException as error:
            raise CorruptLakeError(f"{target} cannot be made, a table it is made of is broken: {error}") from error
        write_bytes((folder / NAME).read_bytes(), target, lake_root / "staging")
        push(lake_root, target)
    return target


def _pull_small(lake_root: Path, benchmark: str) -> None:
    """The small tables of every publication out of the bucket, where the lake is in one."""
    bucket = bucket_behind(lake_root)
    there = bucket.folders(tables_folder(lake_root).relative_to(lake_root).as_posix())[0] if bucket else []
    for table in TABLES.values():
        if table.name in there and table.name not in LARGE_NAMES:
            pull(lake_root, partition_folder(lake_root, table, benchmark).relative_to(lake_root).as_posix())


def _fill(database: "DuckDBPyConnection", lake_root: Path, benchmark: str, small: list[Table]) -> None:
    known = [(p.publication_id, p.run_date, p.is_current) for p in publications(lake_root) if p.benchmark == benchmark]
    database.execute("CREATE TABLE publications (publication_id VARCHAR PRIMARY KEY, run_date DATE, is_current BOOLEAN)")
    database.executemany("INSERT INTO publications VALUES (?, ?, ?)", known)
    for table in small:
        files = quoted(_glob(lake_root, table, benchmark))
        options = "hive_partitioning = true, hive_types_autocast = false, union_by_name = true"
        held = [name for name, *_ in database.execute(f"DESCRIBE FROM read_parquet({files}, {options})").fetchall()]
        columns = ", ".join(_columns(held))
        database.execute(f'CREATE TABLE "{table.name}" AS SELECT {columns} FROM read_parquet({files}, {options})')  # noqa: S608
    for table in _ALWAYS:
        if table not in small:
            empty = pa.Table.from_batches([], table.schema)
            database.register("empty", empty)
            database.execute(f'CREATE TABLE "{table.name}" AS FROM empty')
            database.unregister("empty")
    for table in dict.fromkeys((*small, *_ALWAYS)):
        for field in table.fields:
            unit = f" [{field.unit}]" if field.unit else ""
            database.execute(f'COMMENT ON COLUMN "{table.name}"."{field.name}" IS {quoted(field.about + unit)}')
    database.execute(_VIEWS)
    _describe(database)
    database.execute(views_sql(benchmark))


def _columns(held: list[str]) -> list[str]:
    """What is taken of files with these columns: one name for one thing, which older publications called `run_id`."""
    if "publication" not in held:
        return [quoted(name, '"') for name in held if name != "benchmark_name"]
    own = next((name for name in ("publication_id", "run_id") if name in held), "publication")
    others = {"benchmark_name", "publication", "publication_id", "run_id"} - {own}
    return ["publication AS publication_id" if name == own else quoted(name, '"') for name in held if name not in others]


_ABOUT = {"publication_id": PUBLISHED.about, "run_date": RUN_DATE.about, "is_current": "Whether latest.json names it."}


def _describe(database: "DuckDBPyConnection") -> None:
    """Comments on the columns that have none yet: those of views and of `publications`, by the table they come from."""
    known = {field.name: field.about for table in (RUNS, BENCHMARK_LONG, STANDINGS) for field in table.fields} | _ABOUT
    without = "SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND NOT internal"
    for table, column in database.execute(without).fetchall():
        if column in known:
            database.execute(f'COMMENT ON COLUMN "{table}"."{column}" IS {quoted(known[column])}')


def _glob(lake_root: Path, table: Table, benchmark: str) -> str:
    """The pattern of a benchmark's files of a table, or its one file; empty where there are none."""
    folder = partition_folder(lake_root, table, benchmark)
    if table is DRIFT:
        return str(living_table(lake_root, DRIFT, benchmark) or "")
    for pattern in ("*/*.parquet", "*.parquet"):
        if next(folder.glob(pattern), None):
            return f"{folder}/{pattern}"
    return ""


def views_sql(benchmark: str, publication_id: str | None = None, *, has_pictures: bool = True) -> str:
    """The macros salon_samples, _pictures, _judgements, _scores, _judged, _shown over one publication, or all of a benchmark.

    Those over all take `publication_id := '<id>'` too: they then open that one's files alone, however many nights there are.
    Of a dataset of an older release, which has no table of pictures, there are no macros over it.
    """
    what = f"publication {publication_id} of {benchmark}" if publication_id else f"all publications of {benchmark}"
    arguments, given = "lake", "lake"
    if not publication_id:
        arguments, given = "lake, publication_id := '*'", "lake, publication_id := publication_id"
    tables = [
        _TABLE.format(
            table=table.name,
            arguments=arguments,
            path=_path(table.name, benchmark, publication_id),
            later=_later(table),
        )
        for table, _ in LARGE
        if has_pictures or table.name != PICTURES.name
    ]
    head = _HEAD.format(what=what, more="" if publication_id else _ONE_OF_ALL)
    views = (view.format(arguments=arguments, given=given) for view in (_JUDGED, *([_SHOWN] if has_pictures else [])))
    return "\n".join([head, *tables, *views])


@functools.cache
def _later(table: Table) -> str:
    """The columns that a table had not always, none of them filled: a question may name them whatever the files hold."""
    if not table.later:
        return ""
    import duckdb

    empty = pa.Table.from_batches([], pa.schema([table.schema.field(name) for name in table.later]))  # others import pandas
    with duckdb.connect() as own:  # the default one is every thread's
        types = own.from_arrow(empty).types
    return _LATER.format(columns=", ".join(f'NULL::{kind} AS "{name}"' for name, kind in zip(table.later, types, strict=True)))


def _path(table: str, benchmark: str, publication_id: str | None) -> str:
    """What stands behind the lake's address in SQL."""
    home = f"/publish/{LAYOUT}/{FOLDER}/{table}/benchmark_name={benchmark}/publication="
    if publication_id:
        return quoted(f"{home}{publication_id}/*.parquet")
    return f"{quoted(home)} || publication_id || {quoted('/*.parquet')}"


def quoted(text: str, mark: str = "'") -> str:
    """A text as an SQL literal; as a name with `mark` a quotation mark."""
    return mark + text.replace(mark, 2 * mark) + mark
