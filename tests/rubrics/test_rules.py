"""The declared rules: facts of a sample, the length rule at its edge, bounds, and facts that users write."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubrics.loading import SHIPPED, find_rubrics
from rubrics.model import Condition, Rubric, Rule
from rubrics.rules import bounds, facts, unusable_fact, violations
from tasks.validate.scales import rule_frame

Write = Callable[..., Path]
ALL = find_rubrics(["interleaved", "image_aspects", "caption", "composition", "alignment"], [SHIPPED])
INTERLEAVED, CAPTION = ALL["interleaved"], ALL["caption"]
FOUR = ("text_response_quality", "image_response_quality", "image_aesthetic_quality", "text_image_synergy")


@pytest.mark.parametrize(
    ("text", "is_null"),
    [(None, True), ("", True), (" \t\r\n\u3000\u2028", True), ("null", False), ("0", False), ("\u200b", False), (".", False)],
)
def test_null_is_nothing_but_white_space(text: str | None, is_null: bool) -> None:
    assert facts(INTERLEAVED, {"question": "q", "text": text}, True) == {"text_is_null": is_null, "image_is_null": False}


def test_facts_are_those_the_rules_use() -> None:
    values = {"caption_type": "theme", "reference": "a b\u3000c\nd", "output": " one  two ", "prompt": "unused"}
    assert facts(CAPTION, values, True) == {"caption_type": "style", "reference_words": 4, "output_words": 2}
    assert facts(CAPTION, {"caption_type": None, "reference": " "}, True) == {}
    assert facts(ALL["composition"], {"prompt": "a", "category": "colors"}, True) == {}


@pytest.mark.parametrize(
    ("n_output", "n_reference", "is_outside"),
    [
        (13, 10, False), (14, 10, True), (7, 10, False), (6, 10, True), (130, 100, False), (131, 100, True), (70, 100, False),
        (69, 100, True), (3, 3, False), (4, 3, True), (2, 3, True), (1, 1, False), (0, 0, False), (1, 0, True),
        (13 * 10**20, 10 * 10**20, False), (13 * 10**20 + 1, 10 * 10**20, True),  # floats would lose the difference
    ],
)  # fmt: skip
def test_thirty_percent_exactly_is_inside(n_output: int, n_reference: int, is_outside: bool) -> None:
    for caption_type in ("brief", "detail"):
        known = {"caption_type": caption_type, "output_words": n_output, "reference_words": n_reference}
        assert violations(CAPTION, {"score": 2}, known) == ({"score": (0, 1)} if is_outside else {})
        assert violations(CAPTION, {"score": 1}, known) == {}
        assert bounds(CAPTION, known) == {"score": (0, 1) if is_outside else (0, 4)}


@pytest.mark.parametrize("caption_type", ["poem", "narrative", "style", "theme", "Brief", ""])
def test_other_types_have_no_length(caption_type: str) -> None:
    known = {"caption_type": caption_type, "output_words": 90, "reference_words": 10}
    assert violations(CAPTION, {"score": 4}, known) == {}


@pytest.mark.parametrize(
    ("known", "scores", "violated"),
    [
        ({"text_is_null": True}, (0, 5, 5, 0), ()),
        ({"text_is_null": True}, (1, 5, 5, 0), (0,)),
        ({"text_is_null": True}, (1, 5, 5, 3), (0, 3)),
        ({"image_is_null": True}, (5, 0, 0, 0), ()),
        ({"image_is_null": True}, (5, 1, 2, 3), (1, 2, 3)),
        ({"text_is_null": True, "image_is_null": True}, (0, 0, 0, 0), ()),
        ({"text_is_null": True, "image_is_null": True}, (1, 1, 1, 1), (0, 1, 2, 3)),
        ({"text_is_null": False, "image_is_null": False}, (1, 1, 1, 1), ()),
    ],
)
def test_what_null_demands(known: dict[str, object], scores: tuple[int, ...], violated: tuple[int, ...]) -> None:
    expected = {FOUR[index]: (0, 0) for index in violated}
    assert violations(INTERLEAVED, dict(zip(FOUR, scores, strict=True)), known) == expected


def test_only_dimensions_of_holding_rules_are_violated() -> None:
    # 9 is off the scale: that is the reader's to say, and no rule speaks of it here.
    scores = dict(zip(FOUR, (3, 9, 9, 0), strict=True))
    assert violations(INTERLEAVED, scores, {"text_is_null": True}) == {FOUR[0]: (0, 0)}
    assert violations(INTERLEAVED, {"unknown": 3}, {"text_is_null": True}) == {}


def test_a_rule_reads_the_prompts_word_also_from_a_users_context() -> None:
    rule = Rule("style", (Condition("caption_type", one_of=("style",)),), ("score",), None, 2)
    rubric = replace(CAPTION, rules=(rule,))
    for word in ("theme", "style"):
        assert violations(rubric, {"score": 3}, {"caption_type": word}) == {"score": (0, 2)}


def test_bounds_hold_every_dimension_of_every_variant() -> None:
    assert bounds(INTERLEAVED, {"text_is_null": True}) == dict(zip(FOUR, [(0, 0), (0, 5), (0, 5), (0, 0)], strict=True))
    assert set(bounds(ALL["composition"], {}).values()) == {(0, 10)}
    assert len(bounds(ALL["composition"], {})) == 18


@pytest.mark.parametrize("change", [{"is_lower_better": True}, {}], ids=["better_when_lower", "of_items"])
def test_a_rule_binds_also_what_tables_have_in_another_form(change: dict[str, Any]) -> None:
    variant = CAPTION.variants[None]
    said = tuple(replace(one, **change) for one in variant.dimensions)
    rule = Rule("theme", (Condition("caption_type", one_of=("style",)),), ("score",), None, 2)
    mine = replace(variant, dimensions=said, is_of_items=not change)
    rubric, known = replace(CAPTION, rules=(rule,), variants={None: mine}), {"caption_type": "style"}
    assert violations(rubric, {"score": 3}, known) == {"score": (0, 2)}
    asked = pl.DataFrame({"rubric_id": [rubric.id], "variant": [None], "facts_json": ['{"caption_type": "style"}']})
    (row,) = rule_frame({rubric.id: rubric}, asked.with_columns(pl.col("variant").cast(pl.String))).to_dicts()
    assert (row["rule_low"], row["rule_high"]) == (None, 2)


SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON_VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=2), max_leaves=3)
FACT_NAMES = st.sampled_from(["text_is_null", "image_is_null", "caption_type", "output_words", "reference_words", "other"])


@given(known=st.dictionaries(FACT_NAMES, JSON_VALUE, max_size=6), score=st.floats(0, 4))
def test_facts_of_users_never_raise_and_bounds_stay_on_the_scale(known: dict[str, object], score: float) -> None:
    for rubric in ALL.values():
        allowed = bounds(rubric, known)
        for dimension in rubric.dimensions:
            low, high = allowed[dimension.key]
            assert dimension.minimum <= low <= high <= dimension.maximum
        scores = dict.fromkeys(allowed, score)
        found = violations(rubric, scores, known)
        assert found == {key: b for key, b in allowed.items() if not b[0] <= score <= b[1] and key in found}


@pytest.mark.parametrize(
    "known",
    [
        {"text_is_null": 1}, {"text_is_null": "true"}, {"text_is_null": None}, {"text_is_null": [True]}, {},
        {"caption_type": "brief", "output_words": 90}, {"caption_type": ["brief"], "output_words": 90, "reference_words": 10},
        {"caption_type": "brief", "output_words": 90.5, "reference_words": 10},
        {"caption_type": "brief", "output_words": float("inf"), "reference_words": 10},
        {"caption_type": "brief", "output_words": "90", "reference_words": 10},
        {"caption_type": "brief", "output_words": True, "reference_words": 10},
        {"caption_type": "brief", "output_words": -90, "reference_words": 10},
        {"caption_type": "brief", "output_words": float("nan"), "reference_words": 10},
    ],
)  # fmt: skip
def test_a_fact_of_the_wrong_type_says_nothing(known: dict[str, object]) -> None:
    assert violations(CAPTION, {"score": 4}, known) == {}
    assert violations(INTERLEAVED, dict.fromkeys(FOUR, 3), known) == {}


def test_a_whole_number_with_a_point_is_a_count() -> None:
    known = {"caption_type": "brief", "output_words": 14.0, "reference_words": 10.0}
    assert violations(CAPTION, {"score": 4}, known) == {"score": (0, 1)}
    assert unusable_fact(CAPTION, known) is None


TYPES = ["brief", "detail", "poem", "narrative", "style", "theme"]
A_COUNT = "a whole number from 0 on"
UNUSABLE: list[tuple[Rubric, str, object, str, object]] = [
    *((CAPTION, "caption_type", word, "unknown_value", TYPES) for word in ("Brief", "brief ", "nonsense", "", " ")),
    *((CAPTION, "caption_type", value, "bad_value", TYPES) for value in (5, True, ["brief"], {})),
    *((CAPTION, "reference_words", value, "bad_value", A_COUNT) for value in (-10, 10.5, "10", True, [10], 1e-9)),
    *((CAPTION, "output_words", value, "bad_value", A_COUNT) for value in (-1, -1.0, "", False, {})),
    *((INTERLEAVED, "text_is_null", value, "bad_value", [True, False]) for value in ("true", 1, 0, "", [True])),
    *((INTERLEAVED, "image_is_null", value, "bad_value", [True, False]) for value in ("false", 0)),
    *((ALL["alignment"], fact, "true", "bad_value", [True, False]) for fact in ("image_is_null", "text_is_null")),
]


@pytest.mark.parametrize(
    ("rubric", "fact", "value", "reason", "allowed"), UNUSABLE, ids=[f"{fact}={value!r}" for _, fact, value, *_ in UNUSABLE]
)
def test_a_fact_that_is_not_as_declared_is_named(rubric: Rubric, fact: str, value: object, reason: str, allowed: object) -> None:
    """One of another type is none of the rubric's words, but a bad value."""
    right = {"caption_type": "brief", "reference_words": 10, "output_words": 4, "text_is_null": False, "image_is_null": False}
    assert unusable_fact(rubric, right) is None
    expected = {"error": reason, "fact": fact, "value": value, "allowed": allowed}
    assert unusable_fact(rubric, right | {fact: value}) == expected
    assert unusable_fact(rubric, {fact: value}) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e400, ["brief"] * 99, "b" * 99], ids=repr)
def test_an_unusable_fact_is_shown_in_a_line_of_json(value: object) -> None:
    found = unusable_fact(CAPTION, {"output_words": value}) or {}
    assert len(json.dumps(found, allow_nan=False)) < 200
    assert isinstance(found["value"], str)


def test_absent_facts_and_those_no_rule_reads_are_passed_over() -> None:
    assert unusable_fact(CAPTION, {}) is None
    assert unusable_fact(CAPTION, {"caption_type": "theme", "output_words": 0, "other": 5, "question_is_null": "?"}) is None
    assert unusable_fact(INTERLEAVED, {"caption_type": "nonsense", "reference_words": "10"}) is None


def test_a_column_without_declared_words_may_hold_any_text() -> None:
    rubric = replace(CAPTION, words={})
    assert unusable_fact(rubric, {"caption_type": "nonsense"}) is None
    assert unusable_fact(rubric, {"caption_type": 5}) == {
        "error": "bad_value", "fact": "caption_type", "value": 5, "allowed": "a text",
    }  # fmt: skip


@given(text=st.none() | st.text(max_size=9), has_image=st.booleans(), caption_type=st.sampled_from(TYPES))
def test_facts_of_a_sample_are_always_usable(text: str | None, has_image: bool, caption_type: str) -> None:
    values = {"caption_type": caption_type, "question": "q", "text": text, "reference": text, "output": text}
    for rubric in ALL.values():
        assert unusable_fact(rubric, facts(rubric, values, has_image)) is None


@given(
    bound=st.integers(0, 5), is_low=st.booleans(),
    texts=st.tuples(st.text(max_size=9), st.text(max_size=9)), has_image=st.booleans(),
)  # fmt: skip
def test_a_score_within_the_bounds_violates_nothing(bound: int, is_low: bool, texts: tuple[str, str], has_image: bool) -> None:
    rule = Rule("r", (Condition("text", is_null=False),), FOUR[:2], bound if is_low else None, None if is_low else bound)
    rubric: Rubric = replace(INTERLEAVED, rules=(*INTERLEAVED.rules, rule))
    known = facts(rubric, {"question": texts[0], "text": texts[1]}, has_image)
    allowed = bounds(rubric, known)
    for end in (0, 1):
        assert violations(rubric, {key: pair[end] for key, pair in allowed.items()}, known) == {}


def test_rules_that_contradict_one_another_stay_on_the_scale() -> None:
    always = (Condition("text", is_null=True),)
    rubric = replace(INTERLEAVED, rules=(Rule("a", always, FOUR[:1], 4, None), Rule("b", always, FOUR[:1], None, 2)))
    assert bounds(rubric, {"text_is_null": True})[FOUR[0]] == (4, 4)


def test_the_length_rule_flags_484_of_the_800_brief_and_detail_rows(needs_salon_data: Path) -> None:
    lines = (needs_salon_data / "anycap" / "caption_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    known = [facts(CAPTION, row, True) for row in map(json.loads, lines)]
    ruled = [row for row in known if row["caption_type"] in {"brief", "detail"}]
    assert len(ruled) == 800
    assert sum(bounds(CAPTION, row)["score"] == (0, 1) for row in known) == 484
    assert sum(bool(violations(CAPTION, {"score": 2}, row)) for row in known) == 484
    assert {row["caption_type"] for row in known} <= {"brief", "detail", "poem", "narrative", "style"}
