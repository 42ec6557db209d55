"""The views of salon.duckdb and its macro over single scores, on a lake that holds pairs and anchors beside plain scores."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.publish.dashboards.mixed_lake import publish_mixed
from tests.support.small_lake import SmallLake, digest


@pytest.fixture
def database(tmp_path: Path, small_lake: SmallLake) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(publish_mixed(tmp_path / "mixed", small_lake)), read_only=True) as opened:
        yield opened


@pytest.mark.parametrize("view", ["leaderboard", "win_rates", "pair_leaderboard"])
def test_a_view_says_of_which_benchmark_date_and_publication_its_rows_are(database: duckdb.DuckDBPyConnection, view: str) -> None:
    named = f"SELECT DISTINCT publication_id, (run_date IS NULL OR benchmark IS NULL OR rubric_version IS NULL) FROM {view}"
    assert database.execute(named).fetchall() == [(digest("publication"), False)]


def test_win_rates_and_ratings_have_views_best_first(database: duckdb.DuckDBPyConnection) -> None:
    won = database.execute("SELECT rubric_id, checkpoint_a, checkpoint_b, win_rate FROM win_rates").fetchall()
    assert won == [("preference", "1|a", "2", 0.75)]
    rated = database.execute("SELECT rank_low, model, rating FROM pair_leaderboard WHERE judge_model = 'eye'").fetchall()
    assert rated == [(1, "lab/north", 0.0), (2, "lab/south", -191.0)]


def test_a_verdict_on_a_pair_is_told_from_a_score(database: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    shown = "SELECT DISTINCT rubric_id, second_sample_id, second_model, second_checkpoint FROM salon_judged(?) WHERE {}"
    lake = [str(tmp_path / "mixed")]
    pairs = database.execute(shown.format("second_sample_id IS NOT NULL"), lake).fetchall()
    assert pairs == [("preference", digest("second"), "lab/south", "2")]
    alone = database.execute(shown.format("second_sample_id IS NULL"), lake).fetchall()
    assert {row[0] for row in alone} == {"small", "other"}
