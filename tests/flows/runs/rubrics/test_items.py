"""Samples with items, from the source's list to the published figures: one request an item, and all in one."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.loading import load_rubric
from salon import open as open_publication
from schemas.tables.stored import JUDGEMENTS, REQUESTS, SCORES
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.validate.derived_scores import write_item_scores
from tests.flows.flow_support import Said
from tests.flows.runs.rubrics.own_rubric import own_rubric, shown_items, write_rubric
from tests.support.painting import paint

RUBRIC = """\
id = "{asked}"
version = "1"
title = "Questions about a picture"
source = "written for the tests"
prompt = "prompt.txt"
reply = "{reply}"
needs = ["items", "image"]
unit = ["items"]
answers = {{ yes = 1, no = 0 }}
not_applicable = ["N/A"]
[[dimensions]]
key = "answer"
[items]
column = "items"
asked = "{asked}"
texts = {{ question = {{ each = "{{question}}", join = "\\n" }} }}
kinds = {{ thing = "things", colour = "colours", sign = "signs" }}
[[figures]]
key = "score"
form = "mean"
when_parent_fails = "zero"
[[messages]]
role = "user"
parts = [{{ kind = "template" }}, {{ kind = "image" }}]
"""
PROMPT = "Answer yes, no or N/A.\n{question}"
BENCHMARK = own_rubric("items", "{asked}", 'model = "painter"', "[gate]\nmin_coverage = 0.1")
CUP = {"id": "cup", "question": "Is there a cup?", "kind": "thing"}
RED = {"id": "red", "question": "Is the cup red?", "kind": "colour", "depends_on": ["cup"]}
DOG = {"id": "dog", "question": "Is there a dog?", "kind": "thing"}
FUR = {"id": "fur", "question": "Is its fur brown?", "kind": ["thing", "colour"], "depends_on": ["dog"]}
SKY = {"id": "sky", "question": "Is the sky blue?", "kind": "colour"}
LISTS = [[CUP, RED], [DOG, FUR], [CUP, DOG, SKY]]
REPLIES = {"Is there a cup?": "yes", "Is the cup red?": "N/A", "Is there a dog?": "No.", "Is its fur brown?": "yes"} | {
    "Is the sky blue?": "yes"
}


def rows_of(lake: Lake, table: Any) -> pl.DataFrame:
    (marker,) = (lake.root / "complete" / table.name).iterdir()
    return lake.scan(table, marker.stem).collect()


@pytest.mark.parametrize(("asked", "reply", "n_requests"), [("each", "answer", 7), ("together", "lines", 3)])
def test_items_become_figures_that_are_dimensions_like_any_other(
    asked: str, reply: str, n_requests: int, tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    folder = write_rubric(tmp_path, asked, RUBRIC.format(asked=asked, reply=reply), PROMPT)
    paint(tmp_path)
    pictures = sorted((tmp_path / "scenes").rglob("*.png"))
    listed = [json.dumps(LISTS[0]), *LISTS[1:], "no list", json.dumps([CUP | {"depends_on": ["nobody"]}])]
    rows = [{"image": str(p.relative_to(tmp_path)), "items": text} for p, text in zip(pictures, listed, strict=False)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.toml").write_text(BENCHMARK.format(asked=asked, url=provider.url))
    provider.answers = lambda texts: "\n".join(REPLIES[line] for line in texts.splitlines()[1:])
    assert salon("rubrics", "lint", "mine").code == 0
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err

    lake = Lake(tmp_path / "lake")
    judgements, requests, scores = (rows_of(lake, table) for table in (JUDGEMENTS, REQUESTS, SCORES))
    assert judgements["status"].to_list() == ["planned"] * 3 + ["missing_column"] * 2
    assert judgements["reason"].drop_nulls().to_list() == ["malformed:items"] * 2
    assert requests.height == len(provider.seen) == n_requests
    pictures_asked = requests["image_sha256"].to_list()
    assert pictures_asked == sorted(pictures_asked, key=pictures_asked.index), (
        "a picture's questions meet: rubric, picture, question"
    )
    figures = judgements.join(scores.filter(dimension="score"), on="request_key", how="left", maintain_order="left")
    # cup yes, red N/A: 1; dog no, so its fur counts 0; cup yes, dog no, sky yes
    assert figures["score"].to_list() == [1.0, 0.0, 2 / 3, None, None]
    kinds = judgements.join(scores.filter(pl.col("item") != ""), on="request_key").sort("sample_id", "dimension", "item")
    assert sorted(kinds.select("dimension", "item", "score").rows(), key=str) == sorted(
        [
            ("things", "cup", 1.0), ("colours", "red", None), ("things", "dog", 0.0), ("things", "fur", None),
            ("colours", "fur", None), ("answer", "fur", None), ("things", "cup", 1.0), ("things", "dog", 0.0),
            ("colours", "sky", 1.0),
        ],
        key=str,
    )  # fmt: skip

    (publication,) = (path for path in (tmp_path / "lake" / "publish" / "v1" / "items").iterdir() if path.is_dir())
    cells = pl.read_parquet(publication / "benchmark_long.parquet").filter(category="__micro__", estimand="prompts_like_these")
    found = {row["dimension"]: row for row in cells.to_dicts()}
    assert found["score"]["estimate"] == pytest.approx(5 / 9, abs=1e-12)
    assert (found["score"]["n_judgements"], found["score"]["n_failed"]) == (5, 2)
    assert (found["things"]["estimate"], found["things"]["n_judgements"]) == (0.5, 4 + 2), "over items, not over samples"
    assert (found["things"]["n_failed"], found["things"]["n_not_applicable"]) == (2, 1), "no dog, so nobody asks for its fur"
    assert found["colours"]["n_not_applicable"] == 2
    assert "signs" not in found, "no sample has an item of that kind, so none of those without a request failed in it"
    void = scores.filter(pl.col("status") == "not_asked_for")
    assert set(void["item"]) == {"fur"}
    assert set(void["note"]) == {"the item it depends on, dog, failed"}
    assert set(void["reason"]) == {"not_asked_for"}
    told = salon("explain", judgements["sample_id"][1]).out
    assert "answer, item fur: no score (the item it depends on, dog, failed)" in told
    of_kind = json.loads(salon("explain", found["things"]["cell_id"], "--json", "--limit", "0").out)["judgements"]
    of_dog = [one for one in of_kind if one["item"] == "dog"]
    assert len(of_dog) == 2
    for one in of_dog:  # the reply that says this item's score, and the place in it
        (request,), (ask,) = one["requests"], one["asks"]
        assert "Is there a dog?" in request["messages_json"]
        assert (one["score"], ask["request_key"], request["items"]) == (0.0, request["request_key"], ["dog"])
        assert asked == "together" or ask["reply_text"][slice(*json.loads(one["score_span"]))] == "No"
    if asked == "each":
        assert "=== item fur, request" in told
        assert told.index("=== item fur") < told.index("Is its fur brown?", told.index("=== item fur"))
    frame = open_publication(tmp_path / "lake").samples().frame.filter(dimension="things")
    assert frame.select("sample_id", "item").is_unique().all(), "the rows of a list can be told apart"
    assert sorted(frame["item"]) == ["cup", "cup", "dog", "dog", "fur"]
    assert "a parent failed: fur" in salon("explain", found["score"]["cell_id"]).out
    words = {"Is there a dog?": "No.", "Is its fur brown?": "yes"} if asked == "each" else dict.fromkeys(REPLIES, "")
    report = (publication / "report.html").read_text()
    for page in ("report.html", "pictures-001.html"):
        of_dog = next(one for one in shown_items((publication / page).read_text()) if len(one) == 2 and "dog" in one[0])
        assert of_dog == [
            " ".join(f"Is there a dog? things 0 {words['Is there a dog?']}".split()),
            " ".join(f"Is its fur brown? colours not asked for things not asked for {words['Is its fur brown?']}".split()),
        ]
        assert asked == "each" or "No.\nyes</blockquote>" in (publication / page).read_text()
    counted = re.findall(r'aria-label="Ranking: (\w+), .*?>Prompts</th><th scope="col" class="n">(\w+)</th>', report, re.DOTALL)
    assert sorted(counted) == [("colours", "Items"), ("score", "Samples"), ("things", "Items")]
    assert salon("verify", publication, "--file", "b.toml").code == 0
    for row in found.values():
        explained = salon("explain", row["cell_id"])
        assert explained.code == 0, explained.err
        assert "not the mean" not in explained.out
    assert salon("run", "b.toml", "--run-date", "2026-01-03").code == 0
    assert len(provider.seen) == n_requests, "nothing is asked again"

    (plan, reading) = (next((lake.root / "complete" / table.name).iterdir()).stem for table in (JUDGEMENTS, SCORES))
    *read, of_items = lake.parts(SCORES, reading)
    staging = stage(lake, SCORES)
    for index, path in enumerate(read):
        staging.write_part(index, pl.read_parquet(path))
    made = write_item_scores(lake, plan, staging, {asked: load_rubric(folder)}, n_at_once=1)
    again = pl.concat([pl.read_parquet(staging.part_path(index)) for index in made])
    assert len(made) == 3, "a list at a time, however many there are"
    assert again.sort(SCORES.key).equals(pl.read_parquet(of_items))


def test_a_line_that_was_left_out_is_asked_for_once_more_and_costs_its_own_item(
    tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    rubric = RUBRIC.format(asked="together", reply="lines").replace("[items]", '[items]\nfields = { text = "question" }')
    write_rubric(tmp_path, "together", rubric, PROMPT)
    paint(tmp_path)
    pictures = sorted((tmp_path / "scenes").rglob("*.png"))
    rows = [{"image": str(p.relative_to(tmp_path)), "items": items} for p, items in zip(pictures, LISTS[1:], strict=False)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.toml").write_text(BENCHMARK.format(asked="together", url=provider.url))
    provider.answers = lambda texts: "1. yes\n3. no" if "sky" in texts else "yes\nyes"
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert len(provider.seen) == 3, "a better reply may come, and is asked for once"
    scores = rows_of(Lake(tmp_path / "lake"), SCORES)
    lost = scores.filter(status="unreadable", dimension="answer")
    assert lost.select("item", "reason").rows() == [("dog", "missing_key")]
    of_kinds = scores.filter(pl.col("dimension").is_in(["things", "colours"])).select("item", "score").rows()
    assert sorted(of_kinds, key=str) == [("cup", 1), ("dog", 1), ("dog", None), ("fur", 1), ("fur", 1), ("sky", 0)]
    (publication,) = (path for path in (tmp_path / "lake" / "publish" / "v1" / "items").iterdir() if path.is_dir())
    assert salon("verify", publication, "--file", "b.toml").code == 0


@pytest.mark.parametrize(("asked", "reply"), [("each", "answer"), ("together", "lines")])
def test_published_answers_to_items_are_imported(asked: str, reply: str, tmp_path: Path, salon: Callable[..., Said]) -> None:
    write_rubric(tmp_path, asked, RUBRIC.format(asked=asked, reply=reply), PROMPT)
    listed = [{"item_id": f"p{place}", "items": items} for place, items in enumerate(LISTS)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in listed))
    benchmark = BENCHMARK.format(asked=asked, url="http://localhost:1")
    (tmp_path / "b.toml").write_text(benchmark.replace("[gate]", "recorded = true\n[gate]"))
    each = [
        {"item_id": row["item_id"], "item": item["id"], "reply": REPLIES[item["question"]]}
        for row in listed
        for item in row["items"]
    ]
    whole = [{"item_id": row["item_id"], "reply": "\n".join(REPLIES[one["question"]] for one in row["items"])} for row in listed]
    of_nobody = (
        [{"item_id": "p0", "reply": "yes"}, {"item_id": "p0", "item": "dog", "reply": "yes"}]
        if asked == "each"
        else [{"item_id": "p0", "item": "cup", "reply": "yes"}]
    )
    (tmp_path / "r.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [*(each if asked == "each" else whole), *of_nobody])
    )
    said = salon("import", "b.toml", "--replies", "r.jsonl", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    told = " ".join(said.out.split())
    assert f"{7 if asked == 'each' else 3} stored, 0 there already, {len(of_nobody)} left out" in told
    assert asked == "together" or "matches 2 items; map one more of" in told
    assert "has item" in told
    lake = Lake(tmp_path / "lake")
    judgements, scores = (rows_of(lake, table) for table in (JUDGEMENTS, SCORES))
    figures = judgements.join(scores.filter(dimension="score"), on="request_key", how="left", maintain_order="left")
    assert figures["score"].to_list() == [1.0, 0.0, 2 / 3]
    (publication,) = (path for path in (tmp_path / "lake" / "publish" / "v1" / "items").iterdir() if path.is_dir())
    assert salon("verify", publication, "--file", "b.toml").code == 0


@pytest.mark.parametrize("first", ["items", "plain"])
def test_scores_of_items_take_no_part_of_other_scores(
    first: str, tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    """A rubric is asked about one source of two: the parts of the plan are not numbered without a gap, in either order."""
    write_rubric(tmp_path, "items", RUBRIC.format(asked="each", reply="answer").replace('"each"', '"items"', 1), PROMPT)
    write_rubric(tmp_path, "plain", PLAIN, "Good?")
    paint(tmp_path)
    pictures = [str(one.relative_to(tmp_path)) for one in sorted((tmp_path / "scenes").rglob("*.png"))]
    sources = {"items": [{"image": one, "items": LISTS[2]} for one in pictures[:2]], "plain": [{"image": pictures[2]}]}
    declared = ""
    for name in sorted(sources, key=lambda one: one != first):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sources[name]))
        declared += f'[[sources]]\nname = "{name}"\nreader = "manifest"\npath = "{name}.jsonl"\nmodel = "painter"\n'
    asked = "".join(f'[[rubrics]]\nid = "{name}"\nsources = ["{name}"]\n' for name in ("items", "plain"))
    judge = f'[[judges]]\nmodel = "judge"\nbase_url = "{provider.url}"\n[limits]\nshard_size = 1\n'
    (tmp_path / "b.toml").write_text(f'name = "two"\nrubric_folders = ["mine"]\n{declared}{asked}{judge}')
    provider.answers = lambda _: "yes"
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    (publication,) = (path for path in (tmp_path / "lake" / "publish" / "v1" / "two").iterdir() if path.is_dir())
    verified = salon("verify", publication, "--file", "b.toml")
    assert verified.code == 0, verified.out
    scores = rows_of(Lake(tmp_path / "lake"), SCORES)
    assert scores.filter(pl.col("dimension").is_in(["answer", "good"]))["score"].to_list() == [1.0] * 7
    assert scores.filter(dimension="score")["score"].to_list() == [1.0] * 2


PLAIN = """\
id = "plain"
version = "1"
title = "One question"
source = "written for the tests"
prompt = "prompt.txt"
reply = "answer"
needs = ["image"]
unit = ["image"]
answers = { yes = 1, no = 0 }
[[dimensions]]
key = "good"
[[messages]]
role = "user"
parts = [{ kind = "template" }, { kind = "image" }]
"""
