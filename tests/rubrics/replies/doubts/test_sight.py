"""What a judge says of its own sight, and what it tells of pictures and of texts under judgement. Tables of replies."""

import json

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

NOTHING = {
    "preference": [
        "Only one image was provided.",
        "Neither image is visible to me.",
        "Image 2 is missing.",
        "I cannot view either picture.",
        "Both images failed to load.",
        "The second image is missing.",
        "The second image did not load.",
        "I can only see one image.",
        "There is only one image here.",
        "I received only the first image.",
        "Only the first picture came through.",
        "The second picture could not be opened.",
        "No second image was provided.",
        "Neither of the two images was attached.",
        "I was given only one picture.",
        "One of the images is missing.",
        "One of the two pictures did not load.",
        "I cannot see the second image.",
        "I can't see image 2, so the first wins.",
        "The other image was not attached.",
        "Please upload the second image.",
        "There is no second image.",
        "Image 1 could not be loaded.",
        "The first image appears to be corrupted.",
        "I could see neither image.",
        "Neither loaded, so I pick the first.",
        "Without the second image I default to the first.",
        "Either image is unavailable; the second image is not visible to me.",
        "Just one of the two images was received.",
        "The second image is empty.",
        "I do not have access to either image.",
        "I am unable to open one of the images.",
    ],
    "duel": [
        "Winner: A but I could not see image B",
        "Winner: A (image B did not load)",
        "Only image A was provided.\nWinner: A",
        "Neither image is visible to me.\nWinner: tie",
    ],
    "alignment": [
        "Image content unavailable.",
        "No image.",
        "No image attached",
        "No picture.",
        "image not found (404)",
        "It would have been 4 if the picture had loaded.",
        "The image could not be processed.",
        "Attachment not found.",
        "Had the image been provided, it would have been a 4.",
        "I would have given a 4 had I seen the image.",
        "If the picture had loaded, this would be a 4.",
        "The score would be 4 if I could see the image.",
        "Photo inaccessible.",
        "The image data is not available.",
        "The picture could not be decoded.",
        "Image unavailable (error 403).",
        "The photo cannot be read.",
        "The image would not open on my end.",
        "The model says I cannot see the image; no image was provided.",
        "The image says it cannot be loaded: no image was provided.",
        "As the model, I cannot see the image.",
        "I, the model, cannot view the image.",
    ],
    "alignment, whole": [
        "[image could not be processed]\nScore: 4",
        "[Image unavailable]\nScore: 4",
        "(image missing)\nScore: 4",
        "Here is an example of how I would answer:\nReasoning: The cat is there.\nScore: 4",
        "Score: 4 (placeholder)",
        "Score: 4 (dummy value)",
        "Score: 4 (default)",
        "Score: 4 [placeholder]",
        "Sample output:\nReasoning: The cat is there.\nScore: 4",
        "This is only an example answer.\nScore: 4",
        "Score: 4 (hypothetical)",
        "Score would have been 4 if the picture had loaded.\nScore: 4",
        "Here's a sample evaluation:\nScore: 4",
        "The score is purely hypothetical.\nScore: 4",
        "Score: 4 (random)",
    ],
    "caption": [
        "No image was provided.",
        "I cannot see the image the caption describes.",
        "The output says a dog, but no image was provided to me.",
        "The caption mentions a dog. I cannot see the image.",
        "The caption says that a dog runs, but I cannot view the picture.",
        "The caption is fine, but the image did not load.",
        "The image could not be loaded, so I cannot check what the output says.",
        "I say that I cannot see the image.",
        "I must say no image was attached.",
        "The image is missing. The caption says a dog.",
        "The caption describes a dog; the image is not visible to me.",
        "The output says there is a dog, while the image failed to load.",
        "My answer is a guess: no image was provided.",
    ],
    "interleaved": [
        "The response says little. I cannot see the image.",
        "No image was provided.",
        "I cannot view the picture that the response speaks of.",
    ],
}  # fmt: skip
SEEN = {
    "preference": [
        "Image 2 is missing the cat.",
        "The second image is missing the dog.",
        "Neither image shows the cat.",
        "Neither picture is sharp, but the first follows the prompt.",
        "In the second image the cat is missing.",
        "The second image lacks the cat.",
        "Only one image shows the cat.",
        "Only the first image has the cat.",
        "Neither is visible: the cup or the can.",
        "The cup is not visible in the second image.",
        "The first image shows a blank wall.",
        "Image A is not loaded with detail, it is calm.",
        "The second image has no cat.",
        "Neither image includes the text.",
        "Both images are missing the hat.",
        "The second image is empty of people.",
        "I see only one cat in the second image.",
        "The second image shows an empty, blank sky.",
        "Either image would do.",
        "One image is sharper.",
        "The second picture does not load the scene with clutter.",
        "I prefer the first image, since the second is blurry.",
        "Neither image was provided with a frame by its painter.",
        "No second cat is there in the first image.",
        "The second image shows a broken cup.",
        "Only image 1 is in watercolour.",
        "Image 2 is not available light; it is flash.",
        "The images should hold three cups; none are red.",
        "The hat is missing from the second image.",
        "The second image could not be further from the prompt.",
        "Image 2 was not given the blue tint.",
    ],
    "alignment": [
        "The wall is bare. No picture on it.",
        "The wall is bare. No pictures.",
        "A sign reads: no picture",
        "No image artefacts.",
        "Only one image of the moon hangs there.",
        "The image should hold cups, and none are visible.",
        "The second image in the diptych is missing the dog.",
        "The image should show cups but none is there.",
        "If the picture had shown a cat it would have been 5.",
        "Had the image included the dog, this would have been a 5.",
        "It would have been perfect with a dog.",
        "The image shows an example of Gothic style.",
        "A good example of how light falls.",
        "A placeholder text stands on the poster.",
        "The default look of the model.",
        "The image of the dog is missing its tail.",
        "The text in the image is not found in the prompt.",
        "The picture could not be closer to the prompt.",
        "It would be a 5 if the can were there.",
        "The image would be better if it had a dog.",
        "A sample of fabric is shown (red).",
        "The dummy in the window wears a hat.",
        "An image missing nothing.",
        "The image, missing the hat, is close.",
        "The can is missing from the picture.",
        "The photo cannot be read as night.",
        "The prompt asks for a random pattern (random dots).",
        "The image could not be read as a painting.",
        "If I see the image as a whole it is fine.",
        "The wall looks as if the paint had arrived yesterday.",
        "Had I to choose, the dog is best.",
        "With the provided image, I would say the cat is there.",
        "The poster says image not found (404).",
        "The screen in the picture shows 'image unavailable'.",
        "The output says it cannot see the image.",
        "The response states that no image was provided.",
    ],
    "alignment, whole": [
        "Score: 4 (good)",
        "Score: 4 (example: the cat is there)",
        "Score: 4 (all default elements are there)",
    ],
    "caption": [
        "The model output says it cannot see the image, so it is irrelevant.",
        "The output states that it is unable to view images.",
        "The caption claims no image was provided, which is false.",
        "Instead of a caption the model asks the user to upload the image.",
        "The model failed to describe the image and replied that it cannot access it.",
        "The output is a refusal; the model says that it can't see any picture.",
        "The model output says no image was given; total hallucination.",
        "The caption is empty and says the image could not be loaded.",
        "The model output: cannot view the image. Useless.",
        "Completely irrelevant: the output says that the image was not uploaded.",
        'The output "I cannot see the image" is not a caption.',
        'The model replied "Please upload the image."',
        "The model's output is a generic refusal (I can't view images).",
        "It says it cannot see the image.",
        "It admits that no picture was received.",
        "The response apologises for not being able to see the image.",
        "The output claims that no image was attached, but there is one.",
        "The caption only says it is unable to view images.",
        "The text is a refusal stating that no image was provided.",
        "The model asks for the image to be uploaded.",
        "Its claim that no image was provided is false.",
        "The answer tells the user to attach a picture.",
        "The model refuses, saying it has no access to the image.",
        "No image was given, according to the output.",
        "The candidate output wrongly asserts that the image is missing.",
        "The output says: I cannot see any image.",
    ],
    "interleaved": [
        "The response says it cannot generate or view images, so the image is missing.",
        "The assistant says that it cannot see the image the user mentions.",
        "The answer asks the user to upload a picture.",
        "The response claims that no image was attached.",
    ],
}  # fmt: skip


def written(name: str, words: str) -> str:
    """A reply of the rubric with these words about its scores."""
    if name == "preference":
        return json.dumps({"reason": words, "alignment": "first", "quality": "first", "overall": "first"})
    if name == "caption":
        return json.dumps({"score": 0, "reason": words})
    if name == "interleaved":
        return (
            f"{words}\n[Text Response Quality: 1; Image Response Quality: 0; Image Aesthetic Quality: 0; Text-Image Synergy: 0]"
        )
    return f"Reasoning: {words}\nScore: 4" if name == "alignment" else words


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, replies in NOTHING.items() for words in replies])
def test_a_judge_that_saw_nothing_gives_no_score(doubtful: dict[str, Rubric], name: str, words: str) -> None:
    said = parse_reply(doubtful[name.partition(",")[0]], written(name, words), {})
    assert said.as_dict() == {"error": "missing_input"}


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, replies in SEEN.items() for words in replies])
def test_words_about_what_was_seen_cost_no_score(doubtful: dict[str, Rubric], name: str, words: str) -> None:
    said = parse_reply(doubtful[name.partition(",")[0]], written(name, words), {})
    assert isinstance(said, ReadScores), said


def test_one_picture_of_several_is_asked_for_where_several_are_shown(doubtful: dict[str, Rubric]) -> None:
    assert isinstance(parse_reply(doubtful["alignment"], "Reasoning: Only one image was provided.\nScore: 4", {}), ReadScores)
