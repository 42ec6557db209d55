"""`salon explain` of a mean that is withheld: why there is none, and no number in its place; and of one that was forged."""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from tasks.lake.atomic_files import sha256_of_file
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


def _published(
    tmp_path: Path, provider: Provider, salon: Callable[..., Said], plays: list[Play], checkpoint: str
) -> tuple[str, Path]:
    """The id of a checkpoint's mean over categories, of which step-2 lacks one; and the publication's folder."""
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
    (manifest,) = (tmp_path / "lake" / "publish" / "v1" / "held").glob("*/manifest.json")
    cells = pl.read_parquet(manifest.parent / "benchmark_long.parquet").filter(
        checkpoint=checkpoint, category="__macro__", metric="mean", estimand="prompts_like_these"
    )
    return cells["cell_id"][0], manifest.parent


@pytest.mark.parametrize(("plays", "checkpoint", "why"), WHY.values(), ids=WHY.keys())
def test_no_number_stands_for_a_mean_that_is_withheld(
    tmp_path: Path, provider: Provider, salon: Callable[..., Said], plays: list[Play], checkpoint: str, why: str
) -> None:
    cell, _ = _published(tmp_path, provider, salon, plays, checkpoint)
    (line,) = [line for line in salon("explain", cell).out.splitlines() if line.startswith("recomputed")]
    assert line.startswith("recomputed  nothing, as no mean is published: ")
    assert line.endswith(f"{why}; the counts agree")
    assert json.loads(salon("explain", cell, "--json").out)["recomputed"] is None
    assert salon("explain", cell).code == 0


def _forge(folder: Path, change: pl.Expr) -> None:
    """Change the published cells, and the digests of them in manifest and pointers."""
    table, manifest = folder / "benchmark_long.parquet", folder / "manifest.json"
    pl.read_parquet(table).with_columns(change).write_parquet(table)
    said = json.loads(manifest.read_text())
    said["files"][table.name] = {"n_bytes": table.stat().st_size, "sha256": sha256_of_file(table)}
    manifest.write_text(json.dumps(said))
    for pointer in folder.parent.glob("latest*.json"):
        pointer.write_text(json.dumps(json.loads(pointer.read_text()) | {"manifest_sha256": sha256_of_file(manifest)}))


@pytest.mark.parametrize(
    ("checkpoint", "change", "told"),
    [("step-1", pl.col("estimate") + 0.01, "does not agree"), ("step-2", pl.col("n_failed") + 1, "the counts do not agree")],
    ids=["a mean", "the counts of a mean that is withheld"],
)
def test_what_does_not_follow_from_the_replies_ends_with_exit_code_1(
    tmp_path: Path, provider: Provider, salon: Callable[..., Said], checkpoint: str, change: pl.Expr, told: str
) -> None:
    cell, folder = _published(tmp_path, provider, salon, [], checkpoint)
    assert salon("explain", cell).code == 0
    _forge(folder, change)
    said = salon("explain", cell)
    assert (said.code, said.out.split("recomputed")[1].splitlines()[0].endswith(told)) == (1, True)
    assert salon("explain", cell, "--json").code == 1
