"""The corpus of replies against what a careful person reads: no number where there is none, and hardly one lost; and spans."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

CORPUS = Path(__file__).parents[2] / "data" / "replies"
MIN_READ = 0.98


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]


def read(shipped: dict[str, Rubric], line: dict[str, Any]) -> Any:
    found = parse_reply(shipped[line["rubric"]], line["raw"], line["context"])
    return dict(found.scores) if isinstance(found, ReadScores) else found.reason.value


FORMS = sorted({line["form"] for line in lines("corpus.jsonl")})


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_read_as_a_careful_person_does(shipped: dict[str, Rubric], form: str) -> None:
    """Each form, and the near forms that stay refused; the reason is held too."""
    mine = [line for line in lines("corpus.jsonl") if line["form"] == form]
    assert [(line["raw"], read(shipped, line)) for line in mine] == [(line["raw"], line["careful"]) for line in mine]


@pytest.mark.parametrize("kind", ["nothing", "withdrawn", "other"])
def test_no_adversarial_reply_gives_a_number(shipped: dict[str, Rubric], kind: str) -> None:
    mine = [line for line in lines("adversarial.jsonl") if line["form"].startswith(kind)]
    assert len(mine) >= 100
    assert {line["raw"]: read(shipped, line) for line in mine} == {line["raw"]: line["careful"] for line in mine}


@pytest.mark.parametrize("line_end", ["\r\n", "\r"], ids=["CR LF", "CR"])
@pytest.mark.parametrize("name", ["corpus.jsonl", "adversarial.jsonl"])
def test_another_line_end_is_read_alike(shipped: dict[str, Rubric], name: str, line_end: str) -> None:
    """`Score: 4`, CR LF, `Correction: 3`, CR LF was 4, and a heading with its number below it nothing."""
    many = [line for line in lines(name) if line["raw"] and "\n" in line["raw"]]
    assert len(many) >= 100
    other = [line | {"raw": line["raw"].replace("\r\n", "\n").replace("\n", line_end)} for line in many]
    assert [(line["raw"], read(shipped, line)) for line in other] == [
        (other["raw"], read(shipped, line)) for line, other in zip(many, other, strict=True)
    ]


def test_of_what_a_careful_person_reads_hardly_anything_is_lost(shipped: dict[str, Rubric]) -> None:
    every = [*lines("corpus.jsonl"), *lines("adversarial.jsonl")]
    verdicts = Counter(
        ("number", read(shipped, line) == line["careful"]) if isinstance(line["careful"], dict) else
        ("none", not isinstance(read(shipped, line), dict))
        for line in every
    )  # fmt: skip
    assert verdicts["none", False] == 0
    assert verdicts["number", True] >= MIN_READ * (verdicts["number", True] + verdicts["number", False])


def test_each_number_has_its_place_in_the_reply(shipped: dict[str, Rubric]) -> None:
    n_seen = 0
    for line in lines("corpus.jsonl"):
        found = parse_reply(shipped[line["rubric"]], line["raw"], line["context"])
        if isinstance(found, ReadScores):
            n_seen += 1
            assert found.spans.keys() == found.scores.keys(), line["raw"]
            for key, (start, end) in found.spans.items():
                assert float(line["raw"][start:end]) == found.scores[key], (line["raw"], key)
    assert n_seen > 100


@pytest.mark.parametrize(
    ("rubric_id", "raw", "span"),
    [
        ("alignment", "Reasoning: 4 cats.\nScore: 4", (26, 27)),
        ("alignment", "<think>Score: 4</think>\nScore: 4", (31, 32)),
        ("alignment", "Score: four (4)", (13, 14)),
        ("caption", '{"reason": "a score: 3 is apt", "score": 3}', (41, 42)),
        ("caption", "{'reason': 'a score: 3 is apt', 'score': 3}", (41, 42)),
        ("caption", '{"reason": "it says \\"score\\": 3", "score": 3}', (44, 45)),
        ("caption", '{"score": "3/4"}', (11, 12)),
        ("caption", '{"hallucination": {"score": 3}, "score": 3}', (41, 42)),
        ("caption", '"{\\"score\\": 3}"', (13, 14)),
        ("caption", "<score>3</score>", (7, 8)),
    ],
)
def test_a_span_is_that_of_the_answer(shipped: dict[str, Rubric], rubric_id: str, raw: str, span: tuple[int, int]) -> None:
    """Not of the same number in a text, in thinking, or under another thing's key."""
    found = parse_reply(shipped[rubric_id], raw, {})
    assert isinstance(found, ReadScores)
    assert (found.spans["score"], raw[slice(*found.spans["score"])]) == (span, "3" if rubric_id == "caption" else "4")
