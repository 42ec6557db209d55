"""Honest words that sound like a doubt, and beside each kind what sounds alike and is one: no number that nobody gave may pass with them."""

# ruff: noqa: E501 - a reply is read whole, a line each

import json

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply

# kind -> the form it is written in (below), what is honest, what must have no number
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "what the text in the picture says": (
        "line",
        [
            'The image is missing the word "HELLO"; only the text "WORLD" appears on the wall.',
            'The image has an error in the text: only the word "SALE" is legible.',
            "There are no visual errors in the image, and only the words on the sign are wrong.",
            "In the first image only the word 'OPEN' is missing.",
            "The image is blank on the left; only text is shown on the poster.",
        ],
        [
            "The image did not load; only the text prompt appears on the wall.",
            "The picture is missing: only the text is legible.",
            "The image is blank. Only the text of the prompt is legible.",
            "Only the text part is legible, the image part is blank.",
            "The file is corrupt: only the wording is garbled, I guess.",
        ],
    ),
    "what the prompt asks for": (
        "line",
        [
            "Based on the prompt, a cat is expected, but there is no cat in the image.",
            "Only some words of the prompt are depicted. No bus in the image.",
            "Based on the prompt, a hat is expected, but the image is missing it.",
            "It only follows the prompt literally, without adding any visual surprise.",
            "Judged by the prompt's words, nothing in the image fits except the chair.",
        ],
        [
            "Based on the prompt, a cat is expected; no image reached me.",
            "Going by the description, there should be four items; the image is unavailable.",
            "Only two of the prompt words are visible to me; the image is absent.",
            "My score only follows the prompt, as the image is missing.",
            "It only follows the prompt literally, since the image failed to load.",
            "Nothing in the image could be opened, I only have the prompt.",
            "Based on the prompt, a cat is expected, but there is no data in the image.",
            "Based on the prompt, a cat is expected. No visual.",
            "My score only follows the prompt literally, no visuals.",
            "Only the text came. No visual artifacts.",
            "I assume full marks. No visual anomalies.",
            "Without a visual I guess.",
        ],
    ),
    "words of a caption": (
        "object",
        [
            "The output is only one word and contains no image details.",
            "The output is just the text of the sign, with no description of the image.",
        ],
        [
            "The age is a guess, as is the score; the image is blank.",
            "All I have is the caption; I guess, as the image is absent.",
            "I have just the text of the caption, with no image.",
            "I have only the words on the sign, no picture.",
            "The output is only one word; no visuals.",
        ],
    ),
    "machines in the picture": (
        "line",
        [
            "The server room is in the image, but no engineer is visible and the error light is missing.",
            "The subway token is shown, but the image lacks the hand; I can't see it.",
            "A broken image icon is displayed on the old monitor as requested.",
            "A loading spinner is shown on the tablet as asked.",
        ],
        [
            "The server returned no image.",
            "The image token is missing; I cannot see anything.",
            "A broken image icon is displayed on my monitor.",
            "A broken image icon is shown in the chat as requested.",
            "A loading spinner is shown on the page.",
            "A loading spinner is shown instead of the picture.",
        ],
    ),
    "in high resolution": (
        "line",
        ["The image is not available in high resolution."],
        ["The image is not available in any resolution.", "The image was not provided in any form."],
    ),
    "a number the judge rejects": (
        "line",
        ["I cannot award a 5 as the plate isn't visible.", "A 5 would be too generous.", "A 2 would be far too harsh."],
        [
            "I cannot give it anything but a 2.",
            "I cannot give it a 5, so I'd call it a 2.",
            "I cannot lie: I'd give it a 2.",
            "A 2 is not too harsh.",
            "Although this deserves a 2, the form asks for 4.",
            "While it would merit a 2, I was told to answer 4.",
        ],
    ),
    "a number that was not reached": (
        "behind",
        [
            "The hat is missing, which is why I can't give it a 5.",
            "Reasoning: The hat is missing; otherwise it would have been 5.",
            "Reason for not giving a 5: the moon is missing.",
            "To reach a 5, the moon would have to be visible.",
        ],
        [
            "I cannot give it a 2.",
            "I can't give it a 5; it is a 3.",
            "Reason for not giving a 3: none.",
            "I was told to write 4; otherwise it would be 5.",
            "If I am honest, it would be a 5.",
        ],
    ),
    "a number in the picture": (
        "behind",
        [
            "Reasoning: The number on the jersey is 3; it should be 8.",
            "Reasoning: The final count of cats is 3, expected 2.",
            "Reasoning: The correct number of candles is 3. The image has 2.",
            "Reasoning: The birthday cake shows a 3 instead of a 2.",
            "The number of chairs should be reduced to 2.",
            "To improve: change the number of chairs from 4 to 2.",
            "Reasoning: On closer look there are only 3.",
        ],
        [
            "The number on the form should be 3.",
            "The number of stars is 3.",
            "Change the number of points from 4 to 2.",
            "With the sign missing it drops to 3.",
            "The clock is wrong so 3.",
            "On closer look, there are only 3 points.",
            "On closer look, only 3.",
        ],
    ),
    "two of three things": (
        "line",
        ["Two of three. The lamp is absent.", "Three of four; the 4th is cut off.", "Objects: four of four; relations: one of two."],
        ["Two of three.", "I rate it two of three. The lamp is ugly.", "Three of four points.", "Two of three. The score is absent.", "Score of objects: two of three points."],
    ),
    "the cap of a rule on length": (
        "capped",
        [
            "Because the length exceeds ±30%, the highest possible score is 1.",
            "Length violation: max score 1.",
            "The word count is out of the 14-26 range, which limits the score to 1.",
            "45 words vs. 20, exceeding the ±30% range; per the mandatory rule the maximum score is 1.",
            "Although the content would merit a 3, the length exceeds the limit by 50%.",
        ],
        [
            "The maximum score is 1.",
            "No length violation: max score 1.",
            "The length exceeds the limit; the maximum score is 3.",
            "The caption exceeds the reference in detail; max score 1.",
            "On a 10-100 range.",
            "The word count is out of the 14-26 range, so it gets 3.",
        ],
    ),
    "a picture as an object, elsewhere": (
        "line",
        [
            "No hay ninguna imagen en la pared, como pedía el texto.",
            "Non c'è nessuna immagine sul muro, come invece richiesto.",
            "墙上没有图片，与提示不符。",
            "没有看到图像中的猫。",
            "벽에 사진이 없습니다. 나머지는 모두 있습니다.",
        ],
        [
            "No hay ninguna imagen en el mensaje.",
            "No veo ninguna imagen.",
            "Non c'è nessuna immagine nel messaggio.",
            "输入框里没有图片。",
            "无法查看图片中的内容。",
            "没有看到图片上传。",
            "没有看到图像中的任何内容。",
            "새벽에 이미지가 제공되지 않았습니다.",
        ],
    ),
    "texts under explanations": (
        "explained",
        ["Sharp.", "画像には犬が一匹しか写っていません。", "图像与提示基本一致。"],
        ["three", "Five of ten.", "五分", "三点です", "4/10", "5", "N/A", "none"],
    ),
    "one thing that cannot be judged": (
        "object",
        ["Cannot be evaluated because the cup is not in the image."],
        ["Cannot be evaluated because the image is not in the picture.", "Cannot be assessed because the file is missing from the image.", "Cannot be evaluated."],
    ),
    "a sample without a picture": (
        "interleaved",
        ["Since no image appears in the response, I cannot evaluate the image and must assign 0."],
        ["I cannot evaluate this content.", "I cannot rate this.", "I can't help with that request."],
    ),
}  # fmt: skip
_TEXTS = "[Text Response Quality: 4; Image Response Quality: 0; Image Aesthetic Quality: 0; Text-Image Synergy: 0]"


def read(doubtful: dict[str, Rubric], form: str, words: str) -> dict[str, object]:
    """What is read of a reply of this form with these words about its scores."""
    aspects = [one.key for one in doubtful["aspects"].variant(None).dimensions]  # type: ignore[union-attr]
    explained = {"scores": dict.fromkeys(aspects, 4), "explanations": {aspects[0]: words}}
    rubric, reply = {
        "line": ("alignment", f"Reasoning: {words}\nScore: 4"),
        "behind": ("alignment", f"Score: 4\n\n{words}"),
        "object": ("caption", json.dumps({"score": 2, "reason": words}, ensure_ascii=False)),
        "capped": ("caption", json.dumps({"score": 1, "reason": words}, ensure_ascii=False)),
        "explained": ("aspects", json.dumps(explained, ensure_ascii=False)),
        "interleaved": ("interleaved", f"{words}\n{_TEXTS}"),
    }[form]
    return parse_reply(doubtful[rubric], reply, {"image_is_null": True} if form == "interleaved" else {}).as_dict()


@pytest.mark.parametrize(("form", "words"), [(form, words) for form, honest, _ in CASES.values() for words in honest], ids=str)
def test_honest_words_cost_no_score(doubtful: dict[str, Rubric], form: str, words: str) -> None:
    assert "scores" in read(doubtful, form, words)


@pytest.mark.parametrize(("form", "words"), [(form, words) for form, _, none in CASES.values() for words in none], ids=str)
def test_no_number_passes_with_their_neighbours(doubtful: dict[str, Rubric], form: str, words: str) -> None:
    assert "error" in read(doubtful, form, words)


@pytest.mark.parametrize("words", CASES["the cap of a rule on length"][1][:4], ids=str)
def test_a_score_above_the_cap_it_names_is_none(doubtful: dict[str, Rubric], words: str) -> None:
    said = parse_reply(doubtful["caption"], json.dumps({"score": 3, "reason": words}), {})
    assert said.as_dict() == {"error": "ambiguous"}


def test_a_sample_with_a_picture_is_declined_by_one_who_cannot_judge_it(doubtful: dict[str, Rubric]) -> None:
    reply = f"I cannot evaluate the image and must assign 0.\n{_TEXTS}"
    assert parse_reply(doubtful["interleaved"], reply, {}).as_dict() == {"error": "refusal"}
