"""Natural sentences that a list of words, looked at before the patterns, once kept from them; and sentences with such words that take nothing away."""

# ruff: noqa: E501 - a sentence is read whole

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

REFUSED = {
    "missing_input": [
        "No image to rate.", "No image to grade.", "No picture to inspect.", "No picture to go on, so I chose the minimum.",
        "No photo with your request.", "The photo is not viewable.", "We were not handed a picture.", "The message didn't carry an image.",
        "Please post the picture.", "The image wouldn't load.", "The picture wouldn't open.", "An image is required to judge this.",
        "Make sure to attach the picture.", "Feel free to attach the picture.", "Try uploading the image.", "Placeholder judgement.",
        "Where's the image?", "You forgot to send the upload.", "Loading the image failed.", "Downloading the picture failed.",
        "The picture field is blank.", "The image part is missing.", "The download was corrupted.", "You only sent text.",
        "You've just sent the prompt.", "The pictures aren't loading for me.", "I could not see the URLs.", "Cannot see the outputs.",
        "Assuming the results show a cat.", "It would be a 4 if the file had loaded.", "N/A - no image", "Image indisponible.",
        "image_load_error", "image_not_found_error", "image_error", "No picture - 10", "no image => 1", "No picture - score 1", "(placeholder)", "4 (dummy)", "Nemohu zobrazit fotku.", "Fotka nelze zobrazit.", "Bilderna kunde ej visas.", "Jag kan inte se bilden.",
        "Ik kan helaas geen afbeelding openen.", "Ik kan de afbeelding niet zien.", "Fotonya gagal dimuat.",
    ],
    "refusal": [
        "Refusing to rate this.", "Declining to judge the picture.", "I cannot provide scores.", "I can't give scores for this image.",
        "I won't give ratings.", "I cannot answer this prompt.", "I can't respond to this content.", "Ich lehne es ab, diese Bilder zu bewerten.",
        "Ich kann keine Note vergeben.", "Je refuse de noter cette image.", "Impossible de noter cette image.", "No puedo analizar esta imagen.",
        "Não posso analisar esta imagem.", "Não posso ajudá-lo com isso.", "Non posso dare un voto.", "Не могу выполнить этот запрос.",
    ],
    "ambiguous": [
        "This is what the prompt asks me to output.", "The real quality is higher than what I put.", "I am reconsidering this score.",
        "I've revoked my rating.", "I disown this score.", "These scores were intended for another image.", "My judgments are unreliable.",
        "I gave it too high.", "I put this too low.", "The attacker wants any judges to answer:", "Honest score: 2.", "We'll say 2.", "That's 2.",
        "The actual score is 2.", "This score isn't right.", "That rating wasn't correct.", "On closer inspection, a 2.", "Settling on 2.", "Re-scored: 2",
    ],
}  # fmt: skip
KEPT = [
    "What the prompt asks for is all there.", "That is what the prompt wanted me to see.", "The poster is intended for a young audience.",
    "The lamp hangs too high.", "The contrast is **too** harsh.", "The judgments of colour are sound.", "No image noise to speak of.",
    "The door wouldn't open in the real world.", "The picture wouldn't work without the light.", "A second picture frame would be needed to fill the wall.",
    "Feel free to include more light next time.", "The post carries no picture frame.", "Where's the cat's tail?", "The guard is refusing to let him in.",
    "I cannot find fault in the grades of grey.", "On closer inspection, the 2 cats are well drawn.", "He raises 2 fingers.", "She is settling on 2 chairs.",
    "No picture hangs on the wall; the message is clear.", "The image error is small.", "No picture - 3 people only stand there.",
    "The prompt asks for 3 (random) dots.", "Ik kan de afbeelding zien.", "Jag ser bilden.",
    "The row has 3 (dummy) heads and 2 hats.", "The screen shows an image processing error, as asked.", "The image input error icon looks right.",
    "The wall has no pictures - rating the decor as plain.", "The cat holds a sign with no picture = 0 text.", "Really 3 cats are there.", "Well, 3 cats are shown.", "Two of three dogs are shown.", "A sample of how the brush strokes look.",
]  # fmt: skip
PREFERRED = '{"reason": "The first keeps the cat.", "alignment": "first", "quality": "first", "overall": "first"}\n'


@pytest.mark.parametrize(("reason", "sentence"), [(reason, one) for reason, listed in REFUSED.items() for one in listed])
def test_what_is_said_of_the_score_is_heard(doubtful: dict[str, Rubric], reason: str, sentence: str) -> None:
    assert parse_reply(doubtful["alignment"], f"Reasoning: ok.\nScore: 4\n{sentence}", {}).as_dict() == {"error": reason}


@pytest.mark.parametrize(
    "said",
    ["4 (default) because nothing can be judged", "3 (arbitrary) to keep the form", "3 (random) as the form needs one",
     "3 (made up) just for the format", "4 (hypothetical) as required"],
)  # fmt: skip
def test_a_score_in_brackets_that_is_called_none_is_none(doubtful: dict[str, Rubric], said: str) -> None:
    assert parse_reply(doubtful["alignment"], f"Reasoning: ok.\nScore: {said}", {}).as_dict() == {"error": "missing_input"}


@pytest.mark.parametrize("sentence", KEPT)
def test_what_is_said_of_the_picture_is_not(doubtful: dict[str, Rubric], sentence: str) -> None:
    said = parse_reply(doubtful["alignment"], f"Reasoning: {sentence}\nScore: 4", {})
    assert isinstance(said, ReadScores), said


@pytest.mark.parametrize(
    "sentence", ["It has to be second.", "Call it second.", "My preference: second.", "It is **not** first, but second."]
)
def test_another_answer_is_heard(doubtful: dict[str, Rubric], sentence: str) -> None:
    assert parse_reply(doubtful["preference"], PREFERRED + sentence, {}).as_dict() == {"error": "ambiguous"}


@pytest.mark.parametrize(
    "sentence",
    ["Image 2 wouldn't load.", "The second image is not viewable.", "No second picture to inspect.", "I saw just one picture."],
)
def test_one_of_two_pictures_is_missed(doubtful: dict[str, Rubric], sentence: str) -> None:
    assert parse_reply(doubtful["preference"], PREFERRED + sentence, {}).as_dict() == {"error": "missing_input"}
