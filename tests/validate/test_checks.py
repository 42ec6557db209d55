"""The checks as a whole: what a right lake gives, what is reported of a wrong one, what never leaves the machine."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rubrics.model import Items
from schemas.errors import CorruptLakeError, StoreError
from schemas.statuses.rows import CheckSeverity
from schemas.tables.stored import CHECKS, QUARANTINE, SAMPLES, SCORES
from schemas.tables.table import Table, conform
from tasks.plan.anchors import anchors_of
from tasks.validate import great_expectations
from tasks.validate.buckets import PARTITIONS, dealt
from tasks.validate.expectations import Check, all_checks
from tasks.validate.frames import Batch, batches
from tasks.validate.gate_and_quarantine import _whole_sources, decide
from tasks.validate.great_expectations import Outcome, evaluate, plain
from tasks.validate.parse import parse_part
from tasks.validate.score_frame import _beyond_aspects, _status_columns
from tests.support.contexts import stage_context
from tests.support.markers import fit_marker
from tests.validate.conftest import IDS, SOURCES

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>"
OTHER = {"name": "other", "reader": "geneval", "path": "o"}
BETWEEN = "ExpectColumnValuesToBeBetween"


@pytest.fixture(scope="session")
def right(lakes, tmp_path_factory):
    """A right lake checked, with the Data Docs' folder and every network call made meanwhile."""
    calls: list[str] = []
    watching = [True]

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching[0] and event in {"socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request"}:
            calls.append(f"{event} {arguments}")

    sys.addaudithook(watch)  # a hook cannot be taken off again, only told to look away
    folder = tmp_path_factory.mktemp("right")
    lake = lakes.write(folder / "lake", lakes.together(lakes.world(number) for number in range(3)))
    result = lakes.check(lake, folder / "docs")
    watching[0] = False
    return lake, result, folder / "docs", calls


def test_a_right_lake_passes_every_check_there_is(lakes, right):
    """One result for each expectation: none is skipped, and each had rows to look at."""
    _, result, _, _ = right
    assert result.checks["check"].to_list() == sorted(check.name for check in all_checks(lakes.rubrics))
    assert result.checks["status"].unique().to_list() == ["passed"]
    assert result.checks.filter(n_checked=0)["check"].to_list() == []
    assert (result.is_blocked, result.sentences, result.quarantine.height) == (False, [], 0)


def test_docs_checks_names_every_check_and_its_severity(lakes):
    page = (Path(great_expectations.__file__).parents[2] / "docs" / "checks.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for check in all_checks(lakes.rubrics):
        rest = check.name.split(".", 1)[1]
        is_declared = any(f"| `{ending}` |" in page for ending in (rest, rest.split(".")[1]))
        assert is_declared or any(f"`{check.name}`" in row and f"| {check.severity} |" in row for row in rows), check.name


def test_no_telemetry_and_no_network(right):
    *_, calls = right
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
    assert calls == []


def test_data_docs_have_a_page_a_table_and_no_path_of_this_machine(right, tmp_path_factory):
    *_, docs, _ = right
    pages = list(docs.rglob("*.html"))
    assert {page.name for page in (docs / "validations").rglob("*.html")} == {
        f"lake-{table}.html" for table in ("samples", "judgements", "requests", "replies", "scores")
    }
    assert (docs / "index.html").is_file()
    assert not [page for page in pages if str(tmp_path_factory.getbasetemp()) in page.read_text()]


def test_data_docs_that_cannot_be_written_are_an_error_and_no_traceback(lakes, tmp_path, capfd):
    """The library logs such a page and goes on without it; a file stands for a disk that is full at that moment."""
    lake = lakes.write(tmp_path / "lake", lakes.together([lakes.world(0)]))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "validations").write_text("in the way")
    with pytest.raises(OSError, match=r"Errno \d+.*validations"):
        lakes.check(lake, tmp_path / "docs")
    assert "Traceback" not in capfd.readouterr().err


def test_what_is_wrong_is_reported_by_key_in_tables_that_conform(lakes, tmp_path):
    rows = lakes.together([lakes.world(1)])
    lake = lakes.write(tmp_path / "lake", rows)
    rows["scores"][0]["score"] = 6.0
    rows["replies"][5]["origin"] = HOSTILE
    rows["scores"].append(rows["scores"][2] | {"dimension": HOSTILE, "note": HOSTILE})
    for table in ("scores", "replies"):
        lakes.plant(lake, table, rows[table])
    result = lakes.check(lake, tmp_path / "docs")
    failed = result.checks.filter(status="failed")
    names = ["replies.origin.is_a_known_word", "scores.dimension.is_of_the_variant", "scores.score.is_at_most_the_scale"]
    assert failed.select("check", "n_failing").rows() == [(name, 1) for name in names]
    keys = [orjson.loads(text) for text in failed["failing_keys_json"]]
    assert keys[1] == [{"dimension": HOSTILE, "item": "", "request_key": rows["scores"][2]["request_key"]}]
    assert result.quarantine.select("table_name", "check").rows() == [(name.split(".")[0], name) for name in names]
    assert conform(result.checks, CHECKS).num_rows == result.checks.height
    assert conform(result.quarantine, QUARANTINE).num_rows == 3
    assert result.is_blocked
    assert f"complete/scores/{'c' * 64}.json" in result.sentences[-1]
    pages = [page.read_text() for page in (tmp_path / "docs").rglob("*.html")]
    assert not [page for page in pages if "<script>alert" in page]
    assert [page for page in pages if plain(HOSTILE) in page]  # the word that failed is shown, disarmed


def test_what_parse_part_writes_passes_the_checks(lakes, tmp_path):
    rows = lakes.together([lakes.world(0)])
    texts = {"a2": '{"words": 3, "picture": 5}', "a3": '{"shape": 2, "overall_score": 2}'}
    for row in rows["replies"]:
        row["reply_text"] = texts.get(str(row["request_key"])[4:6], '{"words": 4, "picture": 3}')
    rows["replies"][0]["reply_text"] = "no"
    lake = lakes.write(tmp_path, rows)
    asked = pl.DataFrame(rows["requests"], infer_schema_length=None)
    got = pl.DataFrame(
        [{"finish_reason": None, "refusal_text": None, "logprobs_json": None} | row for row in rows["replies"]],
        infer_schema_length=None,
    )
    text_columns = pl.col("finish_reason", "refusal_text", "logprobs_json").cast(pl.String)
    parsed = parse_part(asked, got.with_columns(text_columns), lakes.rubrics)
    lakes.plant(lake, "scores", parsed.to_dicts())
    result = lakes.check(lake)
    key = rows["requests"][1]["request_key"]
    said = (
        f'failed for 1 of 11 rows of scores ({{"dimension":"words","item":"","request_key":"{key}"}}): No reply gave a score that'
    )
    assert result.sentences == [f"warning: scores.status.keeps_the_rules {said} a declared rule forbids."]


@pytest.mark.parametrize("how", ["gone", "of another type"])
def test_a_stored_column_that_is_not_as_declared_stops_with_what_to_do(lakes, tmp_path, how):
    lake = lakes.write(tmp_path, lakes.together([lakes.world(0)]))
    path = lake.parts(SCORES, "c" * 64)[1]
    stored = pq.read_table(path)
    place = stored.column_names.index("score")
    column = pa.array(["3"] * stored.num_rows)
    changed = stored.drop_columns("score") if how == "gone" else stored.set_column(place, "score", column)
    pq.write_table(changed, path)
    fit_marker(lake, SCORES, "c" * 64)
    with pytest.raises(CorruptLakeError, match=r"column score is (not there|string), not double; delete .* and run again"):
        lakes.check(lake)


def test_a_partition_that_is_not_there_is_a_store_error(lakes, tmp_path):
    lake = lakes.write(tmp_path, lakes.together([lakes.world(0)]))
    lake.marker(SCORES, "c" * 64).unlink()
    with pytest.raises(StoreError, match="run the benchmark again"):
        lakes.check(lake)


T = Table("t", (), key=("c",))


def one_check(expectation: str, **arguments: object) -> Check:
    return Check("t.key.is_unique" if "Unique" in expectation else "t.c.x", expectation, arguments, "It holds.")


def rows(*values: object) -> Batch:
    return Batch(T, pl.DataFrame({"c": values}, strict=False).with_row_index("row"))


def test_every_failing_row_is_counted_and_the_first_thousand_are_named():
    outcome = evaluate([rows(*[-1] * 1500)], [one_check(BETWEEN, column="c", min_value=0)], None)[0]
    assert (outcome.n_failing, len(outcome.failing)) == (1500, great_expectations.MAX_FAILING_ROWS)
    assert outcome.failing[:2] == ((0, '{"c":-1}'), (1, '{"c":-1}'))


@pytest.mark.parametrize(
    ("sections", "is_checked"),
    [
        ({}, True), ({"judges": [{"model": "a", "share": 0.5}]}, False),
        ({"judges": [{"model": "a", "share": 0.5}, {"model": "b"}]}, True),
        ({"sources": [OTHER]}, False),
    ],
    ids=["every sample", "a share", "a share beside all", "of a source no rubric is for"],
)  # fmt: skip
def test_a_sample_that_nobody_is_to_judge_lacks_no_judgement(lakes, tmp_path, sections, is_checked):
    rows = lakes.world(0)
    lost = rows["samples"][0]["sample_id"]
    rows["judgements"] = [row for row in rows["judgements"] if row["sample_id"] != lost]
    context = stage_context(lakes.write(tmp_path, rows), lakes.rubrics, IDS, **{"sources": SOURCES, **sections})
    with dealt(
        context.lake, {name: getattr(context.ids, name) for name in PARTITIONS.values()}, context.rubrics, 1_000
    ) as stored:
        (samples,) = (
            batch.frame for batch in batches(stored, context.rubrics, _whole_sources(context)) if batch.table is SAMPLES
        )
    of_lost = samples.filter(sample_id=lost)["has_judgement"].to_list()
    assert of_lost == ([False] if is_checked else [None])


def test_an_anchor_without_a_judgement_is_told_of(lakes, tmp_path):
    rows = lakes.world(0)
    lost = rows["samples"][0]
    rows["samples"].append(lost | {"sample_id": "0000an".ljust(64, "0"), "source": anchors_of(lost["source"])})
    result = lakes.check(lakes.write(tmp_path, rows))
    assert "samples.sample_id.has_a_judgement" in result.quarantine.filter(table_name="samples")["check"].to_list()


def test_a_verdict_of_a_pair_is_not_held_against_its_aspects(lakes):
    """Of two pictures one may win each aspect by little, and the other as a whole."""
    of_pair = replace(next(iter(lakes.rubrics.values())), id="pair", is_of_pairs=True)
    rows = [
        {"rubric_id": name, "request_key": name, "dimension": dimension, "score": score, "is_fit": True}
        for name in ("pair", "single")
        for dimension, score in (("overall_score", 1.0), ("shape", 0.0), ("words", 0.0))
    ]
    found = pl.DataFrame(rows).with_columns(beyond=_beyond_aspects({"pair": of_pair}))
    assert found.filter(pl.col("beyond") > 0)["rubric_id"].to_list() == ["single"]


@pytest.mark.parametrize(
    ("unlike", "is_held"),
    [({}, True), ({"maximum": 5.0}, False), ({"minimum": 1.0}, False), ({"is_lower_better": True}, False)],
    ids=["one scale", "another top", "another low end", "lower is better"],
)
def test_an_overall_score_is_held_against_aspects_of_its_own_scale_alone(lakes, unlike, is_held):
    """8 of 10 lies above two aspects of 5, and says the same as 4 of 5."""
    some, one = next((rubric, variant) for rubric in lakes.rubrics.values() for variant in rubric.variants.values())
    overall, shape = (replace(one.dimensions[0], key=key, minimum=0.0, maximum=10.0) for key in ("overall_score", "shape"))
    mine = replace(some, variants={None: replace(one, dimensions=(overall, replace(shape, **unlike)), derived=())})
    frame = pl.DataFrame({"rubric_id": "r", "request_key": "k", "dimension": ["overall_score", "shape"], "score": [8.0, 4.0]})
    found = frame.with_columns(is_fit=True).select(_beyond_aspects({"r": mine})).to_series().to_list()
    assert found == [4.0 if is_held else None, None]


def test_large_integers_beside_nulls_stay_exact():
    """As a float 2**53 + 1 would be 2**53, which is allowed here."""
    check = one_check("ExpectColumnValuesToBeInSet", column="c", value_set=(2**53,))
    assert evaluate([rows(2**53 + 1, None)], [check], None)[0].n_failing == 1


def test_a_check_that_breaks_is_a_failed_check_that_says_so():
    broken = evaluate([rows("a")], [one_check(BETWEEN, column="c", min_value=0)], None)[0]
    assert (broken.is_passed, broken.n_failing) == (False, 0)
    assert broken.error


def test_a_check_that_was_never_run_is_a_failed_check_that_says_so():
    never = evaluate([], [one_check(BETWEEN, column="c", min_value=0)], None)[0]
    assert not never.is_passed
    assert "no result" in str(never.error)


def test_what_holds_for_a_table_holds_where_one_batch_bears_it_out():
    """Only the second batch has a value; failing rows keep the numbers they have in the table."""
    late = Batch(T, pl.DataFrame({"row": [7, 9], "c": [None, 4]}))
    some = Check("t.c.some", "ExpectColumnValuesToNotBeNull", {"column": "c", "mostly": 1e-12}, "", is_of_table=True)
    low = one_check(BETWEEN, column="c", max_value=3)
    found, failed = evaluate([rows(None, None), late], [some, low], None)
    assert (found.is_passed, found.n_checked) == (True, 4)
    assert (failed.is_passed, failed.n_failing, failed.failing) == (False, 1, ((9, '{"c":4}'),))


@pytest.mark.parametrize(
    ("n_failing", "n_checked", "is_passed"), [(7, 10, True), (8, 10, False), (8, 399, False), (8, 400, True), (0, 0, True)]
)
def test_a_few_may_fail_and_a_share_of_all_batches(n_failing, n_checked, is_passed):
    check = replace(one_check("ExpectColumnValuesToBeInSet", column="c", value_set=(True,)), share_allowed=0.02, n_allowed=7)
    batches = [rows(*[False] * n_failing, None), rows(*[True] * (n_checked - n_failing), None)]
    (found,) = evaluate(batches, [check], None)
    assert (found.is_passed, found.n_failing, len(found.failing)) == (is_passed, n_failing, 0 if is_passed else n_failing)


@pytest.mark.parametrize("n_worlds", [7, 8])
def test_replies_that_saw_nothing_block_where_they_are_more_than_a_few(lakes, tmp_path, n_worlds):
    """One such reply a world of four that came; its three rows are one reply."""
    every = lakes.together([lakes.world(number) for number in range(n_worlds)])
    for row in every["scores"]:
        if row["reason"] == "refusal":
            row["reason"] = "missing_input"
    result = lakes.check(lakes.write(tmp_path, every))
    assert result.is_blocked == (n_worlds == 8)
    if result.is_blocked:
        assert "saw_its_input failed for 8 of 32 rows" in result.sentences[0]
        assert "a new name" in result.sentences[0]


def test_a_reply_about_many_items_is_one_that_saw_nothing():
    """Replies of ten items each; one says so of all, one of its last: ten rows of one dimension are one reply."""
    seen = [False] * 10 + [True] * 10 + [True] * 9 + [False]
    frame = pl.DataFrame({
        "request_key": ["k"] * 10 + ["l"] * 10 + ["m"] * 10, "item": [str(n) for n in range(10)] * 3, "dimension": "answer",
        "status": ["scored" if one else "unreadable" for one in seen], "score": [1.0 if one else None for one in seen],
        "reason": [None if one else "missing_input" for one in seen], "is_of_list": False,
    })  # fmt: skip
    assert frame.select(**_status_columns())["saw_its_input"].drop_nulls().to_list() == [False, True, False]


@pytest.mark.parametrize("rows_at_once", [5, 12])
def test_faults_are_found_however_few_rows_are_looked_at_together(lakes, tmp_path, rows_at_once):
    """Two equal keys at the table's ends, a score without its request, another model's answer: each by the same rows."""
    rows = lakes.together(lakes.world(number) for number in range(3))
    lake = lakes.write(tmp_path, rows)
    rows["samples"].append(rows["samples"][0])
    rows["requests"].append(rows["requests"][0])
    rows["scores"] += [rows["scores"][0], rows["scores"][2] | {"request_key": "0" * 64}]
    rows["replies"][6]["answered_model"] = "another"
    del rows["replies"][-1]
    for table, changed in rows.items():
        lakes.plant(lake, table, changed)
    few, all_at_once = (lakes.check(lake, rows_at_once=n) for n in (rows_at_once, 1_000_000))
    assert few.checks.equals(all_at_once.checks)
    assert few.quarantine.equals(all_at_once.quarantine)
    assert few.sentences == all_at_once.sentences
    assert set(few.checks.filter(status="failed")["check"]) >= {
        "samples.key.is_unique", "requests.key.is_unique", "scores.key.is_unique", "scores.request_key.is_a_request",
        "requests.request_key.has_a_reply_row", "judgements.judge_model.is_one_model_in_a_cell",
    }  # fmt: skip
    assert not list((tmp_path / "staging").glob("checked-*"))


def _listed(rows):
    """The same rows, each judgement of aspects naming a list: its own request and, beside it, that of its world's first."""
    for row in rows["judgements"]:
        if row["rubric_id"] == "aspects":
            world, own = row["request_key"][:4], row["request_key"]
            keys = sorted({own, f"{world}a3".ljust(64, "0")})
            row["items_json"] = orjson.dumps([{"id": str(n), "request_key": key} for n, key in enumerate(keys)]).decode()
            row["request_key"] = f"{world}11{own[4:6]}".ljust(64, "0")
    return rows


@pytest.mark.parametrize("rows_at_once", [4, 1_000_000])
@pytest.mark.parametrize(
    ("table", "place", "change", "failed"),
    [
        ("replies", 3, {}, {}),
        ("replies", 3, {"answered_model": "j-2"}, {"judgements.judge_model.is_one_model_in_a_cell": 3}),
        ("judgements", 6, {"items_json": f'[{{"request_key":"{"9" * 64}"}}]'},
         {"judgements.request_key.is_a_request": 1, "requests.request_key.is_of_a_judgement": 1}),
        ("judgements", 4, {"rubric_id": None}, {"judgements.rubric_id.is_not_null": 1}),
    ],
    ids=["as it should be", "another model answered one", "one is not there", "of no rubric"],
)  # fmt: skip
def test_a_judgement_is_linked_to_every_request_of_its_list(lakes, tmp_path, table, place, change, failed, rows_at_once):
    rows = _listed(lakes.together(lakes.world(number) for number in range(3)))
    lake = lakes.write(tmp_path, rows)
    rows[table][place].update(change)
    lakes.plant(lake, table, rows[table])
    rubrics = lakes.rubrics | {"aspects": replace(lakes.rubrics["aspects"], items=Items("items", False, {}, {}))}
    result = lakes.check(lake, rubrics=rubrics, rows_at_once=rows_at_once)
    found = result.checks.filter(pl.col("severity") == "blocking", status="failed")
    assert dict(found.select("check", "n_failing").iter_rows()) == failed
    failing = result.quarantine.filter(severity="blocking")["row_key_json"]
    assert {lakes.world_of(orjson.loads(key)) for key in failing} <= {0}


def test_different_texts_stay_different_when_disarmed():
    texts = ["<", "%3C", "&lt;", "$x", "%24x", "a'b", 'a"b']
    assert len({plain(text) for text in texts}) == len(texts)
    assert not set("".join(map(plain, texts))) & set("<>&$'\"")


def outcome(
    name: str, severity: CheckSeverity, n_failing: int = 0, *, is_passed: bool = False, error: str | None = None
) -> Outcome:
    check = Check(f"scores.{name}", BETWEEN, {"column": "c"}, "It holds.", severity)
    return Outcome(check, is_passed=is_passed, n_checked=40, n_failing=n_failing, error=error)


GATE = {
    "nothing failed": ([outcome("a", CheckSeverity.BLOCKING, is_passed=True)], False, []),
    "only a warning": ([outcome("a", CheckSeverity.WARNING, 2)], False, ["warning: scores.a failed for 2 of 40 rows"]),
    "warnings after what blocks": (
        [outcome("w", CheckSeverity.WARNING, 2), outcome("b", CheckSeverity.BLOCKING, 5)],
        True, ['blocked: scores.b failed for 5 of 40 rows of scores ({"k":1}, {"k":2}, {"k":3}, ...)', "warning: scores.w"]),
    "no rows to name": ([outcome("b", CheckSeverity.BLOCKING)], True, ["blocked: scores.b failed: It holds."]),
    "could not run": (
        [outcome("b", CheckSeverity.BLOCKING, error="boom")], True, ["blocked: scores.b could not be evaluated: boom."]),
}  # fmt: skip


@pytest.mark.parametrize("case", GATE)
def test_the_gate(case):
    outcomes, is_blocked, starts = GATE[case]
    keys = {one.check.name: [f'{{"k":{number + 1}}}' for number in range(one.n_failing)] for one in outcomes}
    blocked, sentences = decide(outcomes, keys, {"scores": "c" * 64})
    assert blocked == is_blocked
    assert len(sentences) == len(starts)
    for sentence, start in zip(sentences, starts, strict=True):
        assert sentence.startswith(start)
