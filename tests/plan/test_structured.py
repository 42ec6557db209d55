"""The JSON schema of a rubric's reply: what strict mode wants, and that every reply it allows is one we read."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import Dimension, Probability, Rubric, Variant
from rubrics.replies.read import parse_reply
from schemas.benchmark.judges import Judge
from schemas.errors import InputError
from schemas.records import ReadScores
from tasks.plan.parameters import request_parameters, response_format

SHAPED = ["caption", "composition", "image_aspects"]
RUBRICS = {name: load_rubric(SHIPPED / name) for name in [*SHAPED, "alignment", "interleaved"]}
VARIANTS = [(name, category) for name in SHAPED for category in RUBRICS[name].variants]
# What strict mode knows, by OpenAI's documentation of structured outputs.
KNOWN = {"type", "properties", "required", "additionalProperties", "anyOf", "enum", "minimum", "maximum", "multipleOf"}


def schema_of(rubric: Rubric, category: str | None) -> dict[str, Any]:
    found = response_format(rubric, rubric.variants[category])
    assert found is not None
    assert found["type"] == "json_schema"
    named: Any = found["json_schema"]
    assert named["strict"] is True
    assert set(named["name"]) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert 0 < len(named["name"]) <= 64
    schema: dict[str, Any] = named["schema"]
    return schema


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        yield from parts(inner)


@pytest.mark.parametrize(("name", "category"), VARIANTS)
def test_it_is_what_strict_mode_takes(name: str, category: str | None) -> None:
    schema = schema_of(RUBRICS[name], category)
    assert schema["type"] == "object"  # the root may be no anyOf
    for part in parts(schema):
        assert part.keys() <= KNOWN
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])


def test_the_caption_rubric_asks_for_one_whole_number_and_a_reason() -> None:
    assert schema_of(RUBRICS["caption"], None)["properties"] == {
        "score": {"type": "integer", "minimum": 0, "maximum": 4}, "reason": {"type": "string"},
    }  # fmt: skip


def test_several_dimensions_may_be_numbers_or_objects_in_the_prompts_order() -> None:
    properties = schema_of(RUBRICS["composition"], "colors")["properties"]
    assert list(properties) == ["color_fidelity", "contrast_effectiveness", "multi_object_consistency", "overall_score"]
    explained, number = properties["overall_score"]["anyOf"]
    assert number == {"type": "number", "minimum": 0, "maximum": 10}
    assert list(explained["properties"]) == ["score", "explanation"]
    assert explained["properties"]["score"] == number


@pytest.mark.parametrize("name", ["alignment", "interleaved"])
def test_a_form_that_is_no_json_has_none(name: str) -> None:
    assert [response_format(RUBRICS[name], variant) for variant in RUBRICS[name].variants.values()] == [None]


STEPS = {
    "any": (0, 10, None, {"type": "number", "minimum": 0, "maximum": 10}),
    "halves": (0, 5, 0.5, {"type": "number", "minimum": 0, "maximum": 5, "multipleOf": 0.5}),
    "halves-from-one": (1, 5, 0.5, {"type": "number", "minimum": 1, "maximum": 5, "multipleOf": 0.5}),
    "halves-from-a-quarter": (0.25, 2.25, 0.5, {"type": "number", "minimum": 0.25, "maximum": 2.25}),
    "twos": (1, 7, 2, {"type": "integer", "enum": [1, 3, 5, 7]}),
    "whole": (1, 5, 1, {"type": "integer", "minimum": 1, "maximum": 5}),
    "whole-on-a-fractional-scale": (0.5, 2, 1, {"type": "number", "minimum": 0.5, "maximum": 2}),
    "fractional-scale": (0.5, 2, None, {"type": "number", "minimum": 0.5, "maximum": 2}),
}


@pytest.mark.parametrize(("low", "high", "step", "expected"), STEPS.values(), ids=STEPS)
def test_scales_and_steps(low: float, high: float, step: float | None, expected: dict[str, object]) -> None:
    variant = Variant(None, "P", "p.txt", (Dimension("score", ("score",), low, high, step),))
    rubric = replace(RUBRICS["caption"], variants={None: variant}, rules=())
    assert schema_of(rubric, None)["properties"]["score"] == expected


def test_a_number_that_stands_at_a_declared_place_has_no_schema() -> None:
    variant = Variant(None, "P", "p.txt", (Dimension("score", ("score",), 0, 4, 1, at="scores[0]"),))
    assert response_format(RUBRICS["caption"], variant) is None


def instances(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Replies a provider that keeps the schema can give."""
    if "anyOf" in schema:
        return st.one_of(*(instances(one) for one in schema["anyOf"]))
    if schema["type"] == "object":
        return st.fixed_dictionaries({name: instances(one) for name, one in schema["properties"].items()})
    if schema["type"] == "string":
        return st.text("abc \"'{}:0123456789\n,é", max_size=30)
    if schema["type"] == "integer":
        return st.integers(schema["minimum"], schema["maximum"])
    return st.integers(schema["minimum"] * 100, schema["maximum"] * 100).map(lambda number: number / 100)


@pytest.mark.parametrize(("name", "category"), VARIANTS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_every_reply_the_schema_allows_is_read_as_it_says(name: str, category: str | None, data: st.DataObject) -> None:
    rubric = RUBRICS[name]
    reply = data.draw(instances(schema_of(rubric, category)))
    read = parse_reply(rubric, json.dumps(reply, ensure_ascii=False), {"category": category})
    assert isinstance(read, ReadScores)
    said = {key: value["score"] if isinstance(value, dict) else value for key, value in reply.items() if key != "reason"}
    assert dict(read.scores) == said


def test_an_answer_in_words_is_one_of_them() -> None:
    verdict = Dimension("verdict", ("verdict",), 0, 1, answers=(("PASS", 1), ("FAIL", 0)), not_applicable=("N/A",))
    rubric = replace(RUBRICS["caption"], variants={None: Variant(None, None, None, (verdict,))}, rules=())
    (verdict_schema,) = [part for part in parts(schema_of(rubric, None)) if "enum" in part]
    assert verdict_schema == {"type": "string", "enum": ["PASS", "FAIL", "N/A"]}
    for word, expected in [("PASS", {"scores": {"verdict": 1}}), ("N/A", {"scores": {}, "not_applicable": ["verdict"]})]:
        assert parse_reply(rubric, json.dumps({"verdict": word, "reason": "So it is."}), {}).as_dict() == expected


GEMINI = {"generationConfig": {"responseLogprobs": True, "logprobs": 5}}
ASKED: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "openai, asked": ("openai", {"logprobs": True, "top_logprobs": 5}, None),
    "openai, not asked": ("openai", {}, r"logprobs = true, top_logprobs = 20"),
    "gemini, asked": ("gemini", GEMINI, None),
    "gemini, not asked": ("gemini", {"generationConfig": {"logprobs": 5}}, r"responseLogprobs = true, logprobs = 20"),
    "anthropic": ("anthropic", {"max_tokens": 9}, "Anthropic does not return them"),
}


@pytest.mark.parametrize(("provider", "parameters", "words"), ASKED.values(), ids=ASKED)
def test_probabilities_that_a_rubric_reads_must_be_asked_for_as_the_provider_has_it(
    provider: str, parameters: dict[str, Any], words: str | None
) -> None:
    rubric = RUBRICS["alignment"]
    dimension = replace(rubric.variants[None].dimensions[0], probability=Probability(is_normalised=True, min_mass=0.5))
    variant = replace(rubric.variants[None], dimensions=(dimension,))
    judge = Judge(model="m", provider=provider, parameters=parameters)
    with nullcontext() if words is None else pytest.raises(InputError, match=words):
        request_parameters(rubric, variant, judge)
