"""The work of `salon parse`: a line in, a line out, and which lines are refused."""

import json
import re
from typing import Any

import pytest

from rubrics.golden import read_replies
from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import Rubric
from rubrics.replies.jsonl import parse_jsonl, parse_jsonl_line
from schemas.errors import InputError

REPLY = '{"count_accuracy": 8, "object_uniformity": 9, "spatial_legibility": 7.5, "overall_score": 8}'


def test_lines_in_order(shipped: dict[str, Rubric]) -> None:
    lines: list[str | bytes] = [
        b"\xef\xbb\xbf" + json.dumps({"raw": "Score: 4", "context": {}}).encode() + b"\r\n",
        b"\n",
        json.dumps({"raw": "Score: 4\u2028", "context": {"finish_reason": "stop"}}, ensure_ascii=False).encode() + b"\n",
        '{"raw": null, "context": null}',
        '{"raw": "\\ud800"}',
        '{"raw": "Score: 3-4", "context": {}, "more": 1}',
    ]
    printed = [json.loads(line) for line in parse_jsonl(shipped["alignment"], lines)]
    assert printed == [
        {"scores": {"score": 4}},
        {"scores": {"score": 4}},
        {"error": "empty"},
        {"error": "not_found"},
        {"error": "ambiguous"},
    ]


def test_a_rule_violation_prints_both(shipped: dict[str, Rubric]) -> None:
    context = {"caption_type": "brief", "reference_words": 10, "output_words": 14}
    line = parse_jsonl_line(shipped["caption"], json.dumps({"raw": '{"score": 3}', "context": context}))
    assert line == '{"error": "rule_violation", "scores": {"score": 3}}'


BRIEF = {"caption_type": "brief", "reference_words": 10, "output_words": 4}


@pytest.mark.parametrize(
    "raw", ['{"score": 3}', '{"score": 1}', "I'm sorry.", None], ids=["ruled out", "allowed", "no answer", "null"]
)
@pytest.mark.parametrize("is_explained", [False, True])
def test_a_fact_that_is_not_as_declared_is_said_in_place_of_scores(
    shipped: dict[str, Rubric], raw: str | None, is_explained: bool
) -> None:
    """Whatever the reply says: in tables such a sample is not asked about."""
    types = ["brief", "detail", "poem", "narrative", "style", "theme"]
    for fact, value, reason, allowed in (
        ("caption_type", "Brief", "unknown_value", types),
        ("caption_type", 5, "bad_value", types),
        ("reference_words", "10", "bad_value", "a whole number from 0 on"),
    ):
        content = json.dumps({"raw": raw, "context": BRIEF | {fact: value}})
        said = json.loads(parse_jsonl_line(shipped["caption"], content, is_explained=is_explained))
        assert said == {"error": reason, "fact": fact, "value": value, "allowed": allowed}


def test_a_wrong_fact_stops_no_other_line(shipped: dict[str, Rubric]) -> None:
    """Null says as little as a fact left out: tables are written with it where nothing is known."""
    known = [BRIEF | {"caption_type": "nonsense"}, BRIEF, BRIEF | {"reference_words": 10.0}, {"caption_type": "brief"}]
    contexts = [*known, BRIEF | {"caption_type": None}]
    lines = [json.dumps({"raw": '{"score": 3}', "context": context}) for context in contexts]
    printed = [json.loads(line) for line in parse_jsonl(shipped["caption"], lines)]
    assert [one["error"] if "error" in one else one["scores"] for one in printed] == [
        "unknown_value", "rule_violation", "rule_violation", {"score": 3}, {"score": 3},
    ]  # fmt: skip


ITEMS = {"items": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}
OF_ITEMS = ("tests/instruments/unigenbench", "<score>[1, 7, N/A]</score>", ITEMS)
EXAMPLES: list[tuple[str, str, dict[str, Any]]] = [
    ("rubrics/alignment", "Score: 4", {}),
    ("rubrics/caption", '{"score": 3}', BRIEF | {"output_words": 20}),
    OF_ITEMS,
    OF_ITEMS,
    ("tests/instruments/geneval2", "yes", {}),
    ("rubrics/caption", '{"score": 3}', BRIEF | {"reference_words": "10"}),
    ("rubrics/alignment", "Score: 4", {}),
    ("rubrics/alignment", "Score: four", {}),
    ("rubrics/starters/edit", '{"instruction_followed": 9, "rest_kept": 4}', {}),
]
"""What each example of the table of keys in docs/replies.md is of."""


def all_keys(said: dict[str, Any]) -> set[str]:
    """The keys of a line, and those that `--explain` says of each dimension."""
    of_each = [each for key in ("found", "failed", "figures") for each in said.get(key, {}).values()]
    return set(said).union(*of_each)


def test_the_docs_name_every_key_and_show_what_is_printed() -> None:
    page = (SHIPPED.parent / "docs" / "replies.md").read_text("utf-8").partition("**Output.**")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    keys: set[str] = set()
    for (named, when, example), (folder, raw, context) in zip(rows, EXAMPLES, strict=True):
        line = json.dumps({"raw": raw, "context": context})
        said = json.loads(parse_jsonl_line(load_rubric(SHIPPED.parent / folder), line, is_explained=True))
        shown = json.loads(example.strip(" `"))
        assert shown.items() <= said.items(), named
        assert set(re.findall(r"`(\w+)`", named)) <= set(shown)
        keys |= all_keys(said)
        assert all_keys(shown) <= set(re.findall(r"`(\w+)`", page)), when
    for folder in (path.parent for path in SHIPPED.glob("*/rubric.toml")):
        for one in read_replies(folder):
            if isinstance(one["raw"], str):
                keys |= all_keys(json.loads(parse_jsonl_line(load_rubric(folder), json.dumps(one), is_explained=True)))
    assert keys - {"reason", "in", "score", "note", "span", "text"} == {
        key for named, *_ in rows for key in re.findall(r"`(\w+)`", named)
    }


@pytest.mark.parametrize(
    ("category", "context"), [("counting", {}), (None, {"category": "counting"}), ("counting", {"category": "colors"})]
)
def test_category(shipped: dict[str, Rubric], category: str | None, context: dict[str, str]) -> None:
    line = parse_jsonl_line(shipped["composition"], json.dumps({"raw": REPLY, "context": context}), category=category)
    assert json.loads(line)["scores"] == {
        "count_accuracy": 8,
        "object_uniformity": 9,
        "spatial_legibility": 7.5,
        "overall_score": 8,
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 7: not JSON"),
        (b"\xff", "line 7: not JSON in UTF-8"),
        ("[" * 100_000, "line 7: not JSON"),
        ("[]", r"line 7: \[\] is not an object"),
        ("{}", 'line 7: "raw" must be'),
        ('{"raw": 4}', 'line 7: "raw" must be'),
        ('{"raw": "x", "context": []}', r'line 7: "context" is \[\]'),
        ('{"raw": "x", "context": {"n": ' + "9" * 5000 + "}}", "line 7: not JSON"),
    ],
)
def test_a_line_that_is_no_record(shipped: dict[str, Rubric], line: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_jsonl_line(shipped["alignment"], line, number=7)


@pytest.mark.parametrize(
    ("category", "message"), [(None, "no category is given.*composition:CATEGORY.*two_object"), ("cats", '"cats" is not')]
)
def test_a_category_is_needed(shipped: dict[str, Rubric], category: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_jsonl_line(shipped["composition"], '{"raw": "x", "context": {}}', category=category)
