"""What a run publishes beside its means: the judge's own noise where it is repeated, and drift from the second night on."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from flows.observability.trend_images import trend_markdown
from schemas.tables.nights import DRIFT, NIGHTS
from schemas.tables.published import BENCHMARK_LONG
from tasks.aggregate.drift.bridge import joined
from tasks.publish.reading import current
from tasks.publish.standings.placed_cells import placed
from tests.flows.flow_support import Said
from tests.support.painting import paint, scenes

BENCHMARK = scenes("nights", "repeats = 2\n")


def test_repeats_and_nights(salon: Callable[..., Said], judge_url: str, tmp_path: Path) -> None:
    paint(tmp_path)
    (tmp_path / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    home = tmp_path / "lake" / "publish" / "v1" / "nights"
    assert salon("run", "b.toml", "--run-date", "2026-01-02").code == 0
    assert not (home / "drift.json").exists()  # one night is no series
    assert salon("run", "b.toml", "--run-date", "2026-01-03").code == 0

    publication = current(tmp_path / "lake")
    assert publication.run_date == "2026-01-03"
    reliability = pl.read_parquet(publication.folder / "reliability.parquet")
    assert reliability["checkpoint"].to_list() == ["step-1000", "step-2000", "step-3000"]
    assert reliability["n_repeats_mean"].to_list() == [2.0, 2.0, 2.0]
    assert reliability["var_judge"].to_list() == [0.0, 0.0, 0.0]  # the demo's judge says the same each time
    assert pl.read_parquet(publication.folder / "designs.parquet").height > 0

    newest = home / json.loads((home / "drift.json").read_bytes())["path"]
    assert pq.read_schema(newest).equals(DRIFT.schema, check_metadata=True)
    drift = pl.read_parquet(newest)
    assert drift["run_date"].cast(pl.String).unique().sort().to_list() == ["2026-01-02", "2026-01-03"]
    assert drift["judge_model"].unique().to_list() == ["salon-demo-judge"]


def test_the_trend_says_which_nights_another_judge_was_asked_on() -> None:
    common = {"rubric_id": "small", "judge_model": "new", "model": "north", "dimension": "score", "estimate": 5.0, "ewma": 5.0}
    rows = [common | {"run_date": date(2026, 11, n), "measured_by": "old" if n < 3 else "new"} for n in range(1, 5)]
    schema = DRIFT.empty().schema
    series = pl.DataFrame([dict.fromkeys(DRIFT.columns) | row for row in rows], schema=schema)
    no_cells = placed({BENCHMARK_LONG: BENCHMARK_LONG.empty()})
    assert "(hollow, up to 2026-11-02: old, carried over by a bridge)" in trend_markdown(no_cells, series).replace("\\", "")
    bare = series.with_columns(measured_by="judge_model")
    assert "bridge" not in trend_markdown(no_cells, bare)


def test_a_third_judge_goes_on_with_what_the_first_began() -> None:
    def bridge(old: str, new: str, offset: float, offset_se: float) -> dict[str, object]:
        return {"judge_old": old, "judge_new": new, "offset": offset, "offset_se": offset_se}

    fitted = {"rubric_id": "r", "rubric_version": "1", "dimension": "score", "bridge_kind": "offset", "n_prompts": 20}
    fitted |= {"n_images": 40, "centre_old": 5.0, "slope": 1.0, "slope_se": 0.0, "offset_slope_cov": 0.0}
    fitted |= {"status": "ok", "reason": None}
    crossed = pl.DataFrame([fitted | bridge("a", "b", 0.5, 0.03), fitted | bridge("b", "c", -0.2, 0.04)])
    night = {
        "benchmark": "x", "rubric_id": "r", "rubric_version": "1", "model": "m", "dimension": "score", "category": "__macro__",
        "n_judgements": 40, "scale_width": 10.0, "se": 0.0, "bridge_se": 0.0, "anchor_bridge_se": 0.0, "estimate": 5.0,
    }  # fmt: skip
    rows = [
        dict.fromkeys(NIGHTS.columns) | night | {"run_date": date(2026, 1, n), "judge_model": judge, "measured_by": judge}
        for n, judge in enumerate("abc", start=1)
    ]
    found = joined(pl.DataFrame(rows, schema=NIGHTS.empty().schema), crossed).sort("run_date")
    assert found["judge_model"].to_list() == ["c"] * 3
    assert found["measured_by"].to_list() == ["a", "b", "c"]
    assert found["estimate"].to_list() == pytest.approx([5.3, 4.8, 5.0])
    assert found["bridge_se"].to_list() == pytest.approx([0.05, 0.04, 0.0])  # two errors, independent of each other
