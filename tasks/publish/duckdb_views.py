"""What salon.duckdb is written in: its storage, its views over small tables, macros over large ones. The file: duckdb_file.py."""

import functools
from collections.abc import Collection

import pyarrow as pa

from schemas.tables.catalogue import OF_AGREEMENT, OF_PUBLICATION
from schemas.tables.stored import PICTURES
from schemas.tables.table import Table
from tasks.publish.folders import LAYOUT
from tasks.publish.machine_tables import FOLDER, LARGE

STORAGE: dict[str, str | bool | int | float | list[str]] = {"storage_compatibility_version": "v1.2.0"}
"""The oldest DuckDB that opens the file, as a setting: BI tools and DuckDB's own extensions are versions behind the library."""
CURRENT = "current_"
_OF_CURRENT = """\
CREATE VIEW {current}{name} AS SELECT * FROM "{name}"
    SEMI JOIN (SELECT publication_id FROM {listed} WHERE is_current) USING (publication_id);
"""
OF_PUBLICATIONS = {table.name: table for table in OF_PUBLICATION}
OF_AGREEMENTS = {f"agreement_{table.name}" if table in OF_PUBLICATION else table.name: table for table in OF_AGREEMENT}
"""What the file holds, by the names there: an agreement's win rates are not to be counted among a publication's."""
_NIGHTS = """\
CREATE VIEW current_publication AS SELECT * FROM publications WHERE is_current;
CREATE VIEW leaderboard AS
    SELECT rubric_id, judge_model, dimension, category, is_headline, rank_low, rank_high, n_ranked, model, checkpoint, estimate,
        ci_low, ci_high, delta_predecessor, delta_predecessor_low, delta_predecessor_high, p_predecessor, verdict_predecessor,
        delta_baseline, delta_baseline_low, delta_baseline_high, p_baseline, verdict_baseline, n_prompts, n_shared_prompts,
        n_images, n_judgements, n_failed, coverage, bound_low, bound_high, state, reason, cell_id,
        'prompts_like_these' AS estimand, benchmark, run_date, publication_id, rubric_version
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
    FROM runs SEMI JOIN (FROM publications WHERE is_night AND NOT is_withdrawn) USING (publication_id)
    GROUP BY run_date ORDER BY run_date;
CREATE VIEW trend AS
    SELECT run_date, rubric_id, judge_model, dimension, model, checkpoint, estimate, ci_low, ci_high, coverage, status,
        publication_id, estimand, benchmark, rubric_version
    FROM benchmark_long SEMI JOIN nightly_publications USING (publication_id)
    WHERE category = '__macro__' AND metric = 'mean' AND estimand = 'these_prompts'
        AND (estimate IS NOT NULL OR status = 'blocked')  -- no row for a total that cannot exist
    ORDER BY rubric_id, judge_model, dimension, model, run_date, checkpoint;
"""
_PAIRS = """\
CREATE VIEW win_rates AS
    SELECT rubric_id, judge_model, dimension, category, model_a, checkpoint_a, model_b, checkpoint_b, is_primary,
        is_to_predecessor, is_to_baseline, win_rate, ci_low, ci_high, ci_low_adjusted, ci_high_adjusted, p_adjusted, verdict,
        n_prompts, n_pairs, n_win, n_tie, n_loss, n_order_dependent, n_unjudged, coverage, bound_low, bound_high, status, reason,
        pair_id, benchmark, run_date, publication_id, rubric_version
    FROM current_preferences
    ORDER BY rubric_id, judge_model, dimension, category, model_a, checkpoint_a, model_b, checkpoint_b;
CREATE VIEW pair_leaderboard AS
    SELECT rubric_id, judge_model, dimension, rank_low, rank_high, n_ranked, model, checkpoint, rating, ci_low, ci_high, anchor,
        state, reason, n_prompts, n_pairs, n_opponents, n_win, n_tie, n_loss, benchmark, run_date, publication_id,
        rubric_version
    FROM current_preference_ratings
    ORDER BY rubric_id, judge_model, dimension, rank_low NULLS LAST, rank_high, rating DESC NULLS LAST, model, checkpoint;
"""
_ALL = {"publications": OF_PUBLICATIONS, "agreements": OF_AGREEMENTS}
_OF_EACH = [_OF_CURRENT.format(current=CURRENT, name=name, listed=one) for one, names in _ALL.items() for name in names]
VIEWS = "".join([_NIGHTS, *_OF_EACH, _PAIRS])
INTERVALS = {
    "leaderboard": "Here for prompts like these (estimand prompts_like_these): how sure the mean is. In trend it is another.",
    "trend": "Here for these prompts (estimand these_prompts): what moves from night to night. In leaderboard it is another.",
}
"""What ci_low and ci_high are in each view that has them: of one mean they differ, and neither is wrong."""

_HEAD = """\
-- DuckDB macros over the large tables of {what}.
-- Their argument is the lake: its folder as an absolute path, or an address such as 's3://bucket/lake'. So they work from any
-- working directory:
--     .read views.sql
--     SELECT rubric_id, judge_model, dimension, model, checkpoint, avg(score) FROM salon_judged('/data/lake')
--     WHERE status = 'scored' AND second_sample_id IS NULL AND occasion = '' AND coalesce(item, '') = '' GROUP BY ALL;
-- Scores of several rubrics, judges or dimensions have no mean together. second_sample_id: a verdict on a pair, 1 where sample_id
-- won. occasion: the night of an anchor (model and checkpoint `__anchors__`), `exam` of a planted fault. item: one of a list.
{more}"""
_ONE_OF_ALL = """\
-- Of one publication, publication_id := '<id>' opens its files alone; a condition opens every publication's first.
-- Without it, those that were taken back are left out.
"""
_TABLE = """\
CREATE OR REPLACE MACRO salon_{table}({arguments}) AS TABLE
    SELECT * EXCLUDE (benchmark_name, publication), publication AS publication_id
    FROM read_parquet(lake || {path}, hive_partitioning = true, hive_types_autocast = false, union_by_name = true){kept}{later};
"""
_NOT_TAKEN_BACK = """
    WHERE publication_id <> '*' OR publication NOT IN ({gone}) /* salon withdraw took these back */"""
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
        p.question, p.text, p.reference, p.output, p.image_sha256,
        j.second_sample_id, j.second_model, j.second_checkpoint
    FROM salon_judgements({given}) j
    LEFT JOIN salon_scores({given}) s ON s.publication_id = j.publication_id AND s.request_key = j.request_key
    LEFT JOIN salon_samples({given}) p ON p.publication_id = j.publication_id AND p.sample_id = j.sample_id
    WHERE j.status <> 'duplicate';
"""


def views_sql(benchmark: str, publication_id: str | None = None, *, has_pictures: bool = True, gone: Collection[str] = ()) -> str:
    """The macros salon_samples, _pictures, _judgements, _scores, _judged, _shown over one publication, or all of a benchmark.

    Those over all take `publication_id := '<id>'` too: they then open that one's files alone, however many nights there are,
    and of those that are `gone`, which are left out otherwise.
    Of a dataset of an older release, which has no table of pictures, there are no macros over it.
    """
    what = f"publication {publication_id} of {benchmark}" if publication_id else f"all publications of {benchmark}"
    arguments, given = "lake", "lake"
    if not publication_id:
        arguments, given = "lake, publication_id := '*'", "lake, publication_id := publication_id"
    kept = _NOT_TAKEN_BACK.format(gone=", ".join(map(quoted, sorted(gone)))) if gone else ""
    tables = [
        _TABLE.format(
            table=table.name,
            arguments=arguments,
            path=_path(table.name, benchmark, publication_id),
            kept=kept,
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
