"""Rubrics whose scores are made of several requests (of items, or fixed ones) beside backfills, nights and looks."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.publish.reading import current
from tests.flows.flow_support import Said, cells_of
from tests.flows.runs.rubrics.own_rubric import own_rubric, write_rubric
from tests.flows.runs.rubrics.test_items import PROMPT, RUBRIC
from tests.support.painting import paint
from tests.support.servers.provider import Play, completion

THINGS = ("cup", "dog", "sky")
WHOLE = """\
id = "both"
version = "1"
title = "Two requests"
source = "written for the tests"
requests = ["first", "second"]
unit = ["image"]
[[figures]]
key = "overall"
form = "minimum"
of = ["first", "second"]
"""
ONE = """\
id = "{name}"
version = "1"
title = "One of two requests"
source = "written for the tests"
prompt = "prompt.txt"
reply = "answer"
needs = ["image"]
unit = ["image"]
answers = {{ yes = 1, no = 0 }}
[[dimensions]]
key = "{name}"
[[messages]]
role = "user"
parts = [{{ kind = "template" }}, {{ kind = "image" }}]
"""
N_PICTURES = 6
N_ASKED = {"each": 3 * N_PICTURES, "together": N_PICTURES, "both": 2 * N_PICTURES}
"""Requests of a checkpoint: three items a picture asked one by one or in one, and two requests a picture."""


DOCUMENT = Path(__file__).parents[4] / "docs/cost.md"
(RECIPE,) = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
EVERY = N_ASKED | {"one": N_PICTURES}


def write_world(home: Path, kind: str, url: str, more: str, n_checkpoints: int = 2) -> Path:
    """A rubric of that kind, and a benchmark of checkpoints "1", "2", …: each picture is its own prompt."""
    if kind == "both":
        for name in ("first", "second"):
            write_rubric(home, f"{kind}/{name}", ONE.format(name=name), f"Good, {name}?")
        (home / "mine" / kind / "rubric.toml").write_text(WHOLE)
    elif kind == "one":
        write_rubric(home, kind, ONE.format(name=kind), "Good, one?")
    else:
        reply = {"each": "answer", "together": "lines"}[kind]
        write_rubric(home, kind, RUBRIC.format(asked=kind, reply=reply), PROMPT)
    paint(home)
    pictures = [str(one.relative_to(home)) for one in sorted((home / "scenes").rglob("*.png"))]
    rows = [
        {
            "image": pictures[number * N_PICTURES + place], "checkpoint": str(number + 1), "prompt": f"p{place}",
            "items": [{"id": name, "question": f"Is there {name} {place}?", "kind": "thing"} for name in THINGS],
        }
        for number in range(n_checkpoints)
        for place in range(N_PICTURES)
    ]  # fmt: skip
    (home / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (home / "b.toml").write_text(own_rubric("lists", kind, 'model = "painter"', more).format(url=url))
    return home / "b.toml"


def answer(texts: str) -> str:
    return "\n".join("yes" for line in texts.splitlines() if line.endswith("?"))


@pytest.mark.parametrize("kind", N_ASKED)
def test_a_backfill_is_done_when_every_request_of_its_lists_is_answered(
    kind: str, tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    file = write_world(tmp_path, kind, provider.url, "")
    provider.answers = answer
    preview = salon("backfill", file, "--all", "--dry-run")
    assert f"to ask      {2 * N_ASKED[kind]} requests" in preview.out
    said = salon("backfill", file, "--all")
    assert (said.code, len(provider.seen)) == (0, 2 * N_ASKED[kind]), said.err
    assert "backfill: 2 done" in said.err.splitlines()
    assert set(cells_of(tmp_path / "lake")["checkpoint"]) == {"1", "2"}
    again = salon("backfill", file, "--all")
    assert (again.code, len(provider.seen)) == (0, 2 * N_ASKED[kind]), "nothing is asked again"


@pytest.mark.parametrize("kind", N_ASKED)
def test_checkpoints_are_asked_look_by_look(kind: str, tmp_path: Path, provider: Any, salon: Callable[..., Said]) -> None:
    more = '[nightly]\nbaseline = "painter/1"\n[statistics.stopping]\nlooks = [0.5, 1.0]'
    file = write_world(tmp_path, kind, provider.url, more)
    provider.answers = answer
    said = salon("run", file, "--run-date", "2026-01-02")
    assert (said.code, len(provider.seen)) == (0, 2 * N_ASKED[kind]), said.err
    long = cells_of(tmp_path / "lake").filter(pl.col("estimate").is_not_null())
    assert set(long["estimate"]) == {1.0}
    assert set(long["look"]) == {2}, "equal checkpoints are asked to the end"


@pytest.mark.parametrize("kind", N_ASKED)
def test_a_night_holds_its_checkpoint_against_the_one_before(
    kind: str, tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    file = write_world(tmp_path, kind, provider.url, '[nightly]\ncheckpoints = "ready.csv"')
    file.write_text(file.read_text().replace('path = "m.jsonl"', 'path = "data/{checkpoint}"'))
    for line in (tmp_path / "m.jsonl").read_text().splitlines():  # a folder for each
        row = json.loads(line)
        folder = tmp_path / "data" / row.pop("checkpoint")
        folder.mkdir(parents=True, exist_ok=True)
        copied = shutil.copy(tmp_path / row["image"], folder / f"{row['prompt']}.png")
        with (folder / "manifest.jsonl").open("a") as listed:
            listed.write(json.dumps(row | {"image": Path(copied).name}) + "\n")
    provider.answers = answer
    for number in (1, 2):
        ready = [f"painter,{one},2026-01-0{one}" for one in range(1, number + 1)]
        (tmp_path / "ready.csv").write_text("\n".join(["model,checkpoint,date", *ready]))
        said = salon("nightly", file, "--run-date", f"2026-01-0{number}")
        assert (said.code, len(provider.seen)) == (0, number * N_ASKED[kind]), said.err
    compared = pl.concat(
        pl.read_parquet(path).filter(comparison="predecessor")
        for path in tmp_path.glob("lake/publish/v1/lists/*/comparisons.parquet")
    )
    assert compared.select("checkpoint_a", "checkpoint_b").unique().rows() == [("2", "1")]
    assert "predecessor_missing" not in set(compared["reason"])
    done = json.loads(salon("backfill", file, "--list", "--json").out)
    assert str(done).count("'done'") >= 2


def test_anchors_may_have_items_that_do_not_apply_and_no_pairs(tmp_path: Path, provider: Any, salon: Callable[..., Said]) -> None:
    """Each picture has an item that the judge finds not to apply; nobody is asked the pairs of a single checkpoint."""
    file = write_world(tmp_path, "each", provider.url, "", n_checkpoints=1)
    file.write_text(file.read_text().replace("[[judges]]", '[[rubrics]]\nid = "preference"\n[[judges]]'))
    provider.answers = lambda texts: "N/A" if "sky" in texts else "yes"
    assert salon("run", file, "--run-date", "2026-01-02").code == 0
    frozen = salon("anchors", "freeze", file, "--n", "4")
    assert (frozen.code, "4 samples" in frozen.out) == (0, True), frozen.err


MODELS = ("judge-2026-01-01", "judge-2026-06-01")


def _answered_by(model: str, kind: str) -> Play:
    return Play(body=completion("yes\nyes\nyes" if kind == "together" else "yes", model=model))


@pytest.mark.parametrize("kind", EVERY)
def test_checkpoints_that_two_models_answered_are_told_of_and_not_compared(
    kind: str, tmp_path: Path, provider: Any, salon: Callable[..., Said], capsys: pytest.CaptureFixture[str]
) -> None:
    file, n = write_world(tmp_path, kind, provider.url, ""), EVERY[kind]
    for model, only in zip(MODELS, (("--checkpoints", "1"), ()), strict=True):
        provider.then = _answered_by(model, kind)
        said = salon("run", file, "--run-date", "2026-01-02", *only)
        assert said.code == 0, said.err
    assert f"by {MODELS[0]} ({n} replies), {MODELS[1]} ({n} replies)" in " ".join(said.out.split())
    folder = current(tmp_path / "lake").folder
    assert set(pl.read_parquet(folder / "comparisons.parquet")["reason"]) == {"answering_model_differs"}
    health = pl.read_parquet(folder / "health.parquet")
    for checkpoint, model in zip("12", MODELS, strict=True):
        found = {(row["measure"], row["word"]): row["value"] for row in health.filter(checkpoint=checkpoint).to_dicts()}
        assert (found["n_requests", ""], found["n_replies", "answered"], found["n_answered_by", model]) == (n, n, n)
        assert (found["n_attempts", ""], found["n_input_tokens", ""], found["n_output_tokens", ""]) == (n, 900 * n, 12 * n)
    assert salon("verify", folder, "--file", file).code == 0
    exec(RECIPE, {})
    assert re.search(rf" {kind} .* {2 * n} ", capsys.readouterr().out), "the page's own sum by rubric has every reply"


@pytest.mark.parametrize("kind", EVERY)
def test_a_checkpoint_that_two_models_answered_is_not_published(
    kind: str, tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    file, listed = write_world(tmp_path, kind, provider.url, "", n_checkpoints=1), tmp_path / "m.jsonl"
    every = listed.read_text()
    for model, text in zip(MODELS, ("".join(every.splitlines(keepends=True)[:4]), every), strict=True):
        listed.write_text(text)
        provider.then = _answered_by(model, kind)
        said = salon("run", file, "--run-date", "2026-01-02")
    assert said.code == 1
    assert "judgements.judge_model.is_one_model_in_a_cell failed for 2 of 6 rows" in " ".join(said.err.split())


@pytest.mark.parametrize("kind", N_ASKED)
def test_replies_by_another_model_are_told_of_before_the_rest_is_bought(
    kind: str, tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    file = write_world(tmp_path, kind, provider.url, "[limits]\nconcurrency = 1\nattempts_per_request = 1", n_checkpoints=1)
    own, other = (_answered_by(name, kind) for name in MODELS)
    provider.script.extend([own, own, other])
    provider.then = Play(503, b"upstream connect error")
    assert salon("run", file, "--run-date", "2026-01-02").code in (1, 3)
    n_seen, provider.then = len(provider.seen), own
    said = salon("run", file, "--run-date", "2026-01-02")
    assert (said.code, len(provider.seen)) == (2, n_seen), "nothing is sent"
    assert "1 of its stored replies are by judge-2026-06-01, but others of the same checkpoints are not" in " ".join(
        said.err.split()
    )
