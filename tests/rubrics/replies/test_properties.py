"""Properties of reading beyond test_laws.py: every repair that docs/replies.md allows, alone and together, and time."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import ReplyFormat, Rubric, Variant
from rubrics.replies.read import parse_reply
from schemas.input_budget import REPLY_TEXT_BYTES
from schemas.records import ReadScores
from tests.support.cpu import takes_at_most

IDS = ("interleaved", "image_aspects", "caption", "composition", "alignment")
RUBRICS = {rubric_id: load_rubric(SHIPPED / rubric_id) for rubric_id in IDS}
LAW = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A quadratic reader takes thousands of them, ours a few.
N_YARDSTICKS = 15

Scores = Mapping[str, float]
JSON_FORMS: dict[str, Callable[[Scores], str]] = {
    "as asked": json.dumps,
    "single quotes": lambda says: "{" + ", ".join(f"'{label}': {score}" for label, score in says.items()) + "}",
    "typographic quotes": lambda says: "{" + ", ".join(f"“{label}”: “{score}”" for label, score in says.items()) + "}",
    "no quotes": lambda says: "{" + ", ".join(f"{label}: {score}" for label, score in says.items()) + "}",
    "semicolons": lambda says: "{" + "; ".join(f'"{label}": {score}' for label, score in says.items()) + "}",
    "equals signs": lambda says: "{" + ", ".join(f'"{label}" = {score}' for label, score in says.items()) + "}",
    "no comma before a quoted key": lambda says: "{" + "\n".join(f'"{label}": "{score}"' for label, score in says.items()) + "}",
    "trailing comma": lambda says: "{" + "".join(f'"{label}": {score},' for label, score in says.items()) + "}",
    "comments": lambda says: "{ // so\n" + ",".join(f'/* a */ "{label}": {score} # b\n' for label, score in says.items()) + "}",
    "bold": lambda says: "{" + ", ".join(f'**"{label}"**: **{score}**' for label, score in says.items()) + "}",
    "an object for each": lambda says: "\n".join(f'{{"{label}": {score}}}' for label, score in says.items()),
    "numbers in objects": lambda says: json.dumps({label: {"score": score, "why": "x"} for label, score in says.items()}),
    "numbers with their scale in words": lambda says: json.dumps({label: f" {score} points " for label, score in says.items()}),
    "a list": lambda says: json.dumps([{label: score} for label, score in says.items()]),
    "a JSON string": lambda says: json.dumps(json.dumps(says)),
    "doubled braces": lambda says: "{" + json.dumps(says) + "}",
    "Python's words": lambda says: "{'ok': True, 'note': None, " + str(dict(says))[1:],
    "NaN elsewhere": lambda says: '{"variance": NaN, ' + json.dumps(says)[1:],
    "a raw line break in a text": lambda says: '{"reason": "first\nsecond", ' + json.dumps(says)[1:],
    "unescaped quotes in a text": lambda says: '{"reason": "a "red" cube", ' + json.dumps(says)[1:],
    "said twice": lambda says: f"{json.dumps(says)}\nAgain: {json.dumps(says)}",
}
BRACKET_FORMS: dict[str, Callable[[Scores], str]] = {
    "as asked": lambda says: "[" + "; ".join(f"{label}: {score}" for label, score in says.items()) + "]",
    "commas": lambda says: "[" + ", ".join(f"{label}: {score}" for label, score in says.items()) + "]",
    "bars": lambda says: "[" + " | ".join(f"{label}: {score}" for label, score in says.items()) + "]",
    "line breaks": lambda says: "[\n" + "\n".join(f"{label}: {score}" for label, score in says.items()) + "\n]",
    "a bracket for each": lambda says: "\n".join(f"[{label}: {score}]" for label, score in says.items()),
    "no bracket": lambda says: "\n".join(f"- **{label}**: {score}" for label, score in says.items()),
    "bold labels": lambda says: "[" + "; ".join(f"**{label}:** {score}" for label, score in says.items()) + "]",
    "full-width": lambda says: "【" + "; ".join(f"{label}：{score}" for label, score in says.items()) + "】",
}
LABEL_FORMS: dict[str, Callable[[Scores], str]] = {
    "as asked": lambda says: "Reasoning: All is there.\n" + "\n".join(f"{label}: {score}" for label, score in says.items()),
    "alone": lambda says: "\n".join(f"{label}: {score}" for label, score in says.items()),
    "on the next line": lambda says: "\n".join(f"**{label}:**\n{score}" for label, score in says.items()),
    "after a sentence": lambda says: "It is so. " + " ".join(f"{label}: {score}" for label, score in says.items()),
    "with words behind": lambda says: "\n".join(f"{label}: {score} - all is there" for label, score in says.items()),
    "heading": lambda says: "\n".join(f"### {label}: **{score}**" for label, score in says.items()),
}
FORMS = {ReplyFormat.JSON: JSON_FORMS, ReplyFormat.BRACKET: BRACKET_FORMS, ReplyFormat.LABEL: LABEL_FORMS}
AROUND: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: text,
    "a fence": lambda text: f"```json\n{text}\n```",
    "a tag": lambda text: f"<answer>{text}</answer>",
    "prose": lambda text: f"Here is my judgement:\n\n{text}\n\nTell me if you need more.",
    "thinking": lambda text: f"<think>The image could be better.</think>\n{text}",
    "white space": lambda text: f"\ufeff\u200b\n\t {text} \r\n\u3000",
}
CASES = [(rubric_id, form) for rubric_id in IDS for form in FORMS[RUBRICS[rubric_id].reply_format]]


def variant_of(rubric: Rubric) -> Variant:
    return next(iter(rubric.variants.values()))


@st.composite
def scores_of(draw: st.DrawFn, rubric: Rubric) -> dict[str, float]:
    """A number on the scale for each label that the prompt uses."""
    found: dict[str, float] = {}
    for dimension in variant_of(rubric).dimensions:
        whole = st.integers(int(dimension.minimum), int(dimension.maximum))
        tenths = st.integers(int(10 * dimension.minimum), int(10 * dimension.maximum)).map(lambda n: n / 10)
        found[dimension.key] = draw(whole if dimension.step == 1 else st.one_of(whole, tenths))
    return found


def said(rubric: Rubric, scores: Scores) -> dict[str, float]:
    return {dimension.labels[0]: scores[dimension.key] for dimension in variant_of(rubric).dimensions}


@pytest.mark.parametrize(("rubric_id", "form"), CASES, ids=[f"{rubric_id}, {form}" for rubric_id, form in CASES])
@settings(LAW, max_examples=12)
@given(data=st.data())
def test_every_allowed_form_says_the_same_numbers(rubric_id: str, form: str, data: st.DataObject) -> None:
    rubric = RUBRICS[rubric_id]
    scores = data.draw(scores_of(rubric))
    is_whole = form == "a JSON string"  # is read only where nothing is said beside it
    around = AROUND[data.draw(st.sampled_from(sorted(set(AROUND) - ({"prose", "a tag"} if is_whole else set()))))]
    text = around(FORMS[rubric.reply_format][form](said(rubric, scores)))
    found = parse_reply(rubric, text, {"category": variant_of(rubric).category})
    assert isinstance(found, ReadScores), (found, text)
    assert found.scores == scores, text


def test_a_json_string_in_a_fence() -> None:
    """Found by the property above: it was `not_found` while one without the fence, and an object within it, were read."""
    for text in ('```json\n"{\\"score\\": 3}"\n```', '```\n"{\\"score\\": 3}"```', '"{\\"score\\": 3}"'):
        assert parse_reply(RUBRICS["caption"], text, {}).as_dict() == {"scores": {"score": 3}}, text
    beside = '```json\n"{\\"score\\": 3}"\n```\n```json\n"{\\"score\\": 4}"\n```'
    assert "scores" not in parse_reply(RUBRICS["caption"], beside, {}).as_dict()


def test_another_answer_without_its_bracket_beside_one_with() -> None:
    """Found by fuzzing by coverage: a number with other digits behind its semicolon was taken for discussion."""
    labels = [dimension.labels[0] for dimension in variant_of(RUBRICS["interleaved"]).dimensions]
    bracket = BRACKET_FORMS["as asked"](dict.fromkeys(labels, 4))
    for separator in ("; ", "; 2 are off; ", ", ", " | ", "\n"):
        for opening, closing in (("", ""), ("[Scores, ", "]")):
            bare = opening + separator.join(f"{label}: 3" for label in labels) + closing
            for text in (f"{bare}\n\n{bracket}", f"{bracket}\n\n{bare}"):
                assert parse_reply(RUBRICS["interleaved"], text, {}).as_dict() == {"error": "ambiguous"}, text
    discussed = f"{labels[0]}: clear; {labels[1]}: sharp\n{bracket}"
    assert parse_reply(RUBRICS["interleaved"], discussed, {}).as_dict() == {
        "scores": dict.fromkeys((d.key for d in variant_of(RUBRICS["interleaved"]).dimensions), 4)
    }


@LAW
@given(data=st.data())
def test_one_dimension_less_says_nothing(data: st.DataObject) -> None:
    """All dimensions or none, in every form."""
    rubric = RUBRICS[data.draw(st.sampled_from([name for name in IDS if len(variant_of(RUBRICS[name]).dimensions) > 1]))]
    labels = said(rubric, data.draw(scores_of(rubric)))
    del labels[data.draw(st.sampled_from(sorted(labels)))]
    form = FORMS[rubric.reply_format][data.draw(st.sampled_from(sorted(FORMS[rubric.reply_format])))]
    found = parse_reply(rubric, form(labels), {"category": variant_of(rubric).category}).as_dict()
    assert found in ({"error": "missing_key"}, {"error": "not_found"}), form(labels)


@LAW
@given(data=st.data())
def test_two_forms_that_differ_are_ambiguous(data: st.DataObject) -> None:
    """Whatever form each takes: the reader does not choose, neither the first nor the last nor the tidier one."""
    rubric = RUBRICS[data.draw(st.sampled_from(IDS))]
    scores = data.draw(scores_of(rubric))
    ends = {d.key: (d.minimum, d.maximum) for d in variant_of(rubric).dimensions}
    other = {key: next(end for end in ends[key] if end != score) for key, score in scores.items()}
    forms = FORMS[rubric.reply_format]
    one, two = (forms[data.draw(st.sampled_from(sorted(set(forms) - {"a JSON string"})))] for _ in range(2))
    text = f"{one(said(rubric, scores))}\n\n{two(said(rubric, {key: int(value) for key, value in other.items()}))}"
    found = parse_reply(rubric, text, {"category": variant_of(rubric).category}).as_dict()
    assert "scores" not in found, text


WORDS = [
    "Score",
    "score",
    '"score": ',
    "Overall Score: 4",
    "<think>",
    "/*",
    "*/",
    "//",
    "\\",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "4",
    "\n",
    " ",
]
UNITS = st.one_of(
    st.text(st.sampled_from(list("{}[]\"':;,=*`#/\\\n -_.<>0123456789abcS")), min_size=1, max_size=12),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map("".join),
)


@settings(LAW, max_examples=25)
@given(
    st.sampled_from(["", "{", '```"', '{"reason": "', "Score: ", "[", "<think>"]),
    UNITS,
    st.sampled_from(["", "}", '"}', "]", "\nScore: 4"]),
)
def test_a_megabyte_takes_its_time_and_no_more(opening: str, unit: str, closing: str) -> None:
    text = opening + unit * ((REPLY_TEXT_BYTES - 100) // len(unit.encode())) + closing
    for rubric in RUBRICS.values():
        reading = partial(parse_reply, rubric, text, {"category": variant_of(rubric).category})
        assert takes_at_most(N_YARDSTICKS, reading), (rubric.id, opening, unit, closing)


@settings(LAW, max_examples=60)
@given(st.sampled_from(IDS), st.integers(-3, 3), st.sampled_from(["x", "é", "😀", "\ud800"]))
def test_a_reply_is_read_up_to_a_megabyte_and_no_further(rubric_id: str, n_beyond: int, sign: str) -> None:
    """The limit is one of bytes, not of signs; half a character counts as what it would take."""
    rubric = RUBRICS[rubric_id]
    dimensions = variant_of(rubric).dimensions
    answer = FORMS[rubric.reply_format]["as asked"]({d.labels[0]: int(d.maximum) for d in dimensions})
    n_each = len(sign.encode("utf-8", "surrogatepass"))
    n_signs, n_left = divmod(REPLY_TEXT_BYTES + n_beyond - len(answer.encode()) - 1, n_each)
    text = sign * n_signs + "x" * n_left + "\n" + answer
    found = parse_reply(rubric, text, {"category": variant_of(rubric).category})
    assert isinstance(found, ReadScores) == (n_beyond <= 0), found.as_dict()


def real_texts(folder: Path) -> list[str]:
    """What GPT-4o wrote as reasons, and what caption models wrote: real words, quotes, line breaks and digits."""
    judged = (folder / "viescore_t2i" / "gpt4o_judgements.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = (folder / "anycap" / "caption_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["reasoning"] for line in judged] + [json.loads(line)["output"] for line in pairs]
    assert len(texts) > 3900
    return [str(text) for text in texts]


@pytest.mark.parametrize("rubric_id", ["interleaved", "caption", "alignment"])
def test_real_words_say_no_number_and_move_none(needs_salon_data: Path, rubric_id: str) -> None:
    """A real text alone is no answer; before or inside an answer it changes no number. Few make it unreadable."""
    rubric = RUBRICS[rubric_id]
    scores = {d.key: (int(d.minimum) + int(d.maximum)) // 2 for d in variant_of(rubric).dimensions}
    answer = FORMS[rubric.reply_format]["as asked"](said(rubric, scores)).removeprefix("Reasoning: All is there.\n")
    context = {"category": variant_of(rubric).category}
    n_unread = 0
    texts = real_texts(needs_salon_data)[::3]
    for text in texts:
        alone = parse_reply(rubric, text, context).as_dict()
        assert "scores" not in alone, text
        raw_quotes = f'{{"reason": "{text}", {answer[1:]}'  # as judges write it who forget to escape
        wholes = [raw_quotes, f"{text}\n\n{answer}"] if rubric.reply_format is ReplyFormat.JSON else [f"{text}\n\n{answer}"]
        for whole in wholes:
            found = parse_reply(rubric, whole, context)
            assert not isinstance(found, ReadScores) or found.scores == scores, whole
            n_unread += not isinstance(found, ReadScores)
    assert n_unread < 0.01 * len(texts)
