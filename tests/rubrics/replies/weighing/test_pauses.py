"""Answers that are words need a pause behind them, as numbers do: "No image" begins with an answer and gives none."""

from pathlib import Path

import pytest

from rubrics.loading import load_rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores
from tests.rubrics.replies.test_words import HEAD, YES_NO

DUEL = 'answers = { A = 1, B = 0, tie = 0.5 }\n[[dimensions]]\nkey = "answer"'
VERDICT = 'answers = { good = 1, bad = 0, unsure = 0.5 }\n[[dimensions]]\nkey = "answer"'
CHECKLIST = 'answers = { yes = 1, no = 0 }\nnot_applicable = ["N/A"]\n' + "".join(
    f'[[dimensions]]\nkey = "{key}"\nlabels = ["{label}"]\n' for key, label in (("seen", "Q1"), ("answer", "Q2"))
)

YES_NO_REPLIES: list[tuple[str, float | str]] = [
    ("No there is no cat", 0),
    ("No the cat is missing", 0),
    ("No it is not", 0),
    ("No only a mug", 0),
    ("No they are not", 0),
    ("No because the cat is missing", 0),
    ("No, there is no cat.", 0),
    ("No - there is no cat", 0),
    ("No (the cat is missing)", 0),
    ("No. The cat is missing.", 0),
    ("No\nThe cat is missing.", 0),
    ("**No** the cat is missing", 0),
    ("No; it lacks", 0),
    ("Yes the cat is there", 1),
    ("Yes, it is", 1),
    ("Yes it is", 1),
    ("Yes indeed.", 1),
    ("Yes clearly visible", 1),
    ("Yes all are there", 1),
    ("Yes I see it", 1),
    ("Yes it's there", 1),
    ("Yes.\nNo further remarks.", 1),
    ("Yes: the cat is there.", 1),
    ("✅ Yes", 1),
    ("❌ No", 0),
    ("Is there a cup? Yes.", 1),
    ("Is there a cup? No, it is a glass.", 0),
    ("No 猫がいません", 0),
    ("Yes, no doubt about it", 1),
    ("No image.", "missing_input"),
    ("No image", "missing_input"),
    ("No picture", "missing_input"),
    ("No input", "missing_input"),
    ("No (no image)", "missing_input"),
    ("No - no image", "missing_input"),
    ("No access to images, sorry.", "missing_input"),
    ("N/A - no image", "missing_input"),
    ("No elements are missing.", "not_found"),
    ("No issues: everything is there.", "not_found"),
    ("No doubt about it: all is there.", "not_found"),
    ("No problems at all.", "not_found"),
    ("No visible artifacts", "not_found"),
    ("No missing elements, everything is shown as asked.", "not_found"),
    ("no picnic bench", "not_found"),
    ("No one is there", "not_found"),
    ("No longer", "not_found"),
    ("Yes if seen", "not_found"),
    ("Answer: yes would be too generous", "not_found"),
    ("Answer: no artifacts", "not_found"),
    ("Answer: no problem", "not_found"),
    ("Answer: no image", "missing_input"),
    ("Yes.\nNo.", "ambiguous"),
    ("Yes\nNo, wait", "ambiguous"),
    ("Is there a cup? No cup is there.", "not_found"),
    ("No people are shown, so N/A", "not_found"),
    ("No. N/A", "ambiguous"),
    ("No, so N/A here.", "ambiguous"),
    ("N/A", "not_applicable"),
    ("N/A. No people.", "not_applicable"),
    ("No cups", "not_found"),
    ("No cup is visible", "not_found"),
]
DUEL_REPLIES: list[tuple[str, float | str]] = [
    ("A: blurry\nB: sharp\nAnswer: B", 0),
    ("A", 1),
    ("(B)", 0),
    ("B) sharper", 0),
    ("B. It is sharper.", 0),
    ("B - sharper", 0),
    ("Answer: A: it is sharper", 1),
    ("Answer: B", 0),
    ("tie", 0.5),
    ("Tie. Both are fine.", 0.5),
    ("Tie because both are fine", 0.5),
    ("B, since it is sharp", 0),
    ("**B**", 0),
    ("A: 7, B: 8", "not_found"),
    ("A: blurry, B: sharp", "not_found"),
    ("A: six fingers on the left hand, so it loses.", "not_found"),
    ("(A) is blurry, (B) is sharp", "not_found"),
    ("A - blurry. B - sharp.", "not_found"),
    ("A) blurry B) sharp", "not_found"),
]
VERDICT_REPLIES: list[tuple[str, float | str]] = [
    ("Good.", 1),
    ("good, it is sharp", 1),
    ("Bad because the hand is wrong", 0),
    ("Answer: bad. The hand is wrong.", 0),
    ("unsure", 0.5),
    ("Good - all is there", 1),
    ("Good grief, this is awful.", "not_found"),
    ("Bad hands, but otherwise publishable.", "not_found"),
    ("Answer: good enough? No.", "not_found"),
    ("Unsure whether an image was attached.", "not_found"),
    ("Bad gateway", "not_found"),
    ("Good: the light. Bad: the hands.", "not_found"),
    ("Good aspects: light and mood.", "not_found"),
]
CHECKLIST_REPLIES: list[tuple[str, float | str]] = [
    ("Q1: yes\nQ2: no", 0),
    ("Q1: yes\nQ2: no, artifacts", 0),
    ("Q1: yes\nQ2: **no** (there are artifacts)", 0),
    ("Q1: yes\nQ2: ✅ Yes", 1),
    ("Q1: yes\nQ2: Is it free of artifacts? Yes", 1),
    ("Q1: yes\nQ2: Is it free of artifacts? No", 0),
    ("Q1: yes\nQ2: N/A", "not_applicable"),
    ("Q1: yes\nQ2: N/A, no text", "not_applicable"),
    ("Q1: yes\nQ2: no artifacts", "wrong_type"),
    ("Q1: yes\nQ2: no visible artifacts", "wrong_type"),
    ("Q1: yes\nQ2: no problem, it is visible", "wrong_type"),
    ("Q1: yes\nQ2: no artifacts, so yes", "wrong_type"),
    ("Q1: yes\nQ2: no people, N/A", "wrong_type"),
    ("Q1: yes\nQ2: no, N/A", "ambiguous"),
    ("Q1: no image\nQ2: no image", "missing_input"),
]
EVERY = [
    (form, answers, text, expected)
    for form, answers, rows in (
        ("answer", YES_NO, YES_NO_REPLIES),
        ("answer", DUEL, DUEL_REPLIES),
        ("answer", VERDICT, VERDICT_REPLIES),
        ("label", CHECKLIST, CHECKLIST_REPLIES),
    )
    for text, expected in rows
]


@pytest.mark.parametrize(("form", "answers", "text", "expected"), EVERY, ids=[repr(text) for _, _, text, _ in EVERY])
def test_an_answer_needs_a_pause(tmp_path: Path, form: str, answers: str, text: str, expected: float | str) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "rubric.toml").write_text(HEAD.format(id="words", reply=form, more=answers))
    (tmp_path / "words" / "prompt.txt").write_text("{prompt}: Answer? Q1, Q2")
    found = parse_reply(load_rubric(tmp_path / "words"), text, {})
    if isinstance(found, ReadScores):
        assert found.scores.get("answer", "not_applicable") == expected
    else:
        assert found.reason.value == expected


HEDGED = """\
Yes, partially.
Yes partially
Yes. Partially.
Yes (partially)
Yes - mostly.
Yes, but only partially
Yes, but not fully.
Yes, to some extent.
Yes, if you count the shadow
Yes (if the cup counts)
Yes, assuming the cup is red
Yes, except for the colour.
Yes, except for the colour, which is wrong. So no.
Answer: Yes, mostly
Yes, partially. Actually, no.""".splitlines()
WHOLE = """\
Yes, the cup is mostly visible
Yes, mostly visible
Yes, partially visible behind the vase.
Yes, but the colour is pale
Yes, almost all cups are red
Yes, if you look closely
Yes, if a little pale
Yes, if I had to choose
Yes, in part because of the light
Yes, only a mug.
Yes, the cup is red, so no doubt.
Yes. So yes.""".splitlines()


@pytest.mark.parametrize(("reply", "said"), [(one, "ambiguous") for one in HEDGED] + [(one, 1) for one in WHOLE])
def test_a_hedge_of_the_yes_makes_it_none_and_one_of_what_is_seen_does_not(tmp_path: Path, reply: str, said: object) -> None:
    assert answer_of(tmp_path, YES_NO, reply) == said


@pytest.mark.parametrize("reply", ["No, not entirely", "No, only partially", "No, but close", "No, mostly not"])
def test_a_hedged_no_is_one(tmp_path: Path, reply: str) -> None:
    assert answer_of(tmp_path, YES_NO, reply) == 0


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("B, but could be tie", "ambiguous"),
        ("B, leaning tie", "ambiguous"),
        ("B (could be A)", "ambiguous"),
        ("B, maybe A", "ambiguous"),
        ("B, but the hat could be better", 0),
        ("B. The hat is off, so B.", 0),
        ("B, if forced to choose", 0),
        ("B, close to A", 0),
    ],
)
def test_another_answer_that_it_could_be(tmp_path: Path, reply: str, said: object) -> None:
    assert answer_of(tmp_path, DUEL, reply) == said


def answer_of(folder: Path, answers: str, reply: str) -> object:
    (folder / "words").mkdir()
    (folder / "words" / "rubric.toml").write_text(HEAD.format(id="words", reply="answer", more=answers))
    (folder / "words" / "prompt.txt").write_text("{prompt}: which?")
    found = parse_reply(load_rubric(folder / "words"), reply, {})
    return found.scores.get("answer") if isinstance(found, ReadScores) else found.reason.value
