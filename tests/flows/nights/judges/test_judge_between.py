"""A judge that grew harder between two nights: table, gate and the night itself say so beside "worse", and what is left of it."""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from flows.commands.printed.judge_moves import sentence
from flows.nights.judge_between import JudgeMove
from tasks.aggregate.drift.between import Change
from tests.flows.flow_support import Said
from tests.support.night_world import MODEL, World, write_benchmark
from tests.support.servers.provider import Provider

ALIGNMENT = Path(__file__).parents[4] / "rubrics" / "alignment"
FIRST, HARDER_FROM = 3, 5  # checkpoints of these numbers have the same prompts
TOLD = "The judge moved too: between the nights of demo-painter/step-4 (2026-03-04) and demo-painter/step-5 (2026-03-05) the same"


def _night(salon: Callable[..., Said], file: Path, provider: Provider, number: int) -> Said:
    """A night of a new checkpoint; from HARDER_FROM on the judge takes two points off."""
    folder = file.parent / "made" / MODEL / World(file.parent).make(number)
    noon = datetime(2026, 3, number, 12, tzinfo=UTC).timestamp()
    os.utime(folder, (noon, noon))

    def answer(texts: str) -> str:
        score = 4 + hashlib.sha256(f"{number} {texts}".encode()).digest()[0] % 2
        return f"Reasoning: plain.\nScore: {score - 2 * (number >= HARDER_FROM)}"

    provider.answers = answer
    said = salon("nightly", file, "--run-date", f"2026-03-0{number}")
    assert said.code == 0, said
    return said


@pytest.fixture
def nights(salon: Callable[..., Said], tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> list[Said]:
    """Three nights of pictures that are as good as each other; on the last the judge takes two points off."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("COLUMNS", "400")
    told = []
    file = write_benchmark(tmp_path, provider.url, nightly="[statistics]\nmin_paired_prompts = 2")
    for number in range(FIRST, HARDER_FROM + 1):
        told.append(_night(salon, file, provider, number))
        if number == FIRST:
            assert salon("anchors", "freeze", file, "--n", "12").code == 0
    return told


def test_a_drop_that_is_the_judges_is_told_as_one(nights: list[Said], salon: Callable[..., Said], tmp_path: Path) -> None:
    moved = [TOLD in one.out for one in nights]
    assert moved == [False, False, True], [one.out for one in nights]
    second, third = (
        next(line.split()[1] for line in one.out.splitlines() if line.startswith("publication")) for one in nights[1:]
    )
    table = salon("table", "--publication", third).out
    assert (TOLD in table, "step-5 is worse than step-4" in table) == (True, True), table
    assert "step-5: the judge moved too, its anchors by -" in table
    rows = json.loads(salon("table", "--publication", third, "--format", "json").out)
    by_name = {row["checkpoint"]: row["anchors_delta_predecessor"] for row in rows}
    assert (by_name["step-4"], by_name["step-5"] < -1) == (None, True)
    as_csv = list(csv.DictReader(io.StringIO(salon("table", "--publication", third, "--format", "csv").out)))
    highs = {row["checkpoint"]: row["anchors_delta_predecessor_high"] for row in as_csv}
    assert (highs["step-4"], float(highs["step-5"]) < 0) == ("", True)

    gated = salon("gate", third, "--alpha", "0.05")
    assert (gated.code, TOLD in gated.out, gated.out.startswith("Regression: worse in 1 of 1")) == (1, True, True), gated
    assert "Subtracting that, demo-painter/step-5 differs by " in salon("gate", third, "--format", "markdown").out.replace(
        "\\", ""
    )
    (told,) = json.loads(salon("gate", third, "--format", "json").out)["judge_moved"]
    assert (told["night_before"], told["night"], told["n_anchors"]) == ("2026-03-04", "2026-03-05", 12)
    assert told["left"]["low"] is None  # few prompts have no t
    assert " in score (interval: 99 %, not corrected for the number of comparisons). Subtracting that" in gated.out
    assert "That has no interval, as the comparison was no t test (few prompts, " in gated.out
    series = tmp_path / "lake" / "series" / "nights.parquet"
    kept = pl.read_parquet(series)  # as where the date had an earlier publication, and the series were not made anew since
    other = kept.filter(run_date="2026-03-04").with_columns(run_date=pl.lit("2026-03-05"), night=pl.lit("0" * 64))
    pl.concat([kept.filter(pl.col("run_date") < "2026-03-05"), other]).write_parquet(series)
    assert salon("gate", third, "--alpha", "0.05").out == gated.out
    series.unlink()  # what is kept there can be derived again
    assert salon("gate", third, "--alpha", "0.05").out == gated.out
    assert "The judge moved" not in salon("gate", second, "--alpha", "0.05").out


def _change_the_judge(file: Path) -> None:
    file.write_text(file.read_text().replace("max_tokens = 50", "max_tokens = 60"))


def _change_the_prompt(file: Path) -> None:
    prompt = file.parent / "mine" / "matching" / "prompt.txt"
    prompt.write_text(prompt.read_text().replace("maximum 20 words", "at most 20 words"))


@pytest.mark.parametrize("change", [_change_the_judge, _change_the_prompt])
def test_of_checkpoints_that_were_judged_anew_on_one_day_no_judge_moved_between(
    change: Callable[[Path], None],
    salon: Callable[..., Said],
    tmp_path: Path,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their nights are two, and their replies none of these: what is asked changed between them."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    shutil.copytree(ALIGNMENT, tmp_path / "mine" / "matching", ignore=shutil.ignore_patterns("golden"))
    own = tmp_path / "mine" / "matching" / "rubric.toml"
    own.write_text(own.read_text().replace('id = "alignment"', 'id = "matching"'))
    lines = {"judge": "parameters = { max_tokens = 50 }", "nightly": "[statistics]\nmin_paired_prompts = 2"}
    file = write_benchmark(tmp_path, provider.url, rubrics=("matching",), **lines)
    file.write_text('rubric_folders = ["mine"]\n' + file.read_text())
    _night(salon, file, provider, FIRST)
    assert salon("anchors", "freeze", file, "--n", "12").code == 0
    _night(salon, file, provider, HARDER_FROM - 1)
    change(file)
    _night(salon, file, provider, HARDER_FROM)
    backfill = salon("backfill", file, "--checkpoints", f"step-{HARDER_FROM - 1},step-{HARDER_FROM}")
    assert (backfill.code, "step-5" in backfill.out) == (0, True), backfill.err
    for is_kept in (True, False):
        assert "judge moved" not in backfill.out + salon("table").out, is_kept
        shutil.rmtree(tmp_path / "lake" / "series", ignore_errors=True)


def test_what_an_interval_is_of_and_at_which_level_is_said() -> None:
    named = ("small", "eye", "score", ("north", "2"), ("north", "1"), "2026-03-02", "2026-03-01", 12)
    said = sentence(JudgeMove(*named, Change(-1.0, -1.5, -0.5), Change(0.1, -0.4, 0.6)))
    assert said.endswith(
        "the same 12 anchors changed by -1.00 [-1.50, -0.50] in score. Subtracting that, north/2 differs by +0.10 [-0.40, +0.60] "
        "(both intervals: 99 %, not corrected for the number of comparisons)."
    )
