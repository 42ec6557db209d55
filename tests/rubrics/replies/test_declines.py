"""A judge that says of itself that it does not judge gives no score, whatever number stands beside that; and what only sounds so."""

# ruff: noqa: E501 - a reply is read whole, a line each; other scripts are meant

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rubrics.loading import load_rubric
from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from tests.rubrics.replies.test_words import HEAD, YES_NO

DECLINES = """\
I'm sorry, but I can't assist with that request.
I cannot evaluate this.
This cannot be evaluated.
I'm sorry, but I can't help with identifying people in images.
I can't assist with identifying individuals.
I can't rate this image.
I can’t rate this image.
I cannot rate it.
I must decline to rate sexual content.
I decline to judge this output.
I cannot give a rating for this image.
I can't provide an evaluation of this image.
I'm unable to provide a rating for this image because it contains explicit content.
I'm sorry, I cannot evaluate this image as it violates the content policy.
I cannot evaluate this image due to policy.
I cannot assess such content.
I won't rate this image.
I am not comfortable rating this image.
I'm not able to assess this image for policy reasons.
I cannot in good conscience rate this image.
I can't evaluate this image, but the form asks for a number.
I refuse to rate this.
I'd rather not score this picture.
I apologize, but I cannot fulfill this request.
I'm unable to comply with this request.
Sorry, I can't help with that.
Unable to evaluate the image.
Unable to evaluate.
Not able to assess.
Cannot be evaluated.
This image cannot be evaluated due to its content.
I give no rating.
Ich kann dieses Bild nicht bewerten.
Dieses Bild kann ich leider nicht beurteilen.
Das kann ich leider nicht bewerten.
Tut mir leid, dabei kann ich nicht helfen.
Je ne peux pas évaluer cette image.
Désolé, je ne peux pas vous aider avec cette demande.
No puedo evaluar esta imagen.
Lo siento, no puedo ayudar con eso.
Não posso avaliar esta imagem.
Non posso valutare questa immagine.
Я не могу оценить это изображение.
Ik kan deze afbeelding niet beoordelen.
Nie mogę ocenić tego obrazu.
Bu görseli değerlendiremem.
Tôi không thể đánh giá hình ảnh này.
Saya tidak dapat menilai gambar ini.
Jag kan inte bedöma bilden.
Nemohu ohodnotit tento obrázek.
لا أستطيع تقييم هذه الصورة.
मैं इस छवि का मूल्यांकन नहीं कर सकता।
我无法评价这张图片。
抱歉，我无法对该图片进行评分。
画像を評価できません。
この画像の評価はできません。
이 이미지를 평가할 수 없습니다.
죄송하지만 도와드릴 수 없습니다.""".splitlines()
JUDGES = """\
The back is hidden; I cannot evaluate it.
I could not help noticing the faces.
I cannot give a higher score because the hat is missing.
I can't rate this image any higher.
I will not rate this image lower because of the hat.
I couldn't rate this image higher.
I can't give a perfect score because the hat is missing.
This cannot be rated as excellent.
The image cannot be rated as excellent.
I cannot judge this image as the best one.
I can't evaluate the text rendering fully, but the rest is fine.
I can't fully evaluate the image, but it is close.
I cannot judge the image by its colours alone.
I can't rate this image, only the crop.
I can't assess the back side, so I judge the front.
The text is tiny; I can't assess it.
The hidden side: cannot judge.
Hands: unable to evaluate.
The back of the image cannot be judged.
I can't help but notice the missing hat.
I cannot call this image a success.
I cannot assess the caption on the sign.
The model was unable to render the hat.
The man cannot help the dog.
The sign reads "I can't rate this image".
The sign says I cannot rate this image.
If I can't rate this image, I give 0.
Ich kann dieses Bild nicht besser bewerten.
Ich kann die Rückseite nicht beurteilen.
Je ne peux pas évaluer le texte.
No puedo evaluar el texto.
Я не могу оценить текст.
Ik kan de achterkant niet beoordelen.
背面无法评价。
画像の背面は評価できません。""".splitlines()
OF_A_CAPTION = {
    "The caption says it cannot assist.": 0,
    "The output is a refusal: I'm sorry, but I can't assist with that.": 0,
    "The model output says: I can't rate this image.": 0,
    "The output reads: I'm sorry, I cannot evaluate this image.": 0,
    'The caption "I can\'t assist with that request" is no caption.': 0,
    "Output: I'm sorry, but I can't assist with that request.": 0,
    "The output is just I'm sorry, but I can't assist with that.": 0,
    'A refusal ("I can\'t evaluate this image") is no caption.': 0,
    "The model refuses to evaluate the image.": 0,
    "I cannot evaluate this caption.": "refusal",
    "I can't judge this output because it is explicit.": "refusal",
    "I cannot assist with that.": "refusal",
}  # fmt: skip
FORMS: dict[str, tuple[str, Callable[[str], str]]] = {
    "before": ("alignment", lambda words: f"{words}\n\nScore: 1"),
    "in the reasoning": ("alignment", lambda words: f"Reasoning: A cat sits there. {words}\nScore: 1"),
    "behind": ("alignment", lambda words: f"Score: 1\n{words}"),
    "in an object": ("caption", lambda words: json.dumps({"score": 1, "reason": words}, ensure_ascii=False)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("words", DECLINES)
def test_a_judge_that_declines_gives_no_score(shipped: dict[str, Rubric], words: str, form: str) -> None:
    rubric_id, write = FORMS[form]
    assert parse_reply(shipped[rubric_id], write(words), {}).as_dict() == {"error": "refusal"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("words", JUDGES)
def test_words_that_only_sound_like_a_refusal_cost_no_score(shipped: dict[str, Rubric], words: str, form: str) -> None:
    rubric_id, write = FORMS[form]
    assert parse_reply(shipped[rubric_id], write(words), {}).as_dict()["scores"] == {"score": 1}


@pytest.mark.parametrize(("words", "said"), OF_A_CAPTION.items())
def test_the_refusal_of_a_text_is_not_the_judges(shipped: dict[str, Rubric], words: str, said: object) -> None:
    found: dict[str, Any] = parse_reply(shipped["caption"], json.dumps({"score": 0, "reason": words}), {}).as_dict()
    assert (found.get("error") or found["scores"]["score"]) == said


@pytest.mark.parametrize(
    ("rubric_id", "reply"),
    [
        ("alignment", "I can't rate this image.\nScore: -1"),
        ("alignment", "I can't rate this image.\nScore: 8/10"),
        ("alignment", "Score: 0 (unable to evaluate)"),
        ("interleaved", "I can't rate this image.\n[Text Response Quality: 0; Image Response Quality: N/A]"),
    ],
)
def test_a_refusal_precedes_what_is_wrong_with_its_number(shipped: dict[str, Rubric], rubric_id: str, reply: str) -> None:
    assert parse_reply(shipped[rubric_id], reply, {}).as_dict() == {"error": "refusal"}


@pytest.mark.parametrize(
    ("more", "reply", "context"),
    [
        ("", "No. I can't evaluate this image.", {}),
        (
            "probability = {}\n",
            "No, I cannot assess this image.",
            {"logprobs_json": {"content": [{"token": "No", "logprob": 0}]}},
        ),
    ],
    ids=["a word", "a probability"],
)
def test_so_does_one_beside_a_word(tmp_path: Path, more: str, reply: str, context: dict[str, object]) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "rubric.toml").write_text(HEAD.format(id="words", reply="answer", more=f"{more}{YES_NO}"))
    (tmp_path / "words" / "prompt.txt").write_text("{prompt}: yes or no?")
    assert parse_reply(load_rubric(tmp_path / "words"), reply, context).as_dict() == {"error": "refusal"}
