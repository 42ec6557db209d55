"""Corrupted, failed, broken: said of a picture that came and is bad, and of one that never came. A table of each."""

import json

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

BAD = [
    "The image failed to load the texture of the coat.",
    "The image failed to load some of the details.",
    "The image looks corrupted or distorted.",
    "The image failed to render the text.",
    "The image failed to render text correctly.",
    "The image failed to render hands.",
    "The image failed to display HELLO.",
    "The image failed to display 'HELLO'.",
    "The image failed to render a second cat.",
    "The image failed to render and place the second cat.",
    "The image failed to properly render the text; only the word CAT is there.",
    "The image failed to render the text; it shows only the word CAT.",
    "The image failed to render legible lettering on the sign.",
    "The picture failed to display any of the words.",
    "The image is corrupted by noise and I cannot see any cat.",
    "The image is badly corrupted.",
    "The image shows a cat with corrupted hands, and the text is missing.",
    "The image contains corrupted text.",
    "The photo is corrupted by digital artifacts; the cat is unrecognizable.",
    "The image is broken: the hands are melted.",
    "The image is broken, with melted hands.",
    "The image looks corrupted; the lower half is noise.",
    "The image looks corrupt.",
    "The face in the image looks corrupted.",
    "The image has corrupted regions.",
    "The picture failed to render correctly the second cat.",
    "The picture failed to load the details of the face.",
    "The image failed to render two of the three words in the prompt.",
    "The image is visually corrupted.",
    "Image 2 failed to render the requested style.",
    "The image failed to render in the requested style.",
    "The image failed to show the cat; only the text of the prompt is drawn.",
]
NEVER_CAME = [
    "The image failed to load in the viewer.",
    "The image failed to load into my context.",
    "The image failed to load / is not visible.",
    "The image failed to load anything.",
    "The image failed to load its data.",
    "The image failed to load the image file.",
    "The image failed to display anything.",
    "The image failed to render any content, so I cannot see it.",
    "The image failed to render as an attachment.",
    "The image looks corrupted or was not uploaded.",
    "The image looks corrupted on my end.",
    "The image is corrupted or incomplete.",
    "The image is broken: not available.",
    "The image link is broken: the page is gone.",
    "The image is broken: nothing loads.",
    "The image failed to load.",
    "The image failed to load on my side.",
    "The image failed to load, so I score it low.",
    "The image failed to load and I cannot judge it.",
    "The picture failed to render in my viewer.",
    "The image failed to display correctly.",
    "The image failed to display for me.",
    "The image failed to load because of a network error.",
    "The image file is corrupted.",
    "The image file looks corrupted.",
    "The image file is corrupted and cannot be opened.",
    "The image file is corrupted and cannot be displayed.",
    "The image is corrupted and cannot be opened.",
    "The image is corrupted.",
    "The image appears to be corrupted.",
    "The image looks corrupted and could not be opened.",
    "The picture is corrupted, so I cannot evaluate it.",
    "The image was corrupted by the upload.",
    "The image was corrupted by a network error.",
    "The image was corrupted during transfer.",
    "The image is completely corrupted. I cannot view it.",
    "The image came through corrupted.",
    "The image you sent is corrupted.",
    "The attachment is corrupt.",
    "The image is broken.",
    "The image is broken: the link returns an error.",
    "The image is broken, I cannot see it.",
    "The uploaded image failed to open.",
    "The image failed to come through.",
    "The image looks corrupted; I can't open the file.",
    "The output failed to render; I only have the prompt.",
    "The image looks heavily corrupted and won't open.",
    "The image data is corrupted.",
    "The image failed to load (404).",
    "The image failed to load with error 404.",
    "The image failed to render properly, so only the prompt was judged.",
    "The image is corrupted by artifacts and cannot be displayed.",
]


def said_of(doubtful: dict[str, Rubric], words: str) -> list[list[float] | str]:
    """What is read of a line, of an object and of an answer with these words."""
    replies = {
        "alignment": f"Reasoning: {words}\nScore: 1",
        "json10": json.dumps({"reason": words, "score": 1}),
        "yesno": f"No. {words}",
    }
    said = [parse_reply(doubtful[name], reply, {}) for name, reply in replies.items()]
    return [[*one.scores.values()] if isinstance(one, ReadScores) else one.reason for one in said]


@pytest.mark.parametrize("words", BAD, ids=str)
def test_a_bad_picture_came(doubtful: dict[str, Rubric], words: str) -> None:
    assert said_of(doubtful, words) == [[1], [1], [0]]


@pytest.mark.parametrize("words", NEVER_CAME, ids=str)
def test_a_picture_that_cannot_be_opened_never_came(doubtful: dict[str, Rubric], words: str) -> None:
    assert said_of(doubtful, words) == ["missing_input"] * 3
