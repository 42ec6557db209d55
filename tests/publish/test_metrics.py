"""Cells of other metrics and estimands: an address means the mean for prompts like these, an id any cell; all are traced."""

import polars as pl
import pytest

from schemas.benchmark.file import Statistics
from schemas.metrics import Metric
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.aggregate.tables import Settings, long_table
from tasks.publish.explain.cells import explain, find_cell
from tasks.publish.leaderboard import leaderboard_rows
from tasks.publish.reading import current, load_cells


@pytest.fixture
def published(small_lake, put, run_arguments):
    ids, lake = run_arguments["identities"], small_lake.lake
    run = Settings(**run_arguments["run"], statistics=Statistics(at_least={"overall_score": 6}))
    judgements, scores = lake.scan(JUDGEMENTS, ids["plan_id"]), lake.scan(SCORES, ids["reading_id"])
    put(lake.root, long_table(judgements, scores, {small_lake.rubric.id: small_lake.rubric}, run))
    return current(lake.root)


@pytest.mark.parametrize(
    ("k", "name"),
    [(7.0, "7"), (0.5, "0.5"), (-1.0, "-1"), (7.2000001, "7.2000001"), (1 / 3, "0.3333333333333333"), (1234567.0, "1234567")],
)
def test_a_share_is_named_by_its_threshold_and_by_no_other(k: float, name: str) -> None:
    metric = Metric(at_least=k)
    assert metric.name == f"share_at_least_{name}"
    assert Metric.named(metric.name) == metric


def test_every_cell_is_made_again_from_its_scores(small_lake, published):
    cells = load_cells(published)
    assert set(cells["metric"]) == {"mean", "share_at_least_6"}
    assert set(cells["estimand"]) == {"prompts_like_these", "these_prompts"}
    for cell in cells.iter_rows(named=True):
        assert explain(small_lake.lake, published, cell).is_reproduced, cell["cell_id"]


def test_a_path_and_the_leaderboard_mean_the_mean_for_prompts_like_these(published):
    cells = load_cells(published)
    cell = find_cell(cells, "lab/north/1|a/small/overall_score/colors")
    assert (cell["metric"], cell["estimand"]) == ("mean", "prompts_like_these")
    share = cells.filter(pl.col("metric") != "mean").row(0, named=True)
    assert find_cell(cells, share["cell_id"]) == share
    assert cells["cell_id"].n_unique() == cells.height
    assert len(leaderboard_rows(cells)) == 1
