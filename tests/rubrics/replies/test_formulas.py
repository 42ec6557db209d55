"""Labels and numbers in LaTeX: what is read through it, and what it must not join or hide. A table of replies."""

import json

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

READ: list[tuple[str, int | str]] = [
    (r"Rating: \(7\)", 7),
    (r"Rating: \[7\]", 7),
    (r"Rating: \(7/10\)", 7),
    (r"Rating: $7 \text{ out of } 10$", 7),
    (r"$\text{Rating: } 7$", 7),
    (r"\[\text{Rating: } 7\]", 7),
    (r"\textbf{Rating:} 7", 7),
    (r"\textbf{Rating:} 7/10", 7),
    (r"\boxed{Rating: 7}", 7),
    (r"$\textbf{Rating: 7}$", 7),
    (r"$$\boxed{\text{Rating: } 7}$$", 7),
    (r"$\boxed{\text{Rating: } 7/10}$", 7),
    (r"\text{Final Rating: }7", 7),
    (r"\text{Final Score: }7", "not_found"),
    (r"\text{Realism Rating: } 7", "not_found"),
    (r"The sign says \text{Rating: } 7 in red.", "not_found"),
    (r"Rating: \(7/5\)", "scale_mismatch"),
    (r"Rating: \(7-8\)", "ambiguous"),
    (r"Rating: \(7\) or \(8\)", "ambiguous"),
    (r"\boxed{Rating: 7-8}", "ambiguous"),
    ("\\textbf{Rating:} 7\n\\boxed{Rating: 8}", "ambiguous"),
    ("\\textbf{Rating:} 7\n\\boxed{8}", "ambiguous"),
    ("\\textbf{Rating:} 7\n\\textbf{Correction:} 5", "ambiguous"),
    (r"Rating: \boxed{1}\boxed{0}", "ambiguous"),
    (r"Rating: 1\boxed{0}", "ambiguous"),
    (r"Rating: \boxed{7}.5", "ambiguous"),
    (r"Rating: \frac{7}{10}", "wrong_type"),
    (r"Rating: \sqrt{7}", "wrong_type"),
    (r"Rating: -\boxed{7}", "wrong_type"),
]


@pytest.mark.parametrize(("text", "expected"), READ, ids=[repr(text) for text, _ in READ])
def test_in_a_formula(doubtful: dict[str, Rubric], text: str, expected: int | str) -> None:
    said = parse_reply(doubtful["rate10"], text, {})
    assert (said.scores["overall_score"] if isinstance(said, ReadScores) else said.reason.value) == expected


def test_a_note_keeps_its_formulas_and_a_span_its_place(doubtful: dict[str, Rubric]) -> None:
    text = "Two of \\[\\text{cats: } 3\\] are there.\n\\textbf{Rating:} 7"
    said = parse_reply(doubtful["rate10"], text, {})
    assert isinstance(said, ReadScores)
    (note,), ((start, end),) = said.notes.values(), said.spans.values()
    assert note.startswith("Two of \\[\\text{cats: } 3\\] are there.")
    assert text[start:end] == "7"


def test_in_an_object_a_backslash_escapes(doubtful: dict[str, Rubric]) -> None:
    reply = json.dumps({"reason": "\\text{score: } 3, \\boxed{score: 4}", "score": 7})
    assert parse_reply(doubtful["json10"], reply, {}).as_dict() == {"scores": {"overall_score": 7}}
