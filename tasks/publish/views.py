"""views.sql: DuckDB macros over the tables of single samples and scores. The files themselves are machine_tables.py's."""

from tasks.publish.folders import LAYOUT
from tasks.publish.machine_tables import FOLDER, LARGE

_HEAD = """\
-- DuckDB macros over the large tables of {what}.
-- Their argument is the lake: its folder as an absolute path, or an address such as 's3://bucket/lake'. So they work from any
-- working directory:
--     .read views.sql
--     SELECT model, checkpoint, avg(score) FROM salon_judged('/data/lake') WHERE status = 'scored' GROUP BY ALL;
{more}"""
_ONE_OF_ALL = """\
-- Of one publication, publication := '<id>' opens its files alone; a condition opens every publication's first.
"""
_TABLE = """\
CREATE OR REPLACE MACRO salon_{table}({arguments}) AS TABLE
    SELECT * EXCLUDE (benchmark_name)
    FROM read_parquet(lake || {path}, hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
"""
_JUDGED = """\
-- A row for each dimension of each judgement, with the sample's texts; one never planned has its reason and no dimension.
CREATE OR REPLACE MACRO salon_judged({arguments}) AS TABLE
    SELECT
        j.publication, j.model, j.checkpoint, j.category, j.rubric_id, j.judge_model, s.dimension, s.score,
        coalesce(s.status, j.status) AS status, coalesce(s.reason, j.reason) AS reason, s.note, s.bound_low, s.bound_high,
        j.repeat, j.occasion, j.prompt_id, j.sample_id, j.request_key, p.source, p.source_key, p.item_id, p.prompt, p.question,
        p.text, p.reference, p.output, p.image_sha256
    FROM salon_judgements({given}) j
    LEFT JOIN salon_scores({given}) s ON s.publication = j.publication AND s.request_key = j.request_key
    LEFT JOIN salon_samples({given}) p ON p.publication = j.publication AND p.sample_id = j.sample_id;
"""


def views_sql(benchmark: str, publication_id: str | None = None) -> str:
    """The macros salon_samples, _judgements, _scores and _judged over one publication, or over all of a benchmark.

    Those over all take `publication := '<id>'` too: they then open that one's files alone, however many nights there are.
    """
    what = f"publication {publication_id} of {benchmark}" if publication_id else f"all publications of {benchmark}"
    arguments, given = ("lake", "lake") if publication_id else ("lake, publication := '*'", "lake, publication := publication")
    tables = [
        _TABLE.format(table=table.name, arguments=arguments, path=_path(table.name, benchmark, publication_id))
        for table, _ in LARGE
    ]
    head = _HEAD.format(what=what, more="" if publication_id else _ONE_OF_ALL)
    return "\n".join([head, *tables, _JUDGED.format(arguments=arguments, given=given)])


def _path(table: str, benchmark: str, publication_id: str | None) -> str:
    """What stands behind the lake's address in SQL."""
    home = f"/publish/{LAYOUT}/{FOLDER}/{table}/benchmark_name={benchmark}/publication="
    if publication_id:
        return quoted(f"{home}{publication_id}/*.parquet")
    return f"{quoted(home)} || publication || {quoted('/*.parquet')}"


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
