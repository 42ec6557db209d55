"""Replies become scores: which ask counts, what a failure is called, what stands on the row. The reader has its own tests."""

import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubrics.model import Dimension, Items, Probability, ReplyFormat, Variant
from schemas.benchmark.judges import Judge
from schemas.errors import CorruptLakeError, RubricError
from schemas.statuses.rows import ParseReason, ReplyStatus
from schemas.tables.stored import SCORES
from schemas.tables.table import conform
from tasks.validate.parse import _verdicts, parse_part, reading_id

KEY = "a" * 64
GOOD, OTHER = '{"words": 4, "picture": 3}', '{"words": 1, "picture": 1}'
REQUEST_SCHEMA = dict.fromkeys(["request_key", "rubric_id", "rubric_version", "judge_model", "variant", "facts_json"], pl.String)
REPLY_SCHEMA = {
    "request_key": pl.String, "ask_index": pl.Int64, "status": pl.String, "reply_text": pl.String, "finish_reason": pl.String,
    "refusal_text": pl.String,
    "logprobs_json": pl.String,
}  # fmt: skip


def requests(*rows: tuple[str, str, str | None, str]) -> pl.DataFrame:
    """Rows of request_key, rubric_id, variant, facts_json."""
    full = [(key, rubric, "1", "j", variant, facts) for key, rubric, variant, facts in rows]
    return pl.DataFrame(full, schema=REQUEST_SCHEMA, orient="row")


def replies(*rows: tuple[object, ...]) -> pl.DataFrame:
    """Rows of request_key, ask_index, status, text, and where they matter finish_reason and refusal_text."""
    return pl.DataFrame([(*row, *[None] * (7 - len(row))) for row in rows], schema=REPLY_SCHEMA, orient="row")


def marks(*asks: tuple[object, ...], facts: str = '{"text_is_null":false}') -> tuple[pl.DataFrame, pl.DataFrame]:
    """One request under the rubric `marks`, and its asks in order: status, text, ..."""
    return requests((KEY, "marks", None, facts)), replies(*((KEY, index, *ask) for index, ask in enumerate(asks)))


SCORED = {"status": "scored", "reason": None}
CASES = {
    "first ask readable": ([("answered", GOOD)], SCORED | {"score": 4.0, "ask_index": 0}),
    "first readable wins though the second says other": (
        [("answered", GOOD), ("answered", OTHER)], SCORED | {"score": 4.0, "ask_index": 0}),
    "second ask read": ([("answered", "no"), ("answered", GOOD)], SCORED | {"score": 4.0, "ask_index": 1}),
    "the place in the ask that was read": (
        [("answered", "no"), ("answered", f"So: {GOOD}")], SCORED | {"score": 4.0, "ask_index": 1, "score_span": "[14, 15]"}),
    "saw nothing": ([("answered", f"No image was provided. {GOOD}")], {"status": "unreadable", "reason": "missing_input"}),
    "none readable: the first ask's reason": (
        [("answered", ""), ("answered", '{"words": 9, "picture": 3}')], {"status": "unreadable", "reason": "empty"}),
    "re-ask failed: the first ask's reason": (
        [("answered", '{"words": 9, "picture": 3}'), ("timed_out", None)], {"status": "unreadable", "reason": "out_of_range"}),
    "filtered": ([("filtered", None)], {"status": "unreadable", "reason": "refusal"}),
    "filtered, whatever text came with it": ([("filtered", GOOD)], {"status": "unreadable", "reason": "refusal"}),
    "cut off": ([("answered", '{"words": 4, "pic', "length")], {"status": "unreadable", "reason": "truncated"}),
    "refusal field": ([("answered", GOOD, "stop", "I cannot")], {"status": "unreadable", "reason": "refusal"}),
    "failed ask with text left over": ([("server_error", GOOD)], {"status": "no_reply", "reason": "server_error"}),
    "no reply row at all": ([], {"status": "no_reply", "reason": "not_asked"}),
    **{
        f"{status}": ([(status.value, None)], {"status": "no_reply", "reason": status.value})
        for status in ReplyStatus if status not in {ReplyStatus.ANSWERED, ReplyStatus.FILTERED}
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_becomes_of_a_request(lakes, case):
    asks, expected = CASES[case]
    expected = {"score": None, "ask_index": None} | expected
    rows = parse_part(*marks(*asks), lakes.rubrics)
    assert rows["dimension"].to_list() == ["picture", "words"]
    words = rows.row(1, named=True)
    assert {name: words[name] for name in expected} == expected
    verdict = None if expected["score"] is None else True
    assert [words[name] for name in ("is_in_range", "is_on_step", "is_rule_kept")] == [verdict] * 3
    bounds = (0.0, 5.0) if expected["score"] is None else (4.0, 4.0)
    assert (words["bound_low"], words["bound_high"]) == bounds


def test_a_score_on_a_half_step_counts_and_one_off_it_does_not(lakes):
    found = [parse_part(*marks(("answered", f'{{"words": 4, "picture": {said}}}')), lakes.rubrics) for said in (2.5, 2.25)]
    verdicts = [rows.select("score", "reason", "is_on_step").row(0) for rows in found]
    assert verdicts == [(2.5, None, True), (None, "non_integer", None)]


@pytest.mark.parametrize(("low", "step", "on", "off"), [(0.0, 0.5, 2.5, 2.25), (1.0, 2.0, 3.0, 4.0), (0.0, 0.1, 0.3, 0.35)])
def test_the_step_verdict_is_a_second_opinion_on_any_step(low, step, on, off):
    """No reader stands before it here: in a run it is only ever given what the reader let through."""
    rules = {"rule_low": None, "rule_high": None}
    rows = [{"score": score, "scale_low": low, "scale_high": 5.0, "step": step} | rules for score in (on, off, None)]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.Float64))
    assert frame.select(*_verdicts())["is_on_step"].to_list() == [True, False, None]


def test_a_rule_strikes_out_only_the_dimension_it_forbids(lakes):
    rows = parse_part(*marks(("answered", GOOD), facts='{"text_is_null":true}'), lakes.rubrics)
    picture, words = rows.iter_rows(named=True)
    assert (words["status"], words["reason"], words["score"]) == ("rule_violation", "rule_violation", 4.0)
    assert (words["bound_low"], words["bound_high"], words["is_rule_kept"]) == (0.0, 0.0, False)
    assert (words["is_in_range"], words["is_on_step"], words["ask_index"]) == (True, True, 0)
    assert (picture["status"], picture["score"], picture["is_rule_kept"]) == ("scored", 3.0, True)


ANSWERS = (("yes", 1.0), ("no", 0.0))
SOFT = Dimension("words", ("words",), 0.0, 1.0, answers=ANSWERS, probability=Probability(is_normalised=True, min_mass=0.5))
YES = json.dumps({"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": [{"token": "no", "logprob": -2.4}]}]})
WORD = replace(SOFT, probability=None)
OF_OTHER_FORMS = {
    "a probability": (ReplyFormat.ANSWER, None, SOFT, ("yes", "stop", None, YES), {}),
    "an item alone": (ReplyFormat.ANSWER, Items("items", False, {}, {}), WORD, ("yes",), {"items": [{"expected": "yes"}]}),
    "items together": (
        ReplyFormat.LIST, Items("items", True, {}, {}), WORD, ('["yes", "no"]',), {"items": [{"id": "i1"}, {"id": "i2"}]}),
}  # fmt: skip


SOME, OTHERS, ALL = "A? yes\nB? no", "B? yes\nC? no", "no\nno\nno"
LOST = (None, None, "missing_key")


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ((SOME,), [(1, 0, None), (0, 0, None), LOST]),
        ((SOME, ALL), [(0, 1, None)] * 3),
        ((SOME, OTHERS), [(1, 0, None), (0, 0, None), LOST]),
        (("yes\nno", OTHERS), [LOST, (1, 1, None), (0, 1, None)]),
        ((SOME, "What?"), [(1, 0, None), (0, 0, None), LOST]),
    ],
)
def test_an_ask_that_answers_every_item_counts_before_one_that_leaves_some_out(lakes, asks, said):
    """All answers are of one reply: what one ask left out is not taken from the other."""
    items = Items("items", True, {}, {})
    lines = replace(
        lakes.rubrics["marks"], reply_format=ReplyFormat.LINES, items=items, rules=(),
        variants={None: Variant(None, None, None, (WORD,))},
    )  # fmt: skip
    facts = json.dumps({"items": [{"id": name, "text": f"{name.upper()}?"} for name in "abc"]})
    rows = parse_part(*marks(*(("answered", text) for text in asks), facts=facts), {"marks": lines})
    assert rows.select("score", "ask_index", "reason").rows() == said


def test_a_reply_that_breaks_the_reader_costs_no_other_and_is_told_once(lakes, caplog):
    """A place that loading refuses stands for whatever breaks the reader and is not known yet."""
    broken = Variant(None, None, None, (replace(SOFT, probability=None, answers=(), at="_[0]"),))
    rubrics = lakes.rubrics | {"broken": replace(lakes.rubrics["marks"], id="broken", rules=(), variants={None: broken})}
    asked = requests((KEY, "marks", None, "{}"), ("b" * 64, "broken", None, "{}"))
    said = replies(*((key, 0, "answered", GOOD) for key in (KEY, "b" * 64)))
    with caplog.at_level("ERROR", "salon.parse"):
        read = [parse_part(asked, said, rubrics).select("status", "reason", "score").rows() for _ in range(2)]
    assert read == [[("scored", None, 3), ("scored", None, 4), ("unreadable", "malformed", None)]] * 2
    (told,) = caplog.messages
    assert told.startswith(f"ask 0 of request {'b' * 64} broke the reader and is malformed; a fault of Salon: ")


@pytest.mark.parametrize(("form", "items", "dimension", "said", "facts"), OF_OTHER_FORMS.values(), ids=OF_OTHER_FORMS)
def test_a_rule_holds_whatever_the_reply_is_read_from(lakes, form, items, dimension, said, facts):
    """The verdict of the numbers is made apart from the reader's: where they differ, the data checks stop the publication."""
    variants = {None: Variant(None, None, None, (dimension,))}
    marks_so = replace(lakes.rubrics["marks"], reply_format=form, items=items, variants=variants)
    asked = marks(("answered", *said), facts=json.dumps({"text_is_null": True} | facts))
    rows = parse_part(*asked, {"marks": marks_so}).select("item", "status", "is_rule_kept").rows()
    are_two = form is ReplyFormat.LIST
    assert rows == [("i1" if are_two else "", "rule_violation", False), *([("i2", "scored", True)] if are_two else [])]


def test_a_rule_violation_is_readable_so_the_reask_is_not_used(lakes):
    asks = [("answered", GOOD), ("answered", '{"words": 0, "picture": 1}')]
    rows = parse_part(*marks(*asks, facts='{"text_is_null":true}'), lakes.rubrics)
    assert rows["score"].to_list() == [3.0, 4.0]


def test_without_a_score_the_bounds_are_narrowed_by_the_rules_that_hold(lakes):
    rows = parse_part(*marks(("timed_out", None), facts='{"text_is_null":true}'), lakes.rubrics)
    assert rows.select("dimension", "bound_low", "bound_high").rows() == [("picture", 0.0, 5.0), ("words", 0.0, 0.0)]


def test_each_variant_has_its_own_dimensions_and_notes_stay_with_theirs(lakes):
    asked = requests(("b" * 64, "aspects", "two", "{}"), ("a" * 64, "aspects", "one", "{}"))
    one = '{"shape": {"score": 7.5, "reason": "ok \\ud800 <b>"}, "overall_score": 8}'
    two = '{"shape": 1, "colour": 2.25, "overall_score": 2}'
    rows = parse_part(asked, replies(("b" * 64, 0, "answered", two), ("a" * 64, 0, "answered", one)), lakes.rubrics)
    found = rows.select(pl.col("request_key").str.head(1), "dimension", "score", "variant").rows()
    assert found == [
        ("a", "overall_score", 8.0, "one"), ("a", "shape", 7.5, "one"),
        ("b", "colour", 2.25, "two"), ("b", "overall_score", 2.0, "two"), ("b", "shape", 1.0, "two"),
    ]  # fmt: skip
    assert rows["note"].is_null().to_list() == [True, False, True, True, True]


def test_facts_reach_the_rules_but_never_what_the_provider_said(lakes):
    """A sample whose facts name a context key must not speak for the provider, nor choose the category."""
    facts = json.dumps({"text_is_null": False, "finish_reason": "content_filter", "refusal": "no", "category": "two"})
    assert parse_part(*marks(("answered", GOOD), facts=facts), lakes.rubrics)["score"].to_list() == [3.0, 4.0]


def test_other_parts_replies_are_left_alone_and_no_requests_give_no_rows(lakes):
    asked, got = marks(("answered", GOOD))
    strangers = pl.concat([got, replies(("z" * 64, 0, "answered", OTHER))])
    assert parse_part(asked, strangers, lakes.rubrics).equals(parse_part(asked, got, lakes.rubrics))
    empty = parse_part(asked.clear(), got, lakes.rubrics)
    assert empty.height == 0
    assert conform(empty, SCORES).num_rows == 0


@pytest.mark.parametrize(
    ("rubric_id", "variant", "said"),
    [("nobody", None, "nobody which is not one of those given (aspects, marks)"), ("aspects", "three", "category 'three'")],
)
def test_a_request_under_an_unknown_rubric_stops_with_what_to_do(lakes, rubric_id, variant, said):
    with pytest.raises(RubricError) as error:
        parse_part(requests((KEY, rubric_id, variant, "{}")), replies(), lakes.rubrics)
    assert said in str(error.value)
    assert "benchmark file" in str(error.value)


def test_facts_that_are_no_json_object_are_a_corrupt_lake(lakes):
    with pytest.raises(CorruptLakeError, match="facts_json"):
        parse_part(*marks(("answered", GOOD), facts="[1]"), lakes.rubrics)


def test_reading_id_follows_replies_rubrics_code_and_names(lakes):
    changed = lakes.rubrics | {"marks": replace(lakes.rubrics["marks"], digest="0" * 64)}
    found = {
        reading_id("s", lakes.rubrics, "v"), reading_id("t", lakes.rubrics, "v"), reading_id("s", lakes.rubrics, "w"),
        reading_id("s", changed, "v"), reading_id("s", lakes.rubrics, "v", [Judge(model="m", name="n")]),
    }  # fmt: skip
    assert len(found) == 5
    assert all(len(one) == 64 for one in found)
    assert reading_id("s", lakes.rubrics, "v", [Judge(model="m"), Judge(model="n", name="n")]) in found, (
        "names of their own alone"
    )
    assert reading_id("s", dict(reversed(lakes.rubrics.items())), "v") == reading_id("s", lakes.rubrics, "v")


TEXTS = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.fixed_dictionaries({"words": st.integers(-1, 7), "picture": st.sampled_from([0, 3, 5, 2.5, "3", None])}).map(json.dumps),
    st.just('{"shape": 3.5, "colour": 10, "overall_score": 4}'),
)
STATUSES = st.sampled_from([*[ReplyStatus.ANSWERED.value] * 5, *[status.value for status in ReplyStatus]])
ASKED = st.tuples(
    st.sampled_from([("marks", None), ("aspects", "one"), ("aspects", "two")]),
    st.sampled_from(['{"text_is_null":true}', '{"text_is_null":false}', "{}"]),
    st.lists(st.tuples(STATUSES, TEXTS), max_size=2),
)


@given(st.lists(ASKED, max_size=8))
@settings(max_examples=80, deadline=None)
def test_every_request_and_dimension_has_one_row_that_holds_together(lakes, asked):
    named = [(f"{number:064d}", *one) for number, one in enumerate(asked)]
    rows = parse_part(
        requests(*((key, rubric, variant, facts) for key, (rubric, variant), facts, _ in named)),
        replies(*((key, index, *ask) for key, _, _, asks in named for index, ask in enumerate(asks))),
        lakes.rubrics,
    )
    expected = [
        (key, dimension)
        for key, (rubric, variant), _, _ in named
        for dimension in sorted(lakes.rubrics[rubric].variants[variant].keys)
    ]
    assert rows.select("request_key", "dimension").rows() == expected
    assert conform(rows, SCORES).num_rows == len(expected)
    for row in rows.iter_rows(named=True):
        has_score = row["status"] in {"scored", "rule_violation"}
        assert (row["score"] is not None) == (row["ask_index"] is not None) == (row["score_span"] is not None) == has_score
        assert (row["reason"] is None) == (row["status"] == "scored")
        assert row["bound_low"] <= row["bound_high"]
        verdicts = (row["is_in_range"], row["is_on_step"], row["is_rule_kept"])
        assert verdicts == ((True, True, row["status"] == "scored") if has_score else (None, None, None))
        if row["status"] == "unreadable":
            assert row["reason"] in set(ParseReason) - {ParseReason.RULE_VIOLATION}
