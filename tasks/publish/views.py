"""views.sql: DuckDB macros over the tables of single samples and scores. The files themselves are machine_tables.py's."""

from tasks.publish.folders import LAYOUT
from tasks.publish.machine_tables import FOLDER, LARGE

_HEAD = """\
-- DuckDB macros over the large tables of {what}.
-- Their argument is the lake: its folder as an absolute path, or an address such as 's3://bucket/lake'. So they work from any
-- working directory:
--     .read views.sql
--     SELECT model, checkpoint, avg(score) FROM salon_judged('/data/lake') WHERE status = 'scored' GROUP BY ALL;
"""
_TABLE = """\
CREATE OR REPLACE MACRO salon_{table}(lake) AS TABLE
    SELECT * EXCLUDE (benchmark_name)
    FROM read_parquet(lake || {path}, hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
"""
_JUDGED = """\
-- A row for each dimension of each judgement, with the sample's texts; one never planned has its reason and no dimension.
CREATE OR REPLACE MACRO salon_judged(lake) AS TABLE
    SELECT
        j.publication, j.model, j.checkpoint, j.category, j.rubric_id, j.judge_model, s.dimension, s.score,
        coalesce(s.status, j.status) AS status, coalesce(s.reason, j.reason) AS reason, s.note, s.bound_low, s.bound_high,
        j.repeat, j.occasion, j.prompt_id, j.sample_id, j.request_key, p.source, p.source_key, p.item_id, p.prompt, p.question,
        p.text, p.reference, p.output, p.image_sha256
    FROM salon_judgements(lake) j
    LEFT JOIN salon_scores(lake) s ON s.publication = j.publication AND s.request_key = j.request_key
    LEFT JOIN salon_samples(lake) p ON p.publication = j.publication AND p.sample_id = j.sample_id;
"""


def views_sql(benchmark: str, publication_id: str | None = None) -> str:
    """The macros salon_samples, _judgements, _scores and _judged over one publication, or over all of a benchmark."""
    partition = f"benchmark_name={benchmark}/publication={publication_id or '*'}"
    what = f"publication {publication_id} of {benchmark}" if publication_id else f"all publications of {benchmark}"
    tables = [
        _TABLE.format(table=table.name, path=quoted(f"/publish/{LAYOUT}/{FOLDER}/{table.name}/{partition}/*.parquet"))
        for table, _ in LARGE
    ]
    return "\n".join([_HEAD.format(what=what), *tables, _JUDGED])


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
