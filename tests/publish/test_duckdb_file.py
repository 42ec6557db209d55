"""salon.duckdb and views.sql: the same numbers as the Parquet files, from any working directory, and descriptions inside."""

import os
import re
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from flows.nights.drift import nightly_publications
from flows.nights.record import Night, note_night
from schemas.errors import CorruptLakeError
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.stored import PICTURES, RUNS
from tasks.lake.reading import Lake
from tasks.publish.duckdb_file import NAME, write_duckdb
from tasks.publish.duckdb_views import OF_AGREEMENTS, OF_PUBLICATIONS
from tasks.publish.explain.recomputed_mean import recomputed_mean
from tasks.publish.leaderboard import leaderboard_rows
from tasks.publish.machine_tables import record_run
from tasks.publish.withdrawn import Withdrawal, note_withdrawn
from tests.support.small_lake import filled_row

IDENTITIES = ("dataset_id", "plan_id", "snapshot_id", "reading_id")


@pytest.fixture
def lake_root(small_lake, put, name_digest):
    """The small lake, published twice: a night and the next."""
    identities = {name: name_digest(name.removesuffix("_id")) for name in IDENTITIES}
    said = {"provenance": {"identities": identities}}
    put(small_lake.lake.root, small_lake.cells, **said)
    put(small_lake.lake.root, small_lake.cells, publication_id=name_digest("next"), run_date=date(2026, 11, 4), **said)
    return small_lake.lake.root


@pytest.fixture
def elsewhere(tmp_path_factory):
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    yield
    os.chdir(before)


def test_the_file_holds_the_small_tables_of_every_publication(lake_root, small_cells, name_digest, elsewhere):
    path = write_duckdb(lake_root, "nightly")
    assert path == lake_root / "publish/v1/nightly" / NAME
    with duckdb.connect(str(path), read_only=True) as database:
        rows = database.execute("SELECT publication_id, count(*), sum(estimate) FROM benchmark_long GROUP BY ALL ORDER BY ALL")
        total = pytest.approx(small_cells["estimate"].sum())
        names = sorted([name_digest("publication"), name_digest("next")])
        assert rows.fetchall() == [(name, small_cells.height, total) for name in names]
        current = database.execute("SELECT publication_id, run_date::VARCHAR FROM current_publication").fetchall()
        assert current == [(name_digest("next"), "2026-11-04")]
        board = database.execute("SELECT model, dimension, estimate FROM leaderboard").fetchall()
        expected = [(row.model, row.dimension, row.estimate) for row in leaderboard_rows(small_cells, is_headline_only=False)]
        assert board == expected
        said = database.execute("SELECT comment FROM duckdb_columns() WHERE table_name = 'benchmark_long'").fetchall()
        assert [text for (text,) in said][: len(BENCHMARK_LONG.fields)] == [
            field.about + (f" [{field.unit}]" if field.unit else "") for field in BENCHMARK_LONG.fields
        ]
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    assert not list((lake_root / "staging").iterdir())


def test_the_macros_give_the_published_mean_from_any_folder(lake_root, small_lake, name_digest, elsewhere):
    with duckdb.connect(str(write_duckdb(lake_root, "nightly")), read_only=True) as database:
        both = database.execute("SELECT publication_id, count(*) FROM salon_judged(?) GROUP BY ALL", [str(lake_root)]).fetchall()
    assert {name for name, _ in both} == {name_digest("publication"), name_digest("next")}
    script = (lake_root / "publish/v1/nightly" / name_digest("publication") / "views.sql").read_text()
    with duckdb.connect() as database:
        database.execute(script)
        found = database.sql(f"SELECT * FROM salon_judged('{lake_root}') WHERE occasion = ''")
        rows = pl.DataFrame(found.to_arrow_table())
    assert rows["publication_id"].unique().to_list() == [name_digest("publication")]
    scored = rows.filter(pl.col("dimension") == "overall_score").with_columns(is_failure=pl.col("score").is_null())
    cell = small_lake.cells.filter(dimension="overall_score", category="__macro__", metric="mean").row(0, named=True)
    assert recomputed_mean(scored, "__macro__") == pytest.approx(cell["estimate"])
    never_planned = rows.filter(pl.col("dimension").is_null())
    assert never_planned.select("status", "reason").rows() == [("unusable_sample", "broken_image")]
    assert rows.filter(pl.col("prompt").is_null()).is_empty()


def test_of_one_publication_no_other_ones_files_are_opened(lake_root, name_digest, elsewhere):
    path = write_duckdb(lake_root, "nightly")
    for other in lake_root.glob(f"publish/v1/tables/*/*/publication={name_digest('publication')}/*.parquet"):
        other.unlink()  # linked: written over, the other publication's would be too
        other.write_bytes(b"no Parquet")
    question = "SELECT DISTINCT publication_id FROM salon_{}(?, publication_id := ?)"
    with duckdb.connect(str(path), read_only=True) as database:
        for table in ("judged", "judgements", "scores", "samples"):
            rows = database.execute(question.format(table), [str(lake_root), name_digest("next")]).fetchall()
            assert rows == [(name_digest("next"),)], table
        with pytest.raises(duckdb.InvalidInputException, match=r"No magic bytes|too small"):
            database.execute("FROM salon_judged(?)", [str(lake_root)])


def test_one_taken_back_is_read_by_its_id_alone(lake_root, name_digest, elsewhere):
    gone, kept = name_digest("publication"), name_digest("next")
    note_withdrawn(lake_root, Withdrawal(gone, "nightly", "2026-11-03", "2026-11-05T00:00:00+00:00", "here", "wrong", 0))
    path = write_duckdb(lake_root, "nightly")
    with duckdb.connect() as database:
        database.execute(f"ATTACH '{path}' AS night (READ_ONLY); USE night")
        for table in ("judged", "judgements", "scores", "samples"):
            for given, there in (("", kept), (f", publication_id := '{gone}'", gone)):
                question = f"SELECT DISTINCT publication_id FROM salon_{table}(?{given})"
                rows = database.execute(question, [str(lake_root)]).fetchall()
                assert rows == [(there,)], table
        database.execute("USE memory")  # from another file's side too
        rows = database.execute("SELECT DISTINCT publication_id FROM night.salon_scores(?)", [str(lake_root)]).fetchall()
        assert rows == [(kept,)]


def _note_run(lake_root: Path, publication_id: str, hour: int = 1, **more: str) -> None:
    moment = datetime(2026, 11, 3, hour, tzinfo=UTC)
    run = more | {"started_at": moment, "finished_at": moment, "benchmark": "nightly", "publication_id": publication_id}
    record_run(Lake(lake_root), filled_row(RUNS, **run))


def test_a_date_whose_last_runs_publication_is_gone_is_that_of_the_one_that_is_there(lake_root, name_digest):
    for hour, name in ((1, "publication"), (2, "gone")):
        _note_run(lake_root, name_digest(name), hour)
    with duckdb.connect(str(write_duckdb(lake_root, "nightly")), read_only=True) as database:
        found = database.sql("SELECT run_date::VARCHAR, publication_id FROM nightly_publications").fetchall()
        assert found == [("2026-11-03", name_digest("publication"))]


@pytest.mark.parametrize(
    ("noted", "night"), [({}, "next"), ({"2026-11-03": "publication"}, "publication"), ({"2026-11-02": "gone"}, None)]
)
def test_once_nights_are_noted_a_later_run_of_the_date_takes_no_ones_place(lake_root, name_digest, noted, night):
    for hour, name in ((1, "publication"), (2, "next")):
        _note_run(lake_root, name_digest(name), hour)
    for day, name in noted.items():
        about = Night({"north": "1"})
        note_night(lake_root, "nightly", about, date.fromisoformat(day), name_digest(name), is_whole=True)
    with duckdb.connect(str(write_duckdb(lake_root, "nightly")), read_only=True) as database:
        shown = database.sql("SELECT run_date::VARCHAR, publication_id FROM nightly_publications").fetchall()
    assert shown == ([("2026-11-03", name_digest(night))] if night else [])


def test_where_the_only_night_was_taken_back_no_other_publication_is_one(lake_root, name_digest):
    for asked_by, name in (("run", "next"), ("nightly", "publication")):
        _note_run(lake_root, name_digest(name), asked_by=asked_by)
    assert len(nightly_publications(lake_root, "nightly")) == 2
    gone = Withdrawal(name_digest("publication"), "nightly", "2026-11-03", "2026-11-05T00:00:00+00:00", "here", "wrong", 1)
    note_withdrawn(lake_root, gone)
    assert nightly_publications(lake_root, "nightly") == []
    with duckdb.connect(str(write_duckdb(lake_root, "nightly")), read_only=True) as database:
        assert database.sql("SELECT * FROM nightly_publications").fetchall() == []


def test_a_night_whose_note_is_spoiled_is_named(lake_root):
    note = lake_root / "nights/nightly/2026-11-03.json"
    note.parent.mkdir(parents=True)
    note.write_text("{}")
    with pytest.raises(
        CorruptLakeError, match=re.escape(f"{note} is not a valid record of a night ('publication_id'); delete it and run")
    ):
        write_duckdb(lake_root, "nightly")


def test_a_duckdb_of_years_ago_opens_the_file(lake_root):
    """Its header names the storage version: 64 and 65 are DuckDB 1.0 to 1.2 (duckdb.org/docs/stable/internals/storage)."""
    header = write_duckdb(lake_root, "nightly").read_bytes()[:20]
    assert header[8:12] == b"DUCK"
    assert 64 <= int.from_bytes(header[12:20], "little") <= 65


def test_without_tables_there_is_no_file(tmp_path):
    assert write_duckdb(tmp_path, "nightly") is None
    assert not (tmp_path / "publish").exists()


def test_a_reader_keeps_its_file_while_a_new_one_is_written(lake_root):
    path = write_duckdb(lake_root, "nightly")
    with duckdb.connect(str(path), read_only=True) as reading:
        write_duckdb(lake_root, "nightly")
        assert reading.execute("SELECT count(*) FROM publications").fetchone() == (2,)
    with duckdb.connect(str(path), read_only=True) as database:
        assert database.execute("SELECT count(*) FROM publications").fetchone() == (2,)


def test_every_column_says_what_it_is_and_a_publication_has_one_name(lake_root):
    with duckdb.connect(str(write_duckdb(lake_root, "nightly")), read_only=True) as database:
        columns = database.execute("SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal").fetchall()
    assert len({table for table, _, _ in columns}) > 8
    without = {table for table, _, comment in columns if not comment}
    assert without == {f"current_{name}" for name in (*OF_PUBLICATIONS, *OF_AGREEMENTS)}, "whose columns are the table's"
    assert {column for _, column, _ in columns} & {"run_id", "publication", "benchmark_name"} == set()


@pytest.mark.parametrize(
    ("view", "estimand"), [("leaderboard", "prompts_like_these"), ("trend", "these_prompts")], ids=["leaderboard", "trend"]
)
def test_a_view_says_which_interval_it_shows(lake_root, name_digest, view, estimand):
    _note_run(lake_root, name_digest("publication"))
    other = "SELECT * REPLACE ('these_prompts' AS estimand, ci_low + 0.25 AS ci_low) FROM benchmark_long"
    about = f"SELECT comment FROM duckdb_columns() WHERE table_name = '{view}' AND column_name IN ('ci_low', 'ci_high')"
    with duckdb.connect(str(write_duckdb(lake_root, "nightly"))) as database:
        database.execute(f"INSERT INTO benchmark_long {other}")
        shown = database.execute(f"SELECT estimand, ci_low FROM {view} WHERE ci_low IS NOT NULL").fetchall()
        held = database.execute("SELECT estimand, ci_low FROM benchmark_long WHERE estimand = ?", [estimand]).fetchall()
        comments = [text for (text,) in database.execute(about).fetchall()]
    assert shown
    assert set(shown) <= set(held)
    assert [f"(estimand {estimand})" in text for text in comments] == [True, True]


def test_a_publication_from_before_the_column_had_its_name_is_read_beside_the_others(lake_root, name_digest):
    old = name_digest("publication")
    for path in lake_root.glob(f"publish/v1/tables/*/*/publication={old}/*.parquet"):
        rows = pl.read_parquet(path, hive_partitioning=False).rename({"publication_id": "run_id"}, strict=False)
        path.unlink()
        rows.write_parquet(path)
    file = write_duckdb(lake_root, "nightly")
    with duckdb.connect(str(file), read_only=True) as database:
        found = database.execute("SELECT publication_id, count(*) FROM benchmark_long GROUP BY ALL ORDER BY 2").fetchall()
    assert {name for name, _ in found} == {old, name_digest("next")}
    assert len({n for _, n in found}) == 1


def test_a_publication_from_before_a_column_is_asked_for_it_in_vain(lake_root, name_digest, elsewhere):
    """Scores of older releases name no item: the macros go on, and it is null."""
    for file in lake_root.glob(f"publish/v1/tables/scores/*/publication={name_digest('publication')}/*.parquet"):
        older = pl.read_parquet(file).drop("item", "score_span")
        file.unlink()  # linked: written over, the lake's own would be too
        older.write_parquet(file)
    question = "SELECT count(*), count(score), count(item) FROM salon_judged(?, publication_id := ?)"
    with duckdb.connect(str(write_duckdb(lake_root, "nightly")), read_only=True) as database:
        before, now = (
            database.execute(question, [str(lake_root), name_digest(name)]).fetchone() for name in ("publication", "next")
        )
    assert before is not None
    assert now is not None
    assert (before[:2], before[2]) == (now[:2], 0)
    assert now[2] > 0


def test_a_column_that_no_file_has_yet_stops_nothing(lake_root):
    """Of a release that adds one, until the first run of it."""
    for file in lake_root.glob("publish/v1/tables/benchmark_long/*/*/*.parquet"):
        older = pl.read_parquet(file, hive_partitioning=False).drop("n_looks")
        file.unlink()  # linked: written over, the publication's own would be too
        older.write_parquet(file)
    with duckdb.connect(str(write_duckdb(lake_root, "nightly")), read_only=True) as database:
        held = database.execute(
            "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'benchmark_long'"
        ).fetchall()
    assert "n_looks" not in dict(held)
    assert [name for name, comment in held if not comment] == []


def test_of_a_lake_of_an_older_release_there_are_no_macros_over_pictures(small_lake, put, name_digest):
    shutil.rmtree(small_lake.lake.root / "complete" / PICTURES.name)
    identities = {name: name_digest(name.removesuffix("_id")) for name in IDENTITIES}
    put(small_lake.lake.root, small_lake.cells, provenance={"identities": identities})
    script = (small_lake.lake.root / "publish/v1/nightly" / name_digest("publication") / "views.sql").read_text()
    with duckdb.connect() as database:
        database.execute(script)
        macros = database.execute("SELECT function_name FROM duckdb_functions() WHERE function_name LIKE 'salon_%'").fetchall()
        assert {name for (name,) in macros} == {"salon_samples", "salon_judgements", "salon_scores", "salon_judged"}
        for (name,) in macros:
            database.execute(f"SELECT count(*) FROM {name}(?)", [str(small_lake.lake.root)]).fetchall()
