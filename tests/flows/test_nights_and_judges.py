"""What a run publishes beside its means when it is repeated: the judge's own noise, and drift from the second night on."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from flow_support import Said

from demo import paint
from schemas.tables import DRIFT
from tasks.publish.reading import current

BENCHMARK = """\
name = "nights"
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "alignment"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
repeats = 2
"""


def test_repeats_and_nights(salon: Callable[..., Said], judge_url: str, tmp_path: Path) -> None:
    paint(tmp_path)
    (tmp_path / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    home = tmp_path / "lake" / "publish" / "v1" / "nights"
    assert salon("run", "b.toml", "--run-date", "2026-01-02").code == 0
    assert not (home / "drift.parquet").exists()  # one night is no series
    assert salon("run", "b.toml", "--run-date", "2026-01-03").code == 0

    publication = current(tmp_path / "lake")
    assert publication.run_date == "2026-01-03"
    reliability = pl.read_parquet(publication.folder / "reliability.parquet")
    assert reliability["checkpoint"].to_list() == ["step-1000", "step-2000", "step-3000"]
    assert reliability["n_repeats_mean"].to_list() == [2.0, 2.0, 2.0]
    assert reliability["var_judge"].to_list() == [0.0, 0.0, 0.0]  # the demo's judge says the same each time
    assert pl.read_parquet(publication.folder / "designs.parquet").height > 0

    assert pq.read_schema(home / "drift.parquet").equals(DRIFT.schema(), check_metadata=True)
    drift = pl.read_parquet(home / "drift.parquet")
    assert drift["run_date"].cast(pl.String).unique().sort().to_list() == ["2026-01-02", "2026-01-03"]
    assert drift["judge_model"].unique().to_list() == ["salon-demo-judge"]
