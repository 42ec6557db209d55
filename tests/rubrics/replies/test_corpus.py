"""The corpus of replies against what a careful person reads: no number where there is none, and hardly one lost; and spans."""

import html
import json
import re
from collections import Counter
from collections.abc import Callable
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


ALIKE: dict[str, Callable[[str], str]] = {
    "lines that end in CR LF": lambda text: text.replace("\n", "\r\n"),
    "lines that end in CR": lambda text: text.replace("\n", "\r"),
    "line separators": lambda text: text.replace("\n", "\u2028"),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "narrow no-break spaces": lambda text: text.replace(" ", "\u202f"),
    "blanks at the lines' ends": lambda text: text.replace("\n", "  \n") + " ",
    "indented lines": lambda text: "  " + text.replace("\n", "\n  "),
    "another apostrophe": lambda text: text.replace("'", "ʼ"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "an object on many lines": lambda text: on_many_lines(text) or text,
}
NO_MORE_SAID: dict[str, Callable[[str], str]] = {
    "two blanks for one": lambda text: text.replace(" ", "  "),
    "bold numbers": lambda text: text if "{" in text else re.sub(r"(?<![\w.*/-])(\d+)(?![\w.*/%-])", r"**\1**", text),
    "numbers as code": lambda text: text if "{" in text else re.sub(r"(?<![\w.*/-])(\d+)(?![\w.*/%-])", r"`\1`", text),
    "a first word in italics": lambda text: re.sub(r"(?m)^([A-Z][a-z]+)( |,)", r"*\1*\2", text),
    "formulas": lambda text: re.sub(r"(?m)(?<=: )(\d)$", r"$\1$", text),
    "pictograms": lambda text: text.replace(". ", ". 🙂 "),
    "three dots": lambda text: text.replace(". ", "... "),
    "an ellipsis": lambda text: re.sub(r"\. (?=[A-Z])", "… ", text),
    "escaped line ends": lambda text: re.sub(r"\. (?=[A-Z])", ".\\\\n", text) if text[:1] == "{" else text,
    "items of a list": lambda text: text if "{" in text else "- " + text.replace("\n", "\n- "),
    "curly quotes": lambda text: re.sub(r'"([^"]*)"', r"“\1”", text),
    "decimals": lambda text: re.sub(r"(?<![\w.*/,-])(\d+)(?![\w.*/%,-])", r"\1.0", text),
    "soft hyphens": lambda text: re.sub("([a-z]{4})([a-z]{4})", "\\1\u00ad\\2", text),
    "a line of quotation each": lambda text: "> " + text.replace("\n", "\n> "),
    "entities of HTML": lambda text: (text if "{" in text else html.escape(text)).replace("'", "&#39;").replace(". ", ".&nbsp;"),
    "thoughts before it": lambda text: f"<think>\nLet me look.\n</think>\n{text}",
}


def on_many_lines(text: str) -> str | None:
    try:
        return json.dumps(json.loads(text), indent=4, ensure_ascii=False)
    except ValueError:
        return None


def changed(name: str, change: Callable[[str], str]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each line of a corpus that a change changes, and what becomes of it."""
    both = [(line, line | {"raw": change(line["raw"].replace("\r\n", "\n"))}) for line in lines(name) if line["raw"]]
    assert len(both) >= 100
    return [(line, other) for line, other in both if other["raw"] != line["raw"]]


@pytest.mark.parametrize("name", ["corpus.jsonl", "adversarial.jsonl"])
@pytest.mark.parametrize("change", ALIKE.values(), ids=ALIKE)
def test_other_blanks_are_read_alike(shipped: dict[str, Rubric], name: str, change: Callable[[str], str]) -> None:
    """`Score: 4. Actually, make that a 3` was 4 where its blanks do not break, and where its lines end in CR LF."""
    both = changed(name, change)
    assert {other["raw"]: read(shipped, other) for _, other in both} == {
        other["raw"]: read(shipped, line) for line, other in both
    }


@pytest.mark.parametrize("change", NO_MORE_SAID.values(), ids=NO_MORE_SAID)
def test_another_look_gives_no_number_to_an_adversarial_reply(shipped: dict[str, Rubric], change: Callable[[str], str]) -> None:
    given = {
        other["raw"]: read(shipped, other)
        for line, other in changed("adversarial.jsonl", change)
        if isinstance(line["careful"], str)
    }
    assert len(given) >= 60
    assert {raw: said for raw, said in given.items() if isinstance(said, dict)} == {}


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
        ("caption", r'"{\"reason\": \"nice \ud83d\ude00\uD83D\uDE00 cat\", \"score\": 3}"', (64, 65)),
        ("caption", "<score>3</score>", (7, 8)),
    ],
)
def test_a_span_is_that_of_the_answer(shipped: dict[str, Rubric], rubric_id: str, raw: str, span: tuple[int, int]) -> None:
    """Not of the same number in a text, in thinking, or under another thing's key."""
    found = parse_reply(shipped[rubric_id], raw, {})
    assert isinstance(found, ReadScores)
    assert (found.spans["score"], raw[slice(*found.spans["score"])]) == (span, "3" if rubric_id == "caption" else "4")
