"""Keys beside a score that say it is none, or name another score of the whole; and keys that say no such thing."""

from dataclasses import replace

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

NONE = {
    "json10": [
        '{"error":"no image","score":0}',
        '{"image_received":false,"reasoning":"","score":0}',
        '{"status":"no_image","score":0}',
        '{"is_placeholder":true,"score":5}',
        '{"refused":true,"score":0}',
        '{"score":7,"score_after_review":5}',
        '{"score":7,"final_rating":5}',
        '{"reasoning": "ok", "score": 7 // of 100\n}',
        '{"score":7,"valid":false}',
        '{"image_visible":false,"score":3}',
        '{"can_see_image":false,"score":3}',
        '{"no_image":true,"score":0}',
        '{"imageMissing":true,"score":0}',
        '{"hasImage":"no","score":0}',
        '{"error":true,"score":0}',
        '{"error":"IMAGE_NOT_FOUND","score":0}',
        '{"error":{"code":404,"message":"image not found"},"score":0}',
        '{"errors":["could not load image"],"score":0}',
        '{"status":"failed","score":0}',
        '{"status":"rejected","reasoning":"","score":0}',
        '{"can_evaluate":false,"reasoning":"n/a","score":0}',
        '{"evaluated":false,"score":0}',
        '{"refusal":"I cannot judge people","score":0}',
        '{"score":7,"adjusted_rating":5}',
        '{"score":7,"rating_revised":5}',
        '{"score":7,"post_review_score":5}',
        '{"score":7,"points_after_penalty":5}',
        '{"score":5,"reasoning":"placeholder"}',
        '{"score":0,"reasoning":"N/A - no image"}',
        '{"score":0,"reasoning":"unable to assess"}',
        '{"score":5,"reasoning":"default value."}',
        '{"score":0,"reasoning":"error loading image"}',
        '{"score": 7 /* out of 100 */}',
        '{"dummy": "true", "score": 5}',
        '{"score":5,"error_code":404}',
        '{"state":"placeholder","score":5}',
        '{"score":0,"image_status":"unavailable"}',
        '{"score":0,"exception":"timeout"}',
        '{"result":{"score":0,"error":"no input"}}',
        '{"error":"IMAGE_LOAD_FAILED","score":0}',
        '{"error":"Internal server error","score":0}',
        '{"error":"HTTP 500","score":0}',
        '{"error":"rate limit exceeded","score":0}',
        '{"error":"image could not be decoded","score":0}',
        '{"error":"no image in the request","score":0}',
        '{"status":"evaluation failed","score":0}',
    ],
    "caption": [
        '{"score":0,"error":"no image was given"}',
        '{"score":0,"image_provided":false}',
    ],
    "aspects": [
        '{"alignment":{"score":1,"error":"no image"},"realism":1,"overall":1}',
        '{"alignment":4,"realism":4,"overall":4,"final_rating":3}',
        '{"alignment":4,"realism":4,"overall":4,"overall_after_penalty":3}',
        '{"alignment":{"score":4,"reason":"placeholder"},"realism":4,"overall":4}',
    ],
}  # fmt: skip
KEPT = {
    "json10": [
        '{"error":null,"score":7}',
        '{"error":"","score":7}',
        '{"error":"none","score":7}',
        '{"error":false,"score":7}',
        '{"errors":[],"score":7}',
        '{"errors":["extra finger","wrong colour"],"score":7}',
        '{"errors":2,"score":7}',
        '{"error":"The dog has five legs and no tail.","score":7}',
        '{"status":"ok","score":7}',
        '{"status":"success","score":7}',
        '{"image_received":true,"score":7}',
        '{"has_image":true,"score":7}',
        '{"image_quality":false,"score":7}',
        '{"refused":false,"score":7}',
        '{"refusal":null,"score":7}',
        '{"is_placeholder":false,"score":7}',
        '{"score":7,"final_score":7}',
        '{"score":7,"final_rating":7}',
        '{"score":7,"final_verdict":"publishable"}',
        '{"missing_elements":true,"score":7}',
        '{"missing":["the can"],"score":7}',
        '{"visible_text":false,"score":7}',
        '{"text_present":false,"score":7}',
        '{"valid":true,"score":7}',
        '{"score":7 // of 10\n}',
        '{"score":7, "reasoning":"The can is missing."}',
        '{"score":7,"default":"none"}',
        '{"image_style":"no","score":7}',
        '{"cat_visible":false,"score":7}',
        '{"error_analysis":"The hands have six fingers.","score":7}',
        '{"score":7,"reasoning":"No picture hangs there."}',
        '{"score":7,"confidence":0.5}',
        '{"score":7,"image_description":"a dog"}',
        '{"status":"good","score":7}',
        '{"failures":["hands"],"score":7}',
        '{"score":7,"max":10}',
        '{"input":"a cat","score":7}',
        '{"no_artifacts":true,"score":7}',
        '{"score":7,"reasoning":"guessing game on a table"}',
        '{"state":"The state of the fence is broken.","score":7}',
        '{"score":7,"notes":"none"}',
        '{"error":"None.","score":7}',
        '{"error":"No errors found","score":7}',
        '{"error":"wrong colour","score":7}',
        '{"error_type":"hallucination","score":7}',
        '{"failure":"missing dog","score":7}',
        '{"errors":["no picture on the wall","image missing dog","image not sharp"],"score":7}',
        '{"status":"failed to follow the prompt","score":7}',
        '{"state":"incomplete depiction","score":7}',
        '{"text_in_image":"no photo","score":7}',
        '{"ocr":"NO PHOTO","score":7}',
        '{"score":7,"score_without_penalty":8}',
    ],
    "caption": [
        '{"score":0,"is_refusal":true,"reason":"The output is a refusal."}',
        '{"score":0,"error":"hallucination"}',
    ],
    "aspects": [
        '{"alignment":4,"realism":4,"overall":4,"total":16}',
        '{"alignment":4,"realism":4,"overall":4,"total_score":16}',
        '{"alignment":{"score":4,"error":null},"realism":4,"overall":4}',
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "reply"), [(name, reply) for name, replies in NONE.items() for reply in replies])
def test_a_key_that_says_so_makes_the_score_none(doubtful: dict[str, Rubric], name: str, reply: str) -> None:
    assert parse_reply(doubtful[name], reply, {}).as_dict()["error"] in {
        "missing_input",
        "refusal",
        "ambiguous",
        "scale_mismatch",
    }


@pytest.mark.parametrize(("name", "reply"), [(name, reply) for name, replies in KEPT.items() for reply in replies])
def test_other_keys_cost_no_score(doubtful: dict[str, Rubric], name: str, reply: str) -> None:
    said = parse_reply(doubtful[name], reply, {})
    assert isinstance(said, ReadScores), said
    assert list(said.scores.values())[-1] in {"json10": (7,), "caption": (0,), "aspects": (4,)}[name]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"error": "no image", "score": 0}', "missing_input"),
        ('{"is_placeholder": true, "score": 0}', "missing_input"),
        ('{"refused": true, "score": 0}', "refusal"),
        ('{"error": "timeout", "score": 0}', "refusal"),
        ('{"score": 7, "score_after_review": 5}', "ambiguous"),
        ('{"score": 7 // of 100\n}', "scale_mismatch"),
    ],
)
def test_the_reason(doubtful: dict[str, Rubric], reply: str, expected: str) -> None:
    assert parse_reply(doubtful["json10"], reply, {}).as_dict() == {"error": expected}


def test_a_key_of_the_prompt_is_no_flag_by_its_name(doubtful: dict[str, Rubric]) -> None:
    rubric = doubtful["json10"]
    asked = replace(rubric, variants={None: replace(rubric.variants[None], prompt='Answer {"refused": …, "score": …}')})
    assert parse_reply(asked, '{"refused": true, "score": 3}', {}).as_dict() == {"scores": {"overall_score": 3}}


def test_a_sample_without_a_picture_may_be_said_to_have_none(doubtful: dict[str, Rubric]) -> None:
    said = parse_reply(doubtful["json10"], '{"has_image": false, "score": 3}', {"image_is_null": True})
    assert said.as_dict() == {"scores": {"overall_score": 3}}
