"""Laws of reading: decoration changes nothing, nothing raises, and no number is read that does not stand in the reply."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import ReplyFormat, Rubric, Variant
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores, Unreadable

RUBRICS = {
    rubric_id: load_rubric(SHIPPED / rubric_id)
    for rubric_id in ("interleaved", "image_aspects", "caption", "composition", "alignment")
}
LAW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

AROUND = st.sampled_from(
    [
        ("", ""),
        ("```json\n", "\n```"),
        ("Here it is:\n\n", "\n"),
        ("\ufeff", ""),
        ("<answer>", "</answer>"),
        ("\n\n", "\n\nDone, as asked."),
    ]
)


def variant_of(rubric: Rubric) -> Variant:
    return next(variant for variant in rubric.variants.values())


@st.composite
def scored(draw: st.DrawFn) -> tuple[Rubric, dict[str, float], str]:
    """A rubric, a number for each of its dimensions, and a decorated reply that says them."""
    rubric = RUBRICS[draw(st.sampled_from(sorted(RUBRICS)))]
    scores: dict[str, float] = {}
    for dimension in variant_of(rubric).dimensions:
        whole = st.integers(int(dimension.minimum), int(dimension.maximum))
        decimal = st.decimals(int(dimension.minimum), int(dimension.maximum), places=2).map(float)
        scores[dimension.key] = draw(whole if dimension.step == 1 else st.one_of(whole, decimal))
    before, after = draw(AROUND)
    return rubric, scores, before + draw(rendered(rubric, scores)) + after


@st.composite
def rendered(draw: st.DrawFn, rubric: Rubric, scores: dict[str, float]) -> str:
    labels = {d.key: draw(st.sampled_from(d.labels)) for d in variant_of(rubric).dimensions}
    labels = {
        key: draw(st.sampled_from([label, label.upper(), label.lower(), label.replace("_", " ")]))
        for key, label in labels.items()
    }
    says = {labels[key]: draw(st.sampled_from([str(score), f"{score:.2f}", f" {score}"])) for key, score in scores.items()}
    if rubric.reply_format is ReplyFormat.JSON:
        return draw(as_json(says))
    mark = draw(st.sampled_from(["", "**", "`"]))
    pairs = [f"{mark}{label}{draw(st.sampled_from([':', ' :', '：']))}{mark} {value}" for label, value in says.items()]
    if rubric.reply_format is ReplyFormat.BRACKET:
        return mark + "[" + draw(st.sampled_from(["; ", ", ", ";\n", " | "])).join(pairs) + "]" + mark
    return draw(st.sampled_from(["", "Reasoning: It lacks the cat. ", "Reasoning: all\n\n"])) + "\n".join(pairs)


@st.composite
def as_json(draw: st.DrawFn, says: dict[str, str]) -> str:
    quote = draw(st.sampled_from(['"', "'", "“", ""]))
    closing = {"“": "”"}.get(quote, quote)
    # No vowels, Latin or Cyrillic, and no signs of scripts without case: hypothesis draws words of our own modules too, and
    # "placeholder" or "missing input" says that there is no score, 五分制 that the scale is another.
    apart = "\"'“”‘’„{}[]\\aeiouyаеиоуыэюя"
    words = draw(st.text(st.characters(codec="utf-8", exclude_categories=["Lo"], exclude_characters=apart), max_size=30))
    pairs = []
    for label, value in says.items():
        form = draw(st.sampled_from(["{v}", '"{v}"', '{{"score": {v}}}', '{{"score": {v}, "why": {w}}}']))
        shown = form.replace("{v}", value).replace("{w}", json.dumps(words)).replace("{{", "{").replace("}}", "}")
        pairs.append(f"{quote}{label}{closing}: {shown}")
    comma = draw(st.sampled_from([", ", ",\n", " ,", ", // so\n"]))
    text = "{" + comma.join(pairs) + draw(st.sampled_from(["", ","])) + "}"
    return draw(st.sampled_from([text, f'{{"evaluation": {text}}}', f"[{text}]"]))


def context_of(rubric: Rubric) -> dict[str, Any]:
    return {"category": variant_of(rubric).category}


@LAW
@given(scored())
@example(
    (
        RUBRICS["composition"],
        {"object_completeness": 0, "detectability": 0, "occlusion_handling": 0, "overall_score": 0.11},
        (  # 70 characters behind the loose 0 end in 0.1
            '{"object_completeness": 0, "detectability": {"score": 0, "why": "0"}, "occlusion_handling": {"score": 0}, '
            '"overall score": {"score": 0.11}}'
        ),
    )
)
def test_decoration_changes_no_number(case: tuple[Rubric, dict[str, float], str]) -> None:
    rubric, scores, text = case
    found = parse_reply(rubric, text, context_of(rubric))
    assert isinstance(found, ReadScores), (found, text)
    assert found.scores == scores


WORDS = [
    "Score",
    "score",
    '"score"',
    ": ",
    "4",
    "3.5",
    "/10",
    "-",
    " or ",
    "<think>",
    "</think>",
    "Text Response Quality: ",
    "overall_score",
]
MARKS = ["```", "/*", "//", "null", "NaN", "e9", "<0-5>", "**"]
PIECES = st.sampled_from([*"{}[]\"':,;\\\n#()４“’\x00\ud800", *WORDS, *MARKS])
ANY_VALUE = st.one_of(
    st.none(), st.booleans(), st.text(), st.floats(), st.lists(st.integers()), st.sampled_from(["length", "stop", "counting"])
)
CONTEXT_KEYS = st.sampled_from(["finish_reason", "refusal", "category", "text_is_null", "caption_type"])
ANY_BYTES = st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))


@LAW
@given(
    st.sampled_from(sorted(RUBRICS)),
    st.one_of(st.none(), st.text(), ANY_BYTES, st.lists(PIECES).map("".join)),
    st.one_of(st.none(), st.dictionaries(CONTEXT_KEYS, ANY_VALUE)),
)
def test_nothing_raises(rubric_id: str, text: str | None, context: Any) -> None:
    found = parse_reply(RUBRICS[rubric_id], text, context)
    assert isinstance(found, ReadScores | Unreadable)
    assert isinstance(found, ReadScores) or not found.fault
    json.dumps(found.as_dict(), allow_nan=False)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Rubric, str]:
    rubric, _, text = draw(scored())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.one_of(PIECES, st.just(""), st.characters())) + text[at + draw(st.integers(0, 4)) :]
    return rubric, text


@LAW
@given(mutated())
def test_a_number_read_stands_in_the_reply(case: tuple[Rubric, str]) -> None:
    rubric, text = case
    found = parse_reply(rubric, text, context_of(rubric))
    if isinstance(found, ReadScores):
        literals = {float(number) for number in re.findall(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text)}
        literals |= {float(number) for number in re.findall(r"[0-9]+(?:\.[0-9]+)?", text)}
        assert set(found.scores.values()) <= literals, text
        on_scale = {d.key: d.minimum <= found.scores[d.key] <= d.maximum for d in variant_of(rubric).dimensions}
        assert all(on_scale.values())


@LAW
@given(scored(), st.data())
def test_a_reply_cut_anywhere_says_the_same_or_nothing(case: tuple[Rubric, dict[str, float], str], data: st.DataObject) -> None:
    rubric, scores, text = case
    cut = text[: data.draw(st.integers(0, len(text)))]
    found = parse_reply(rubric, cut, context_of(rubric) | {"finish_reason": "length"})
    assert isinstance(found, Unreadable) or found.scores == scores, cut


@pytest.mark.parametrize("rubric_id", sorted(RUBRICS))
@LAW
@given(st.data())
def test_two_different_answers_are_ambiguous(rubric_id: str, data: st.DataObject) -> None:
    rubric = RUBRICS[rubric_id]
    dimensions = variant_of(rubric).dimensions
    one = {d.key: data.draw(st.integers(int(d.minimum), int(d.maximum))) for d in dimensions}
    two = {d.key: data.draw(st.integers(int(d.minimum), int(d.maximum))) for d in dimensions}
    text = data.draw(rendered(rubric, dict(one))) + "\n\n" + data.draw(rendered(rubric, dict(two)))
    found = parse_reply(rubric, text, context_of(rubric))
    assert found.as_dict() == ({"scores": one} if one == two else {"error": "ambiguous"}), text
