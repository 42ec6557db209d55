"""Anchors: frozen once from what is published, from all strata, and asked anew on the occasion of each night."""

from datetime import date

import polars as pl
import pytest

from flows.night_opening import open_night
from flows.nightly import run_night
from flows.nights.anchors import anchor_sets, freeze, newest_anchor_set
from flows.run import stages
from flows.run.context import RunContext, open_run
from schemas.errors import InputError
from schemas.tables.stored import JUDGEMENTS, SAMPLES
from tasks.context import StageContext
from tasks.plan.anchors import ANCHORS
from tests.support.night_world import N_PROMPTS, World, n_billed, write_benchmark

DAY = date(2026, 3, 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> StageContext:
    """A night that is published, without anchors yet."""
    folder = tmp_path_factory.mktemp("anchors")
    World(folder).make(0)
    file = write_benchmark(folder, judge_url, rubrics=("alignment", "composition"))
    run_night(RunContext.of(open_night(file, DAY)))
    return open_run(file, DAY)


def test_frozen_once_and_of_every_stratum(run: StageContext) -> None:
    made = freeze(run, N_PROMPTS)
    anchors = run.lake.scan(SAMPLES, made.anchor_set).collect()
    own = run.lake.scan(SAMPLES, _dataset(run, None)).collect()
    assert anchors.height == N_PROMPTS == made.n_samples
    assert anchors["prompt"].n_unique() == N_PROMPTS  # another prompt each time, as long as there is one
    assert set(anchors["category"]) == set(own["category"])
    assert anchors["model"].unique().to_list() == [ANCHORS]
    assert set(anchors["image_sha256"]) <= set(own["image_sha256"])
    assert set(anchors["sample_id"]).isdisjoint(own["sample_id"])  # a role of its own: a night may hold both

    with pytest.raises(InputError, match="--anew"):
        freeze(run, N_PROMPTS)
    assert freeze(run, N_PROMPTS, is_anew=True).anchor_set == made.anchor_set  # the same from the same
    smaller = freeze(run, 6, is_anew=True)
    assert newest_anchor_set(run.lake.root, "nights") == smaller.anchor_set
    assert {one.anchor_set for one in anchor_sets(run.lake.root, "nights")} == {made.anchor_set, smaller.anchor_set}
    assert run.lake.scan(SAMPLES, made.anchor_set).collect().equals(anchors)  # the first one is what it was


def test_every_night_asks_them_anew(run: StageContext, judge_url: str) -> None:
    anchor_set = newest_anchor_set(run.lake.root, "nights") or freeze(run, 6).anchor_set
    dataset, before = _dataset(run, anchor_set), n_billed(judge_url)
    asked: list[pl.DataFrame] = []
    for day in (DAY, date(2026, 3, 2)):
        night = StageContext(run.benchmark, run.rubrics, run.lake, run.ledger_url, day)
        plan = stages.plan(RunContext.of(night).having(dataset_id=dataset))
        judgements = run.lake.scan(JUDGEMENTS, plan.plan_id).collect()
        own, anchors = judgements.filter(occasion=""), judgements.filter(occasion=day.isoformat())
        assert own.height + anchors.height == judgements.height
        assert ANCHORS not in own["model"]
        assert set(anchors["rubric_id"]) == {"alignment", "composition"}  # both are for the source they came from
        assert set(anchors["sample_id"]) == set(run.lake.scan(SAMPLES, anchor_set).collect()["sample_id"])
        asked.append(judgements)
    first, second = (set(one.filter(pl.col("occasion") != "")["request_key"]) for one in asked)
    assert first.isdisjoint(second)  # another night is another question: nothing bypasses the cache
    same, again = (set(one.filter(occasion="")["request_key"]) for one in asked)
    assert same == again
    assert n_billed(judge_url) == before


def _dataset(run: StageContext, anchor_set: str | None) -> str:
    return stages.ingest(RunContext.of(run), None, anchor_set).dataset_id
