"""`salon explain` of a mean that is withheld: why there is none, and no number in its place."""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from tests.flows.flow_support import Said
from tests.support.servers.provider import Play, Provider, completion

BENCHMARK = """\
name = "held"
[[sources]]
reader = "manifest"
path = "made.parquet"
[[rubrics]]
id = "alignment"
[[judges]]
model = "judge"
base_url = "{url}"
[limits]
attempts_per_request = 1
requests_per_minute = 60000
"""
GOOD = Play(body=completion("Score: 4"))
REFUSAL = Play(body=completion("I am unable to help with that request."))
WHY = {
    "lacks a category": ([], "step-2", "it lacks a category that others in the benchmark have"),
    "blocked": ([REFUSAL] * 16, "step-1", " % of the judgements have a score, 80.0 % needed (gate.min_coverage)"),
}


@pytest.mark.parametrize(("plays", "checkpoint", "why"), WHY.values(), ids=WHY.keys())
def test_no_number_stands_for_a_mean_that_is_withheld(
    tmp_path: Path, provider: Provider, salon: Callable[..., Said], plays: list[Play], checkpoint: str, why: str
) -> None:
    made = []
    for number in range(24):
        Image.effect_noise((64, 64), 60 + number).convert("RGB").save(tmp_path / f"{number}.png")
        category, of = "ab"[number % 2], "step-2" if number % 4 == 0 else "step-1"
        made.append({"image": f"{number}.png", "prompt": f"scene {number}", "category": category, "model": "m", "checkpoint": of})
    pl.DataFrame(made).write_parquet(tmp_path / "made.parquet")
    (tmp_path / "held.toml").write_text(BENCHMARK.format(url=provider.url))
    provider.script, provider.then = deque(plays), GOOD
    ran = salon("run", "held.toml", "--run-date", "2026-03-04")
    assert ran.code in (0, 1), ran.err
    (publication,) = (tmp_path / "lake" / "publish" / "v1" / "held").glob("*/manifest.json")
    cell = pl.read_parquet(publication.parent / "benchmark_long.parquet").filter(
        checkpoint=checkpoint, category="__macro__", metric="mean", estimand="prompts_like_these"
    )["cell_id"][0]
    (line,) = [line for line in salon("explain", cell).out.splitlines() if line.startswith("recomputed")]
    assert line.startswith("recomputed  nothing, as no mean is published: ")
    assert line.endswith(f"{why}; the counts agree")
    assert json.loads(salon("explain", cell, "--json").out)["recomputed"] is None
