"""Which samples meet under a rubric for pairs, how often, in which order; what is no pair, and what is told where none is."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.loading import SHIPPED, load_rubric
from schemas.benchmark.rounds import Pairs
from schemas.errors import NothingToJudgeError
from schemas.identities import RunIds
from schemas.lineage import Lineage
from schemas.tables.stored import SAMPLES
from schemas.tables.table import conform
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.plan.dataset import ROWS_AT_ONCE, new_stagings, plan_shard, plan_shards
from tasks.plan.pairs import meetings, named, pair_rows, paired
from tests.support.contexts import stage_context

A, B, C, D = ("m", "step-9"), ("m", "step-10"), ("m", "step-11"), ("n", "only")


@pytest.mark.parametrize(
    ("meet", "baseline", "expected"),
    [
        pytest.param(["predecessor"], None, [(B, A), (C, B)], id="each with its predecessor, in natural order"),
        pytest.param(["baseline"], "m/step-9", [(B, A), (C, A), (D, A)], id="each with the baseline"),
        pytest.param(["baseline", "predecessor"], "m/step-10", [(A, B), (C, B), (D, B)], id="two reasons are one meeting"),
        pytest.param(["each_other"], None, [(B, A), (C, A), (D, A), (C, B), (D, B), (D, C)], id="every two"),
        pytest.param(["baseline"], None, [], id="no baseline named"),
        pytest.param(["baseline"], "m/step-8", [], id="a baseline that is not there"),
    ],
)
def test_who_meets(meet: Any, baseline: str | None, expected: Sequence[Any]) -> None:
    found = meetings([D, C, A, B, A], Pairs(meet=meet), baseline, Lineage())
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected)), "each two once"
    if meet != ["each_other"]:
        assert found == expected


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def sample(checkpoint: str, prompt: str, picture: str | None, number: int = 0, **more: Any) -> dict[str, Any]:
    """A row of samples; `picture` names its bytes, `source` those of the picture it was made from."""
    shown = {"image": picture, "source": more.pop("source", None)}
    name = f"{checkpoint} {prompt} {number} {picture} {shown['source']}"
    pictures = [{"role": role, "sha256": digest(one), "path": one} for role, one in shown.items() if one]
    return {
        "sample_id": digest(name), "source": "source-0", "source_key": name, "model": "m", "checkpoint": checkpoint,
        "prompt": prompt, "category": "colors", "seed": number, "status": "ok" if picture else "missing_file",
        "image_sha256": digest(picture) if picture else None, "pictures": pictures,
    } | more  # fmt: skip


def lake_of(folder: Path, rows: list[dict[str, Any]], n_parts: int = 2) -> Lake:
    """A lake whose dataset "d" holds these samples, in several parts."""
    lake = Lake(folder)
    staging = stage(lake, SAMPLES)
    for number in range(n_parts):
        frame = SAMPLES.frame([dict.fromkeys(SAMPLES.columns) | row for row in rows[number::n_parts]])
        staging.write_part(number, pl.DataFrame(conform(frame, SAMPLES)))
    staging.commit("d" * 64)
    return lake


def pairs_of(folder: Path, rows: list[dict[str, Any]], rubric: str = "preference", **sections: Any) -> list[tuple[str, str]]:
    """(source key of what is shown first, of what is second) of every pair, in order; also planned, which must not fail."""
    lake, known = lake_of(folder, rows), {row["sample_id"]: row["source_key"] for row in rows}
    said: dict[str, Any] = {"pairs": {"meet": ["each_other"]}} | sections
    context = stage_context(lake, {rubric: load_rubric(SHIPPED / rubric)}, RunIds(dataset_id="d" * 64), **said)
    found = paired(context, context.rubrics[rubric])
    return [(known[one], known[two]) for one, two in found.select("sample_id", "second_sample_id").iter_rows()]


def test_two_checkpoints_meet_on_each_shared_prompt_in_both_orders_once_for_all(tmp_path: Path) -> None:
    rows = [sample(one, prompt, f"{one} {prompt} {n}", n) for prompt in ("cup", "cat") for one in ("1", "2") for n in (0, 1)]
    rows.append(sample("1", "only here", "x"))
    first = {prompt: (f"1 {prompt} 0 1 {prompt} 0 None", f"2 {prompt} 0 2 {prompt} 0 None") for prompt in ("cup", "cat")}
    both = [pair for one in first.values() for pair in (one[::-1], one)]
    found = pairs_of(tmp_path / "one", rows)
    assert sorted(found) == sorted(both), "the first picture of each prompt, whatever order the seeds stand in"
    assert {frozenset(found[n]) for n in (0, 2)} == {frozenset(found[n]) for n in (1, 3)}, "both orders stand side by side"
    assert len(pairs_of(tmp_path / "two", rows, pairs={"meet": ["each_other"], "per_prompt": 2})) == 8
    assert pairs_of(tmp_path / "three", rows[::-1]) != [], "rows in another order"


AGAIN = {"sample_id": digest("again"), "source_key": "again", "status": "duplicate", "duplicate_of_sample_id": digest("first")}


@pytest.mark.parametrize(
    ("rows", "rubric", "n"),
    [
        pytest.param([sample("1", "cup", "same"), sample("2", "cup", "same"), sample("2", "cat", "y")], "preference", None,
                     id="the same bytes are nothing to compare"),
        pytest.param([sample("1", "cup", "a"), sample("2", "cup ", "b")], "preference", None, id="another prompt by a blank"),
        pytest.param([sample("1", "cup", "a"), sample("2", "cup", "b", category="counting")], "preference", None,
                     id="another category"),
        pytest.param([sample("1", "cup", "a"), sample("2", "cup", None)], "preference", 2, id="a lost picture: a pair unjudged"),
        pytest.param([sample("1", "cup", "a"), sample("2", "cup", "b", status="duplicate")], "preference", 0, id="a duplicate"),
        pytest.param([sample("1", "cup", "a"), sample("2", "cup", "b", source_key="other"), sample("2", "cup", "b", **AGAIN)],
                     "preference", 2, id="a duplicate of one in a source the rubric is not for"),
        pytest.param([sample("1", "cup", "a"), sample("2", "cup", "b"), sample("2", "cup", "b", **AGAIN)], "preference", 2,
                     id="a duplicate beside its first"),
        pytest.param([sample("1", "cup", "a"), sample("2", "cup", "b", source_key="other", source="source-1")], "preference", 0,
                     id="a source the rubric is not for"),
    ],
)  # fmt: skip
def test_what_is_a_pair(tmp_path: Path, rows: list[dict[str, Any]], rubric: str, n: int | None) -> None:
    for row in rows:  # `source` above is that of a picture
        row["source"] = "source-1" if row["source_key"] == "other" else "source-0"
    if n is not None:
        assert len(pairs_of(tmp_path, rows, rubric)) == n
        return
    with pytest.raises(NothingToJudgeError, match=r"\[pairs\] meet|meet = \[\"each_other\"\]"):
        pairs_of(tmp_path, rows, rubric)


def test_a_pair_of_a_duplicate_is_asked_and_is_the_duplicate_of_none(tmp_path: Path) -> None:
    rows = [one | {"source": "source-0"} for one in (sample("1", "cup", "a"), sample("2", "cup", "b", **AGAIN))]
    rubrics = {"preference": load_rubric(SHIPPED / "preference")}
    context = stage_context(lake_of(tmp_path, rows), rubrics, RunIds(dataset_id="d" * 64), pairs={"meet": ["each_other"]})
    found = pair_rows(context, paired(context, rubrics["preference"]))
    assert found.select("status", "duplicate_of_sample_id").rows() == [("ok", None)] * 2


def test_one_checkpoint_alone_has_nobody_to_meet_and_is_no_fault(tmp_path: Path) -> None:
    assert pairs_of(tmp_path, [sample("1", "hat", "a") | {"source": "source-0"}]) == []


def test_edits_meet_where_they_were_made_from_the_same_picture(tmp_path: Path) -> None:
    rows = [sample("1", "add a hat", "a", source="lake"), sample("2", "add a hat", "b", source="lake"),
            sample("3", "add a hat", "c", source="house")]  # fmt: skip
    for row in rows:
        row["source"] = "source-0"
    found = pairs_of(tmp_path, rows, "edit_preference")
    assert len(found) == 2
    assert all("house" not in key for pair in found for key in pair)


def test_a_planned_pair_names_both_and_its_requests_differ_in_the_order_of_the_pictures_alone(tmp_path: Path) -> None:
    rows = [sample("1", "cup", "a"), sample("2", "cup", "b"), sample("2", "cat", "c"), sample("1", "cat", None)]
    lake = lake_of(tmp_path, rows)
    context = stage_context(
        lake, {"preference": load_rubric(SHIPPED / "preference")}, RunIds(dataset_id="d" * 64),
        pairs={"meet": ["predecessor"]}, limits={"shard_size": 3},
    )  # fmt: skip
    judgements, requests = new_stagings(lake)
    (shard,) = plan_shards(context, judgements, requests)
    parts = plan_shard(context, shard)
    judged = pl.concat([pl.read_parquet(path) for path in judgements.part_paths()])
    asked = pl.concat([pl.read_parquet(path) for path in requests.part_paths()])
    assert [part.n_requests for part in parts] in ([2, 0], [1, 1]), "four rows in parts of three"
    assert judged["status"].value_counts().sort("status").rows() == [("planned", 2), ("unusable_sample", 2)]
    planned = judged.filter(status="planned").sort("checkpoint")
    names = ["sample_id", "checkpoint", "second_sample_id", "second_checkpoint"]
    one, two = (rows[n]["sample_id"] for n in (0, 1))
    assert planned.select(names).rows() == [(one, "1", two, "2"), (two, "2", one, "1")]
    assert planned["prompt_id"].n_unique() == 1
    first, second = (asked.filter(request_key=key)["messages_json"][0] for key in planned["request_key"])
    assert first != second
    assert first.replace(digest("a"), "\0").replace(digest("b"), digest("a")).replace("\0", digest("b")) == second


def test_adaptive_pairs_come_in_rounds_of_whole_prompts_in_an_order_of_their_own(tmp_path: Path) -> None:
    prompts = [f"prompt {n}" for n in range(17)]
    rows = [sample(one, prompt, f"{one} {prompt}") for one in ("1", "2", "3") for prompt in prompts]
    lake = lake_of(tmp_path, rows)
    said = {"meet": ["predecessor"], "adaptive": True, "prompts_a_round": 5}
    context = stage_context(lake, {"preference": load_rubric(SHIPPED / "preference")}, RunIds(dataset_id="d" * 64), pairs=said)
    found = paired(context, context.rubrics["preference"])
    prompt_of = {row["sample_id"]: row["prompt"] for row in rows}
    found = found.with_columns(prompt=pl.col("sample_id").replace_strict(prompt_of))
    counts = found.group_by("comparison", "round").agg(pl.col("prompt").n_unique(), pl.len()).sort("comparison", "round")
    assert counts.rows() == [
        (named(("m", one), ("m", two)), number, n, 2 * n)
        for one, two in (("1", "2"), ("2", "3"))
        for number, n in enumerate((5, 5, 5, 2))
    ]
    assert found.group_by("part").agg(pl.struct("comparison", "round").n_unique())["comparison"].unique().to_list() == [1]
    orders = [list(dict.fromkeys(mine["prompt"])) for _, mine in found.group_by("comparison", maintain_order=True)]
    assert orders[0] == orders[1] != prompts, "the same prompts in the same drawn order, which is not the file's"


@pytest.mark.slow
def test_equal_pictures_of_two_checkpoints_are_one_request_however_many_pairs_there_are(tmp_path: Path) -> None:
    pictures = {"1": "ours", "2": "ours", "3": "theirs"}
    numbers = [(prompt, n) for prompt in range(1_600) for n in range(8)]
    rows = [sample(one, f"{prompt}", f"{its} {prompt} {n}", n) for prompt, n in numbers for one, its in pictures.items()]
    lake = lake_of(tmp_path, rows)
    said = {"meet": ["each_other"], "adaptive": True, "prompts_a_round": 500, "per_prompt": 8}
    context = stage_context(lake, {"preference": load_rubric(SHIPPED / "preference")}, RunIds(dataset_id="d" * 64), pairs=said)
    judgements, requests = new_stagings(lake)
    parts = [part for shard in plan_shards(context, judgements, requests) for part in plan_shard(context, shard)]
    judged = pl.concat([pl.read_parquet(path, columns=["request_key"]) for path in judgements.part_paths()])
    asked = pl.concat([pl.read_parquet(path, columns=["request_key"]) for path in requests.part_paths()])
    assert judged.height > ROWS_AT_ONCE, "else all are planned together"
    assert asked["request_key"].is_unique().all()
    assert asked.height == sum(part.n_requests for part in parts) == judged.height // 2
