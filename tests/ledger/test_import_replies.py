"""Replies recorded elsewhere: which request they answer, what their text is, and what is left out and said."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubrics.loading import load_rubric
from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark
from schemas.errors import InputError, SourceError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from schemas.tables.stored import JUDGEMENTS, REPLIES, SAMPLES
from schemas.tables.table import conform
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.import_replies.files import CannotRebuildError, rebuild
from tasks.ledger.ledger import Ledger
from tasks.ledger.snapshot import part_digest
from tests.support.contexts import plan_part
from tests.support.importing import Import
from tests.support.ledgers import snapshot_part

ROW = {"reply": "r"}


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ({"item_id": "b"}, 2),
        ({"item_id": "a", "model": "sdxl"}, 1),
        ({"item_id": "c", "seed": 7}, 3),
        ({"image": "1.png"}, 1),
        ({"image": "left/same.png"}, 2),
        ({"image": "./right/same.png"}, 3),
        ({"image": "/data/set/right/same.png"}, 3),
        ({"image": "right\\same.png"}, 3),
        ({"image": "same.png", "item_id": None, "prompt": "p2"}, 2),
        ({"prompt": "p2"}, 2),
        ({"prompt": "p0", "model": "dalle", "checkpoint": "c1"}, 0),
        ({"item_id": "b", "rubric": "plain", "judge_model": "scripted"}, 2),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_a_row_finds_its_request_by_what_it_says(recorded: Import, row: dict[str, Any], place: int) -> None:
    result = recorded([ROW | row])
    assert (result.n_rows, result.n_stored, result.n_unmatched) == (1, 1, 0)
    assert recorded.texts() == {place: "r"}


def test_ids_of_samples_and_requests_are_enough(recorded: Import) -> None:
    sample, key = recorded.judgements["sample_id"][1], recorded.judgements["request_key"][2]
    recorded([{"sample_id": sample, "reply": "one"}, {"request_key": key, "reply": "two"}])
    assert recorded.texts() == {1: "one", 2: "two"}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"item_id": "zzz"}, "item_id 'zzz' is not in the plan, whose samples have values such as 'a'"),
        ({"image": "other/same.png"}, "image 'other/same.png' is not in the plan, whose samples have values such as '0.png'"),
        ({"image": "same.png"}, "matches 2 samples; map one more of"),
        ({"item_id": "a"}, "matches 2 samples; map one more of"),
        ({"item_id": "a", "model": "flux"}, "no planned sample with this item_id has model 'flux'"),
        ({"item_id": "b", "judge_model": "other"}, "has judge_model 'other'"),
        ({}, "does not name a sample"),
        ({"item_id": "b", "reply": None}, "holds no reply text"),
    ],
)
def test_what_cannot_be_placed_is_counted_and_said(recorded: Import, row: dict[str, Any], why: str) -> None:
    result = recorded([ROW | row, ROW | {"item_id": "c"}])
    assert (result.n_rows, result.n_stored, result.n_unmatched) == (2, 1, 1)
    assert why in result.unmatched_examples[0]
    assert result.unmatched_examples[0].startswith("replies.jsonl, row 1: ")


def test_where_nothing_can_be_placed_the_import_stops(recorded: Import) -> None:
    with pytest.raises(SourceError, match="none of its 2 rows answers a planned request"):
        recorded([ROW | {"item_id": "x"}, ROW | {"item_id": "y"}])
    with pytest.raises(SourceError, match="contains no recorded replies"):
        recorded([ROW | {"item_id": "b"}], where={"aspect": "SC"})


def test_importing_again_stores_nothing_and_the_first_reply_stays(recorded: Import) -> None:
    recorded([{"item_id": "b", "reply": "first"}])
    again = recorded([{"item_id": "b", "reply": "first"}, {"item_id": "c", "reply": "new"}])
    assert (again.n_stored, again.n_already_there, again.n_contradicting) == (1, 1, 0)
    assert recorded.texts() == {2: "first", 3: "new"}


def test_a_row_that_contradicts_the_ledger_is_told_and_what_is_there_stays(recorded: Import) -> None:
    recorded([{"item_id": "b", "reply": "first"}])
    again = recorded([{"item_id": "b", "reply": "second"}, {"item_id": "c", "reply": "new"}])
    assert (again.n_rows, again.n_stored, again.n_already_there, again.n_contradicting) == (2, 1, 0, 1)
    assert again.contradicting_examples[0].startswith(
        "replies.jsonl, row 1: the ledger already has a different reply to request "
    )
    assert recorded.texts() == {2: "first", 3: "new"}


def test_of_rows_that_contradict_one_another_none_is_taken_and_all_are_told(recorded: Import) -> None:
    rows = [("b", "one"), ("c", "same"), ("b", "two"), ("c", "same"), ("b", "one")]
    result = recorded([{"item_id": item, "reply": text} for item, text in rows])
    assert (result.n_rows, result.n_stored, result.n_already_there, result.n_contradicting) == (5, 1, 1, 3)
    (told,) = result.contradicting_examples
    assert told.startswith("replies.jsonl, row 1; replies.jsonl, row 3; replies.jsonl, row 5: different replies to request ")
    assert "set repeats of the judge to as many" in told
    assert recorded.texts() == {3: "same"}


def test_a_scores_file_whose_rows_say_why_they_stopped_differently_contradicts_too(recorded: Import) -> None:
    """The same text, once whole and once cut short by its length, is not the same reply."""
    rows = [{"item_id": "b", "reply": "4", "finish_reason": reason} for reason in ("stop", "length")]
    assert recorded([*rows, ROW | {"item_id": "c"}]).n_contradicting == 2


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ('[{"item_id": "b", "reply": "x"},\n {"item_id": "c", "reply": "y"}]', {2: "x", 3: "y"}),
        ('\ufeff  [\n{"item_id": "b", "reply": "x"}\n]\n', {2: "x"}),
        ('{"item_id": "b", "reply": "x"}\n{"item_id": "c", "reply": "y"}\n', {2: "x", 3: "y"}),
    ],
    ids=["a list", "a list behind a mark and spaces", "lines under the name of .json"],
)
def test_json_files_are_lists_or_lines(recorded: Import, text: str, texts: dict[int, str]) -> None:
    recorded(text, name="r.json")
    assert recorded.texts() == texts


def test_columns_paths_and_where(recorded: Import) -> None:
    rows = [
        {"meta": {"uid": "b"}, "out": ["x", "one"], "aspect": "SC"},
        {"meta": {"uid": "c"}, "out": ["x", "two"], "aspect": "PQ"},
    ]
    result = recorded(rows, columns={"item_id": "meta.uid", "reply": "out[1]"}, where={"aspect": "SC"})
    assert (result.n_rows, recorded.texts()) == (1, {2: "one"})


def test_tokens_cost_and_refusals_are_kept(recorded: Import) -> None:
    rows = [
        {"item_id": "b", "reply": None, "refusal": "no", "n_input_tokens": 5, "cost_usd": "0.25", "n_output_tokens": -1},
        {"item_id": "c", "reply": "", "finish_reason": "content_filter", "answered_model": "gpt"},
    ]
    recorded(rows)
    found = recorded.ledger.replies(recorded.judgements["request_key"]).sort("refusal_text", nulls_last=True)
    conform(found, REPLIES)
    columns = ["status", "reply_text", "refusal_text", "n_input_tokens", "n_output_tokens", "cost_usd", "origin", "received_at"]
    assert found.select(columns).rows() == [
        ("answered", None, "no", 5, None, 0.25, "recorded", None),
        ("filtered", "", None, None, None, None, "recorded", None),
    ]


HOSTILE = ['a "quote"', "back\\slash", "{score}", "{reasoning|text}", "line\nbreak", "\u2028", "}{", "\x00", "ünï"]


@pytest.mark.parametrize("reasoning", HOSTILE)
def test_a_template_rebuilds_json_whatever_the_values_hold(recorded: Import, reasoning: str) -> None:
    template = '{"score": {score}, "reasoning": {reasoning}}'
    recorded([{"item_id": "b", "score": [8], "reasoning": reasoning}], template=template)
    assert json.loads(recorded.texts()[2] or "") == {"score": [8], "reasoning": reasoning}
    assert recorded.ledger.replies(recorded.judgements["request_key"])["origin"].to_list() == ["rebuilt"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON_VALUES, JSON_VALUES)
def test_a_json_template_is_undone_by_reading_it(first: object, second: object) -> None:
    text = rebuild('{"a": {x}, "b": {y[0]}, "c": {x}}', {"x": first, "y": [second]}, {})
    assert json.loads(text) == {"a": first, "b": second, "c": first}


@given(st.text(max_size=30), st.text(max_size=30))
def test_bare_text_is_put_in_once_as_it_is(first: str, second: str) -> None:
    assert rebuild("Reasoning: {a|text}\nScore: {b|text}", {"a": first, "z": second}, {"b": "z"}) == (
        f"Reasoning: {first}\nScore: {second}"
    )


@pytest.mark.parametrize(
    ("template", "row"),
    [("{a}", {}), ("{a|text}", {"a": None}), ("{a|text}", {"a": [1]}), ("{a}", {"a": float("nan")}), ("{a[3]}", {"a": [1]})],
)
def test_a_row_without_the_templates_values_is_left_out(template: str, row: dict[str, Any]) -> None:
    with pytest.raises(CannotRebuildError):
        rebuild(template, row, {})


def test_a_template_without_a_column_is_refused(recorded: Import) -> None:
    with pytest.raises(InputError, match="names no column"):
        recorded([ROW | {"item_id": "b"}], template='{"score": 1}')


def test_an_unknown_name_is_refused(recorded: Import) -> None:
    with pytest.raises(InputError, match=r"answer is not a name Salon knows; allowed: .*reply"):
        recorded([ROW | {"item_id": "b"}], columns={"answer": "reply"})


def test_two_recorded_judges_must_be_told_apart(recorded: Import) -> None:
    recorded.benchmark["judges"] = [{"model": "scripted", "recorded": True}, {"model": "other", "recorded": True}]
    with pytest.raises(SourceError, match=r"does not say which of several recorded judges replied: it lacks judge_model"):
        recorded([ROW | {"item_id": "b"}])
    assert recorded([ROW | {"item_id": "b", "who": "scripted"}], columns={"judge_model": "who"}).n_stored == 1
    assert recorded([ROW | {"item_id": "c", "judge_model": "scripted"}, ROW | {"item_id": "a"}]).n_stored == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.jsonl", "no table\nat all\n", "none of its 2 rows .*r.jsonl, row 1: is not a JSON object on one line"),
        ("r.jsonl", "[1]\n", "r.jsonl, row 1: is a JSON list, not an object"),
        ("r.json", '[{"item_id": "b"},', "not a JSON list"),
        ("r.json", '[{"a": 1, "a": 2}]', "r.json: ambiguous: the key 'a' occurs twice in one object; keep one of them"),
        ("r.json", "[" * 200 + "]" * 200, "row 1: is a JSON list, not an object"),
        ("r.csv", 'item_id,reply\nb,"x\n', "r.csv, row 1 is not valid CSV .* a quote may be left open"),
        ("r.csv", "item_id;reply,text\nb;x\n", "row 0 has a comma and a semicolon outside quotes"),
        ("r.txt", "x", "recorded replies must be in a file of type"),
        ("r.parquet", "x", "cannot be read as Parquet"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(recorded: Import, name: str, text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        recorded(text, name)
    with pytest.raises(SourceError, match="no such file"):
        recorded.of(recorded.path / "absent.jsonl")


def test_csv_and_parquet_are_read_too(recorded: Import) -> None:
    recorded('\ufeffitem_id,reply,note\r\nb,"x, ""y""",\r\n', "r.csv")
    frame = pl.DataFrame({"item_id": ["c"], "reply": ["z"], "score": [[1, 2]]})
    frame.write_parquet(recorded.path / "r.parquet")
    recorded.of(recorded.path / "r.parquet")
    assert recorded.texts() == {2: 'x, "y"', 3: "z"}


def test_a_value_that_python_cannot_hold_is_missing_in_its_row_alone(recorded: Import) -> None:
    took = pa.array([2**62, 1, 2**62], pa.duration("s"))
    table = pa.table({"item_id": ["b", "b", "c"], "reply": ["x", "y", "z"], "took": took})
    pq.write_table(table.slice(1), recorded.path / "r.parquet")
    recorded.of(recorded.path / "r.parquet")
    assert recorded.texts() == {2: "y", 3: "z"}, "nobody asks for the column"
    times = table.drop_columns("reply").rename_columns({"took": "reply"})
    pq.write_table(times, recorded.path / "r.parquet")
    with pytest.raises(
        SourceError,
        match=r"none of its 3 rows .*row 1: holds no reply text; .*row 2: holds a value in reply that JSON cannot represent",
    ):
        recorded.of(recorded.path / "r.parquet")


def test_a_row_of_a_lake_of_which_a_value_cannot_be_held_is_left_out(recorded: Import) -> None:
    columns = {"request_key": ["a" * 64], "ask_index": [0], "status": ["ok"], "reply_text": ["x"]}
    table = pa.table({**columns, "n_attempts": pa.array([2**62], pa.duration("s"))})
    pq.write_table(table, recorded.path / "r.parquet")
    with pytest.raises(SourceError, match="row 1: holds a value that cannot be read"):
        recorded.of(recorded.path / "r.parquet")


def test_repeats_take_rows_in_their_order(recorded: Import, rubric: Rubric, make_samples: Callable[..., pl.DataFrame]) -> None:
    recorded.benchmark["judges"][0]["repeats"] = 2
    judge = Benchmark.model_validate(recorded.benchmark).judges[0]
    samples = make_samples(1, item_id=["a"])
    judgements, requests = plan_part(samples, replace(rubric, messages=()), judge)
    recorded.lake = Lake(recorded.path / "repeats")
    for table, frame, key in ((SAMPLES, samples, "1" * 64), (JUDGEMENTS, judgements, "2" * 64)):
        staging = stage(recorded.lake, table)
        staging.write_part(0, frame)
        staging.commit(key)
    recorded.judgements, recorded.requests = judgements, requests
    result = recorded([{"item_id": "a", "reply": text} for text in ("one", "two", "three")])
    assert (result.n_stored, result.n_contradicting) == (1, 2)  # a third answer to two questions: which is the second?
    result = recorded([{"item_id": "a", "reply": text} for text in ("one", "two")])
    assert (result.n_stored, result.n_already_there) == (1, 1)
    assert recorded.texts() == {0: "one", 1: "two"}


def test_a_lost_ledger_is_refilled_from_the_lake(recorded: Import, tmp_path: Path) -> None:
    key = recorded.judgements["request_key"][0]
    asked = JudgeReply(
        key, 0, ReplyStatus.ANSWERED, "scripted", ReplyOrigin.ASKED, text="words \x00", finish_reason="stop",
        answered_model="scripted-1", n_input_tokens=9, n_output_tokens=3, cost_usd=0.5, latency_s=1.5, n_attempts=2,
    )  # fmt: skip
    recorded.ledger.store([asked, replace(asked, ask_index=1, text="again", sha256=None)])
    before = snapshot_part(recorded.ledger, recorded.requests)
    staging = stage(recorded.lake, REPLIES)
    staging.write_part(0, before)
    staging.commit("3" * 64)
    recorded.ledger = Ledger(f"sqlite:///{tmp_path}/new.db")
    result = recorded.of(recorded.lake.partition(REPLIES, "3" * 64))
    assert (result.n_rows, result.n_stored) == (2, 2)  # three requests were never asked: nothing to keep of them
    after = snapshot_part(recorded.ledger, recorded.requests)
    assert part_digest(after) == part_digest(before)
    assert recorded.of(recorded.lake.partition(REPLIES, "3" * 64)).n_already_there == 2
    recorded.ledger.close()


PROGRAM = """\
id = "{name}"
version = "1"
title = "t"
source = "s"
program = {{ name = "{name}", version = "1" }}
unit = ["prompt"]
scale = {{ min = 0, max = 1 }}
[[dimensions]]
key = "{key}"
"""


@pytest.fixture
def measured(recorded: Import, tmp_path: Path) -> Import:
    """The same samples measured by two programs, whose rubrics take `distance` and `reward`; the judge `scripted` is left out."""
    samples = recorded.lake.scan(SAMPLES, recorded.dataset_id).collect()
    staging, parts = stage(recorded.lake, JUDGEMENTS), []
    for index, (name, key) in enumerate((("ocr", "distance"), ("model", "reward"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rubric.toml").write_text(PROGRAM.format(name=name, key=key))
        recorded.rubrics[name] = load_rubric(tmp_path / name)
        judge = Benchmark.model_validate(recorded.benchmark | {"judges": [{"model": f"{name}-1", "recorded": True}]}).judges[0]
        parts.append(plan_part(samples, recorded.rubrics[name], judge))
        staging.write_part(index, parts[-1][0])
    recorded.plan_id = "3" * 64
    staging.commit(recorded.plan_id)
    recorded.judgements, recorded.requests = (pl.concat(both) for both in zip(*parts, strict=True))
    recorded.benchmark["rubrics"] = [{"id": "ocr"}, {"id": "model"}]
    recorded.benchmark["judges"] = [{"model": "ocr-1", "recorded": True}, {"model": "model-1", "recorded": True}]
    return recorded


B, C = {"item_id": "b"}, {"item_id": "c"}


@pytest.mark.parametrize(
    ("row", "settings", "texts"),
    [
        (B | {"distance": 0.5}, {}, {2: '{"distance":0.5}'}),
        (B | {"distance": 0.5, "reward": None}, {}, {2: '{"distance":0.5}', 6: '{"reward":null}'}),
        (B | {"scores": {"reward": 1}}, {}, {6: '{"reward":1}'}),
        (B | {"rubric": "ocr", "distance": "0.5", "reward": 1}, {}, {2: '{"distance":0.5}'}),
        (B | {"judge_model": "ocr-1", "distance": 0.5}, {}, {2: '{"distance":0.5}'}),
        (B | {"d": 0.5}, {"columns": {"distance": "d"}}, {2: '{"distance":0.5}'}),
        (B | {"both": 0.5}, {"columns": {"distance": "both", "reward": "both"}}, "holds both, which may be of ocr or of model"),
        (B | {"judge_model": "ocr-2", "distance": 0.5}, {}, "is of 'ocr-2', but rubric ocr takes the numbers of ocr-1"),
        (B | {"rubric": "ocr", "reward": 1}, {}, "holds none of the numbers of ocr (distance)"),
        (B | {"other": 1}, {}, "holds none of the numbers of ocr (distance) or model (reward); map its columns"),
    ],
    ids=[
        "a column", "of two programs", "in scores", "the rubric is named", "the judge is named", "mapped", "one column for two",
        "another version", "none of the one named", "none at all",
    ],
)  # fmt: skip
def test_a_row_of_numbers_is_a_reply_of_each_program_it_has_some_of(
    measured: Import, row: dict[str, Any], settings: dict[str, Any], texts: dict[int, str] | str
) -> None:
    good = C | ({"distance": 1} if "columns" not in settings else {"rubric": "ocr", settings["columns"]["distance"]: 1})
    result = measured([row, good], **settings)
    expected = {3: '{"distance":1}'} | (texts if isinstance(texts, dict) else {})
    assert measured.texts() == expected
    assert result.n_stored == len(expected)
    assert result.n_unmatched == isinstance(texts, str)
    assert isinstance(texts, dict) or texts in result.unmatched_examples[0]


@pytest.mark.parametrize(
    ("row", "is_to_map"), [(B | {"other": 1}, False), ({"item_id": "zzz", "distance": 1}, True)], ids=["no number", "no sample"]
)
def test_the_column_of_the_sample_is_to_be_mapped_only_where_a_row_names_none(
    measured: Import, row: dict[str, Any], is_to_map: bool
) -> None:
    with pytest.raises(SourceError, match="none of its 1 rows") as raised:
        measured([row])
    assert ("map the column that names the sample" in str(raised.value)) == is_to_map


@pytest.mark.parametrize("name", ["n.csv", "n.parquet", "n.jsonl"])
def test_numbers_of_every_kind_of_file_are_the_same_and_a_bad_one_is_kept_as_it_is(measured: Import, name: str) -> None:
    rows: dict[str, list[Any]] = {"item_id": ["b", "c"], "distance": [0.5, float("nan")], "reward": [None, 1.0]}
    frame = pl.DataFrame(rows)
    if name == "n.csv":
        frame.write_csv(measured.path / name)
    elif name == "n.parquet":
        frame.write_parquet(measured.path / name)
    else:
        (measured.path / name).write_text("".join(json.dumps(row) + "\n" for row in frame.to_dicts()))  # with a bare NaN
    assert measured.of(measured.path / name).n_stored == 4
    assert measured.texts() == {2: '{"distance":0.5}', 3: '{"distance":"NaN"}', 6: '{"reward":null}', 7: '{"reward":1.0}'}


def test_two_rows_with_different_numbers_are_none(measured: Import) -> None:
    result = measured([B | {"distance": 0.5}, B | {"distance": 0.25}, C | {"distance": 0.5}, C | {"distance": 0.5}])
    assert (result.n_contradicting, measured.texts()) == (2, {3: '{"distance":0.5}'})
