"""One model asked in two ways in one benchmark: pictures at low detail, held against the full ones on a share of the prompts."""

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from demo.running import running_judge
from schemas.tables.stored import JUDGEMENTS, REPLIES
from tasks.lake.reading import Lake
from tasks.publish.reading import current
from tests.flows.flow_support import Said, runs_of
from tests.support.painting import paint

MODEL = "gpt-4.1-2025-04-14"
BENCHMARK = """\
name = "smaller"
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "alignment"
[[judges]]
model = "{model}"
name = "low"
base_url = "{url}"
parameters = {{ temperature = 0, max_tokens = 600 }}
detail = "low"
[[judges]]
model = "{model}"
name = "full"
base_url = "{url}"
parameters = {{ temperature = 0, max_tokens = 600 }}
share = {share}
"""


@pytest.fixture(scope="module")
def priced_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    scenario = tmp_path_factory.mktemp("priced") / "scenario.toml"
    scenario.write_text(f'[[models]]\nid = "{MODEL}"\n')
    with running_judge(scenario) as url:
        yield url


def test_two_judges_of_one_model_agree_on_the_share_that_both_were_shown(
    tmp_path: Path, priced_url: str, salon: Callable[..., Said]
) -> None:
    paint(tmp_path)

    def run(share: float) -> Said:
        (tmp_path / "b.toml").write_text(BENCHMARK.format(model=MODEL, url=priced_url, share=share))
        return salon("run", "b.toml", "--run-date", "2026-01-02", "--checkpoints", "step-1000")

    said = run(0.4)
    assert said.code in (0, 1), said.err
    lake = Lake(tmp_path / "lake")
    folder = current(tmp_path / "lake", None).folder
    pairs = pl.read_parquet(folder / "jury.parquet").filter(pl.col("judge_a") == "full", pl.col("judge_b") == "low")
    found = {metric: pairs.filter(metric=metric) for metric in ("bias", "quadratic_kappa")}
    marker = next((lake.root / "complete" / "judgements").iterdir())
    judgements = lake.scan(JUDGEMENTS, marker.stem).collect()
    full, low = (judgements.filter(judge_model=name) for name in ("full", "low"))
    assert 0 < full.height < low.height
    assert set(full["prompt_id"]) < set(low["prompt_id"])
    whole = low.filter(pl.col("prompt_id").is_in(full["prompt_id"].implode()))
    assert full.height == whole.height, "every picture of a drawn prompt"
    assert found["bias"]["n_items"].sum() == full.height
    assert found["bias"]["estimate"].abs().max() == 0  # this judge looks as closely at either
    assert found["quadratic_kappa"]["estimate"].unique().to_list() == [1]
    assert pl.read_parquet(folder / "pooled.parquet").is_empty(), "a share's judge is no part of a panel"
    replies = lake.scan(REPLIES, next((lake.root / "complete" / "replies").iterdir()).stem).collect()
    tokens = dict(replies.group_by("judge_model").agg(pl.col("n_input_tokens").mean()).iter_rows())
    assert tokens["full"] - tokens["low"] == pytest.approx(170, abs=5)  # 85 + 170 for a picture of 256 px, and 85 at low detail
    assert salon("verify", folder).code == 0

    held = salon("agreement", "b.toml", "--against-judge", "full", "--run-date", "2026-01-02")
    assert held.code == 0, held.err
    assert ["judge", "low", "full"] in [line.split()[:3] for line in held.out.splitlines()]
    assert "people" not in held.out
    assert "asked in looks" not in held.out
    home = next((lake.root / "publish/v1/smaller/agreement").glob("*/manifest.json")).parent
    widths = {
        row["estimator"]: row["ci_high"] - row["ci_low"]
        for row in pl.read_parquet(home / "corrected.parquet").filter(model="__all__", category="__micro__").iter_rows(named=True)
    }
    assert widths["prediction_powered"] < widths["labels"], "what both were shown says how the rest stands"
    assert "Agreement with full" in (home / "agreement.md").read_text()
    assert salon("verify", home).code == 0
    assert salon("agreement", "b.toml", "--against-judge", "fool").code == 2

    assert run(0.7).code in (0, 1)  # a larger share holds the smaller: only what is new is bought
    first, second = runs_of(tmp_path / "lake").sort("started_at").iter_rows(named=True)
    assert second["n_cached"] == first["n_requests"]
    assert second["n_asked"] == second["n_requests"] - first["n_requests"] > 0

    with (tmp_path / "b.toml").open("a") as file:
        file.write("[statistics.stopping]\nlooks = [0.5, 1.0]\n")
    looked = salon("agreement", "b.toml", "--against-judge", "full", "--run-date", "2026-01-03")
    assert "The judges were asked in looks" in (tmp_path / looked.out.split("files")[1].strip() / "agreement.md").read_text()
