"""Replies in the two text forms, the labelled line and the bracket line: what each says, or the one reason it says nothing."""

import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from rubrics.model import ReplyFormat, Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

LENGTH = {"finish_reason": "length"}

ALIGNMENT: list[tuple[str, int | str]] = [
    ("Reasoning: All is there.\nScore: 4", 4),
    ("Reasoning: All is there. Score: 4", 4),
    ("Reasoning: it lacks the black cat Score: 3", 3),
    ("Score:4", 4),
    ("Score : 4", 4),
    ("Score：4", 4),
    ("Score = 4", 4),
    ("SCORE: 4", 4),
    ("**Score:** 4", 4),
    ("**Score**: 4", 4),
    ("**Score: 4**", 4),
    ("_Score:_ 4", 4),
    ("`Score: 4`", 4),
    ('"Score: 4"', 4),
    ("<answer>Score: 4</answer>", 4),
    ("<b>Score:</b> 4", 4),
    ("<b>Score</b>: <i>4</i>", 4),
    ('Score: "4"', 4),
    ("> Score: 4", 4),
    ("- Score: 4", 4),
    ("1. Score: 4", 4),
    ("### Score: 4", 4),
    ("Score: [4]", 4),
    ("Score: <4>", 4),
    ("Score: (4)", 4),
    ("Score: $4$", 4),
    ("Score: <strong>4</strong>", 4),
    ("<s>Score: 4</s>", 4),
    ("Score: 4</s>", 4),
    ("Score: <del>4</del>", "wrong_type"),
    ("Score: <s>4</s>", "wrong_type"),
    ("Score:<S>4</S>", "wrong_type"),
    ("Score: <strike>4</strike>\n", "wrong_type"),
    ("Score: <del>4</del> 3", "wrong_type"),
    ("<del>Score: 4</del>", "wrong_type"),
    ("Score: 4.", 4),
    ("Score: 4.0", 4),
    ("Score: 4\r\n", 4),
    ("Score: 4\u2028", 4),
    ("Score:\n4", 4),
    ("Score:\n\n**4**\n", 4),
    ("Score: 4/5", 4),
    ("Score: **4**/5", 4),
    ("Score: 4 out of 5", 4),
    ("Score: 1 out of 5", 1),
    ("Score: 4 on a scale of 1-5", 4),
    ("Score (1-5): 4", 4),
    ("Score: 4 points", 4),
    ("Score: 4/5 stars", 4),
    ("Score: 4 (good match)", 4),
    ("Score: 4 - good match", 4),
    ("Score: 4. The image is good.", 4),
    ("Score: 4 because both cubes are there", 4),
    ("Score: 4 Reasoning: 3 cats are there", 4),
    ("Score: 4 ✅", 4),
    ("Score: 4\nScore: 4", 4),
    ("Score:\nScore: 4", 4),
    ("Score: n\nScore: 4", 4),
    ("Score: 4\nFinal Score: 4", 4),
    ("Realism Score: 2\nScore: 4", 4),
    ("Score: 4\nConfidence score: 2", 4),
    ("I would give a score of 3, a low score.\nScore: 4", "ambiguous"),
    ("With a second dog I would have given a 5.\nScore: 4", 4),
    ("Score: 4\n\nThe image shows 3 dogs.", 4),
    ("Score: 4\nScore: 3", "ambiguous"),
    ("User prompt: a\nReasoning: b\nScore: 4\n\nUser prompt: c\nReasoning: d\nScore: 3", "ambiguous"),
    ("Score: 4\nFinal Score: 3", "ambiguous"),
    ("Score: 4, final score: 3", "ambiguous"),
    ("Score: 4\nScore: n/a", "ambiguous"),
    ("Score: 3-4", "ambiguous"),
    ("Score: 3–4", "ambiguous"),
    ("Score: 3 to 4", "ambiguous"),
    ("Score: 3 or 4", "ambiguous"),
    ("Score: 4, or 3", "ambiguous"),
    ("Score: between 3 and 4", "ambiguous"),
    ("Score: 5 → 4", "ambiguous"),
    ("Score: 4. Actually, three", "ambiguous"),
    ("Score: 4. The image shows 3 dogs", "ambiguous"),
    ("Score: 4 5", "ambiguous"),
    ("Score: 4 and a half", "ambiguous"),
    ("Score: ~4", "ambiguous"),
    ("Score: 4+", "ambiguous"),
    ("Score: >3", "ambiguous"),
    ("Score: at least 4", "ambiguous"),
    ("Score: 8/10", "scale_mismatch"),
    ("Score: 4/10", "scale_mismatch"),
    ("Score: 3/4", "scale_mismatch"),
    ("Score: 4 out of 10", "scale_mismatch"),
    ("Score (1-10): 4", "scale_mismatch"),
    ("Score: 4 (scale 1-10)", "scale_mismatch"),
    ("Score: 80%", "scale_mismatch"),
    ("Score: 4 stars", "scale_mismatch"),
    ("Score: 0", "out_of_range"),
    ("Score: 6", "out_of_range"),
    ("Score: -1", "out_of_range"),
    ("Score: 45", "out_of_range"),
    ("Score: 1e9", "out_of_range"),
    ("Score: 3.5", "non_integer"),
    ("Score: 3.5/5", "non_integer"),
    ("Score: 5.5", "non_integer"),
    ("Score: four", "wrong_type"),
    ("Score: four (4)", 4),
    ("Score: FOUR (4)", 4),
    ("Score: \u017feven (7)", "out_of_range"),  # a long s: to re.IGNORECASE it is one, to lower() it is not
    ("Score: 4 (f\u0131ve)", "ambiguous"),  # an i without its dot
    ("Score: 4 (f\u0130ve)", "ambiguous"),
    ("Score: 5 (f\u0131ve)", 5),
    ("Score: **4** (five)", "ambiguous"),
    ("Score: `4` (**five**)", "ambiguous"),
    ("Score: **5** (five)", 5),
    ("Score: N/A", "wrong_type"),
    ("Score: null", "wrong_type"),
    ("Score: IV", "wrong_type"),
    ("Score: ?", "wrong_type"),
    ("Score: ★★★★", "wrong_type"),
    ("Score: ٤", "wrong_type"),
    ("Score: ４", "wrong_type"),
    ("Score: 4ish", "wrong_type"),
    ("Score: 4 apples", "wrong_type"),
    ("Score: 4 of 5 elements", "wrong_type"),
    ("Score: 4Reasoning", "wrong_type"),
    ("Score:\nReasoning: x", "wrong_type"),
    ("Score: 4,5", "malformed"),
    ("Score: 4..5", "malformed"),
    ("Score: 2½", "malformed"),
    ("Score: n", "template_echo"),
    ("Score: <1-5>", "template_echo"),
    ("Score: 1-5", "template_echo"),
    ("Score: X/5", "template_echo"),
    ("Score: ___", "template_echo"),
    ("Score: ...", "template_echo"),
    ("Score: [your score]", "template_echo"),
    ("Score: 1, 2, 3, 4, 5", "template_echo"),
    ("Score:", "truncated"),
    ("Reasoning: x\n**Score:** ", "truncated"),
    ("4", "not_found"),
    ("Score 4", "not_found"),
    ("Score - 4", "not_found"),
    ("The score is 4", 4),
    ("a score of 4", "not_found"),
    ("Rating: 4", "not_found"),
    ("Scores: 4", "not_found"),
    ("Final Score: 4", 4),
    ("I give it a score: 4", "not_found"),
    ("Sub-Score: 4", "not_found"),
    ("subscore: 4", "not_found"),
    ('{"score": 4}', "not_found"),
    ('{"Reasoning": "x", "Score": 4}', "not_found"),
    ("\u0405core: 4", "not_found"),  # a Cyrillic letter
]  # fmt: skip

FORM = "[Text Response Quality: 4; Image Response Quality: 3; Image Aesthetic Quality: 5; Text-Image Synergy: 0]"
UNFILLED = (
    "[Text Response Quality: <0-5>; Image Response Quality: <0-5>; Image Aesthetic Quality: <0-5>; Text-Image Synergy: <0-5>]"
)
READ = [4, 3, 5, 0]

INTERLEAVED: list[tuple[str, list[int] | str]] = [
    (FORM, READ),
    (f"**{FORM}**", READ),
    (f"`{FORM}`", READ),
    (f"```\n{FORM}\n```", READ),
    (f"Here it is:\n\n{FORM}\n\nThe 3 cats are fine.", READ),
    (f"[{FORM}]", READ),
    (FORM.replace(";", ","), READ),
    (FORM.replace(";", " |"), READ),
    (FORM.replace(";", ""), READ),
    (FORM.replace("; ", ";\n"), READ),
    (FORM.replace("; ", "\n"), READ),
    (FORM.replace("; ", "]["), READ),
    (FORM.replace(": ", "："), READ),
    (FORM.replace("[", "【").replace("]", "】"), READ),
    (FORM.upper(), READ),
    (FORM.replace("-", "–"), READ),
    (FORM.replace("Text-Image Synergy", "text_image_synergy"), READ),
    (FORM.replace("Image Response", "Image Content"), READ),
    (FORM.replace(": 3", ": **3**"), READ),
    (FORM.replace(": 3", ": <3>"), READ),
    (FORM.replace(": 3", ": [3]"), READ),
    (FORM.replace(": 3", ": 3/5"), READ),
    (FORM.replace(": 3", ": 3 (fair)"), READ),
    (FORM[1:-1], READ),
    (FORM[1:-1].replace("; ", "\n- "), READ),
    ("[Text-Image Synergy: 0; " + FORM[1:].replace("; Text-Image Synergy: 0", ""), READ),
    (f"{FORM}\n{FORM}", READ),
    (f"{UNFILLED}\n{FORM}", READ),
    (f"{FORM[:-1]}; Image Content Quality: 3]", READ),
    (f"**Text Response Quality**: The text is right in 3 of 4 points.\n{FORM}", READ),
    (f"Text Response Quality: 4, good\n{FORM}", READ),
    (f"Text Response Qual\u0131ty: 4\n{FORM}", READ),  # a Turkish letter, which no label has and re takes for an i
    (f"{FORM[:-1]}; Image Content Quality: 2]", "ambiguous"),
    (f"{FORM}\n{FORM.replace('5', '4')}", "ambiguous"),
    (f"Text Response Quality: 5\n{FORM}", "ambiguous"),
    (FORM.replace(": 3", ": 3-4"), "ambiguous"),
    (FORM.replace(": 3", ": 3/10"), "scale_mismatch"),
    (FORM.replace(": 3", ": 60%"), "scale_mismatch"),
    (FORM.replace(": 3", ": 6"), "out_of_range"),
    (FORM.replace(": 3", ": -3"), "out_of_range"),
    (FORM.replace(": 3", ": 3.5"), "non_integer"),
    (FORM.replace(": 3", ": null"), "wrong_type"),
    (FORM.replace(": 3", ": "), "wrong_type"),
    (FORM.replace(": 3", ": 3,5"), "malformed"),
    (UNFILLED, "template_echo"),
    (UNFILLED.replace("<0-5>", ""), "template_echo"),
    (UNFILLED[1:-1], "template_echo"),
    (FORM.replace("; Image Aesthetic Quality: 5", ""), "missing_key"),
    (FORM.replace("Aesthetic", "Beauty"), "missing_key"),
    ("[Text Response Quality: 4]", "missing_key"),
    (FORM[:-1], "truncated"),
    (FORM[:-4], "truncated"),
    ("[Text Response Quality:", "truncated"),
    ("[4; 3; 5; 0]", "not_found"),
    ("The score of [Text Response Quality, Text-Image Synergy] must be 0.", "not_found"),
    ("Text Response Quality: good, as was asked.", "not_found"),
    ('{"Text Response Quality": 4}', "not_found"),
    ("[]", "not_found"),
    # several problems: the earlier in the table of reasons
    (FORM.replace(": 3", ": 6").replace(": 5", ": high"), "wrong_type"),
    (FORM.replace(": 3", ": 6").replace(": 5", ": 4.5"), "non_integer"),
]  # fmt: skip


def read(rubric: Rubric, text: str, context: dict[str, Any]) -> Any:
    found = parse_reply(rubric, text, context)
    return list(found.scores.values()) if isinstance(found, ReadScores) else found.reason.value


@pytest.mark.parametrize(("text", "expected"), ALIGNMENT, ids=[repr(text) for text, _ in ALIGNMENT])
def test_labelled_line(shipped: dict[str, Rubric], text: str, expected: int | str) -> None:
    assert read(shipped["alignment"], text, {}) == (expected if isinstance(expected, str) else [expected])


@pytest.mark.parametrize(
    ("text", "expected"), INTERLEAVED, ids=[f"{n}-{text[-40:]!r}" for n, (text, _) in enumerate(INTERLEAVED)]
)
def test_bracket_line(shipped: dict[str, Rubric], text: str, expected: list[int] | str) -> None:
    assert read(shipped["interleaved"], text, {}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Score: 4", "truncated"),  # 4.5, perhaps
        ("Score: 4.", "truncated"),
        ("Score: 4/", "truncated"),
        ("Score: 4/5", "truncated"),  # 4/50, perhaps
        ("Score: 4 ", "truncated"),
        ("Score: 4 out of", "truncated"),
        ("Score: ", "truncated"),
        ("Reasoning: The", "truncated"),
        ("Score: 4\nReasoning: again\nScore: ", "truncated"),
        ("Score: 4\n", [4]),
        ("**Score: 4**", [4]),
        ("Score: 4. The", [4]),
        ("Score: 4\nThe image", [4]),
    ],
)
def test_length_stops_a_labelled_number(shipped: dict[str, Rubric], text: str, expected: Any) -> None:
    assert read(shipped["alignment"], text, LENGTH) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [(FORM, READ), (FORM + "\nAnd", READ), (FORM[:-1], "truncated"), (FORM[1:-1], "truncated")]
)
def test_length_stops_a_bracket_line(shipped: dict[str, Rubric], text: str, expected: Any) -> None:
    assert read(shipped["interleaved"], text, LENGTH) == expected


def test_reasoning_is_kept(shipped: dict[str, Rubric]) -> None:
    found = parse_reply(shipped["alignment"], "**Reasoning:** Both are there.\n\n**Score:** 4", {})
    assert isinstance(found, ReadScores)
    assert found.notes == {"score": "Reasoning:** Both are there."}


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("Score – 4", {}, [4]),
        ("**Score** — **4**\n", {}, [4]),
        ("Reasoning: both are there.\nScore – 4\n", {}, [4]),
        ("Score - 4", {}, "not_found"),  # a hyphen is a minus as well
        ("Score –4", {}, "not_found"),
        ("Score– 4", {}, "not_found"),
        ("Score – 4 – 5", {}, "not_found"),
        ("Score – 4/5", {}, "not_found"),
        ("Score – 4, or so", {}, "not_found"),
        ("Score – 4\nScore – 5", {}, "ambiguous"),
        ("Score – 9", {}, "out_of_range"),
        ("Score – 4.5", {}, "non_integer"),
        ("Score – 4", LENGTH, "truncated"),  # 4.5, perhaps
    ],
    ids=[
        "en dash", "em dash", "after a reason", "hyphen", "a sign", "no blank before", "a range", "of five", "words behind",
        "twice", "off the scale", "a fraction", "cut",
    ],
)  # fmt: skip
def test_a_dash_between_blanks_separates_where_nothing_but_the_number_follows(
    shipped: dict[str, Rubric], text: str, context: dict[str, Any], expected: Any
) -> None:
    assert read(shipped["alignment"], text, context) == expected


def labelled(rubric: Rubric, form: ReplyFormat, *labels: str) -> Rubric:
    """The rubric of one dimension with other labels; with several, each of a dimension of its own."""
    (variant,) = rubric.variants.values()
    named = [replace(variant.dimensions[0], key=f"d{place}", labels=(label,)) for place, label in enumerate(labels)]
    return replace(rubric, reply_format=form, variants={None: replace(variant, dimensions=tuple(named))})


@pytest.mark.parametrize(
    "label",
    [
        pytest.param("अंक", id="Hindi"),
        pytest.param("स्कोर", id="Hindi, a virama"),
        pytest.param("স্কোর", id="Bengali"),
        pytest.param("மதிப்பெண்", id="Tamil"),
        pytest.param("คุณภาพ", id="Thai"),
        pytest.param("İçerik", id="Turkish, a dotted capital"),
        pytest.param("Qualité", id="French"),
        pytest.param("Điểm", id="Vietnamese"),
        pytest.param("النَّتيجة", id="Arabic with vowels"),
        pytest.param("품질", id="Korean"),
    ],
)
@pytest.mark.parametrize("of_label", ["NFC", "NFD"])
@pytest.mark.parametrize("of_reply", ["NFC", "NFD"])
def test_a_label_in_any_script_is_found(shipped: dict[str, Rubric], label: str, of_label: Any, of_reply: Any) -> None:
    said, named = unicodedata.normalize(of_reply, label), unicodedata.normalize(of_label, label)
    for form, reply in (
        (ReplyFormat.LABEL, f"{said}: 4"),
        (ReplyFormat.LABEL, f"Reasoning: fine.\n**{said}:** 4"),
        (ReplyFormat.BRACKET, f"[{said}: 4]"),
        (ReplyFormat.JSON, f'{{"{said}": 4}}'),
        (ReplyFormat.JSON, f"Here:\n{{'{said}': 4,}}"),
    ):
        found = parse_reply(labelled(shipped["alignment"], form, named), reply, {})
        assert found.as_dict() == {"scores": {"d0": 4}}, (form, reply)


@pytest.mark.parametrize(
    ("labels", "reply", "expected"),
    [
        pytest.param(("किताब", "कुताब"), "किताब: 4\nकुताब: 2", {"scores": {"d0": 4, "d1": 2}}, id="labels that differ in a vowel"),
        pytest.param(("किताब",), "कुताब: 4", {"error": "not_found"}, id="another vowel"),
        pytest.param(("ताब",), "किताब: 4", {"error": "not_found"}, id="the end of another word"),
        pytest.param(("कित",), "किता: 4", {"error": "not_found"}, id="the beginning of another word"),
        pytest.param(("Score",), "Score\u0301: 4", {"error": "not_found"}, id="another accent"),
        pytest.param(("Quality",), "Qualİty: 4", {"error": "not_found"}, id="a dotted capital is no i"),
    ],
)
def test_a_label_of_other_letters_is_another(
    shipped: dict[str, Rubric], labels: tuple[str, ...], reply: str, expected: dict[str, Any]
) -> None:
    assert parse_reply(labelled(shipped["alignment"], ReplyFormat.LABEL, *labels), reply, {}).as_dict() == expected
