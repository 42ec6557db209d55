"""Keys that take a score back, in further spellings, in a text of an object, and declared labels that only sound like one."""

from pathlib import Path

import pytest

from rubrics.loading import load_rubric
from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

BRACKET = "[Text Response Quality: 4; Image Response Quality: 4; Image Aesthetic Quality: 4; Text-Image Synergy: 4]"
ASPECTS = (
    '{"accuracy_to_prompt": 6, "creativity_and_originality": 6, "visual_quality_and_realism": 6, "consistency_and_cohesion": 6,'
    ' "emotional_or_thematic_resonance": 6, "overall_score": 6}'
)
# rubric -> (its answer, the number everywhere in it, another on its scale)
ANSWERS = {
    "alignment": ("Score: 4", 4, 3),
    "caption": ('{"score": 3, "reason": "ok"}', 3, 2),
    "interleaved": (BRACKET, 4, 3),
    "image_aspects": (ASPECTS, 6, 3),
}
OF_THE_WHOLE = [
    "new_score: %s", "score_revised: %s", "score_after_review: %s", "my_score: %s", "_final_score_: %s", "> final_score: %s",
    "1. final_score: %s", "final_ score: %s", "RevisedRating: %s", "finalscore: %s", "FINALSCORE = %s", "final_score: **%s**",
    "final_score is %s", "The final_score should be %s.", "I change final_score to %s.", "FinalScore → %s",
    "reconsidered_rating: %s", "definitiveScore = %s", "score_including_penalty: %s",
]  # fmt: skip
OF_A_DIMENSION = {
    "interleaved": [
        "Revised_Text_Image_Synergy: %s", "finalTextResponseQuality: %s", "FinalTextImageSynergy = %s",
        "revised-text-image-synergy: %s", "text_image_synergy_revised: %s", "my_text_response_quality: %s",
        "`corrected_image_content_quality`: %s",
    ],
    "image_aspects": [
        "FinalOverallScore: %s", "revised_accuracy_to_prompt: %s", "final_rating: %s", "revised overall_score: %s",
        "corrected-creativity-and-originality: %s", "**Revised_Accuracy_To_Prompt** = %s",
    ],
}  # fmt: skip
KEYS = [(name, key) for name in ("alignment", "caption") for key in OF_THE_WHOLE]
KEYS += [(name, key) for name, keys in OF_A_DIMENSION.items() for key in keys]


def said(rubric: Rubric, reply: str) -> object:
    read = parse_reply(rubric, reply, {})
    return set(read.scores.values()) if isinstance(read, ReadScores) else read.reason.value


@pytest.mark.parametrize(("name", "key"), KEYS)
def test_another_number_under_a_key_makes_it_none_and_the_same_does_not(shipped: dict[str, Rubric], name: str, key: str) -> None:
    answer, number, other = ANSWERS[name]
    assert said(shipped[name], f"{answer}\n{key % other}") == "ambiguous"
    assert said(shipped[name], f"{answer}\n{key % number}") == {number}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_key_before_the_answer_contradicts_it_too(shipped: dict[str, Rubric], name: str) -> None:
    answer, number, other = ANSWERS[name]
    key = "revised_text_image_synergy" if name == "interleaved" else "final_score"
    assert said(shipped[name], f"{key}: {other}\n{answer}") == "ambiguous"
    assert said(shipped[name], f"{key}: {number}\n{answer}") == {number}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("The final_score is 3.", "ambiguous"),
        ("The final-score is 3.", "ambiguous"),
        ("The FinalScore is 3.", "ambiguous"),
        ("My overall-rating: 3.", "ambiguous"),
        ("On a FinalScore of 4 I stay.", {4}),
        ("A phone beside the iRate 3.", {4}),
        ("A well-marked trail, 3 signs.", {4}),
    ],
)
def test_in_a_sentence_of_a_string(shipped: dict[str, Rubric], reason: str, expected: object) -> None:
    """No number there is loose, so that the words alone tell."""
    assert said(shipped["caption"], f'{{"score": 4, "reason": "{reason}"}}') == expected


@pytest.mark.parametrize(
    "line",
    [
        "realism_score: 3", "style_score = 3", "sub-score: 3", "styleScore: 3", "img_3: final", "n_cats: 3", "catsSeen: 3",
        "file_name: cat_3.png", "An iPhone with 3 cats.", "A well-lit cat, 3 years old.", "resolution_of_image = 3",
        "re-scan: 3 cats", "final_count_of_cats: 3", "The final_check found 3 cats.",
    ],
)  # fmt: skip
def test_keys_of_other_things_take_nothing_back(shipped: dict[str, Rubric], line: str) -> None:
    for name, reply in (("alignment", f"Score: 4\n{line}"), ("caption", f'{{"score": 4, "reason": "ok"}}\n{line}')):
        assert said(shipped[name], reply) == {4}


def test_what_is_corrected_before_the_answer_is_reasoning(shipped: dict[str, Rubric]) -> None:
    reasoning = "Reasoning: Wait, a 3. " + "The cat sits on its mat, as asked. " * 9
    assert said(shipped["alignment"], f"{reasoning}\nScore: 4\nThere are 2 cats.") == {4}
    assert said(shipped["alignment"], f"Score: 4\nThere are 2 cats. {reasoning}") == "ambiguous"


def test_overall_alone_is_a_key_behind_the_answer_and_before_it_sums_up_parts(shipped: dict[str, Rubric]) -> None:
    assert said(shipped["alignment"], "Reasoning: Compliance: 2\nNaturalness: 2\nOverall: 5\nScore: 4") == {4}
    assert said(shipped["alignment"], "Score: 4\nOverall: 5") == "ambiguous"


def of_two(folder: Path, form: str, keys: tuple[str, str]) -> Rubric:
    folder.mkdir()
    (folder / "prompt.txt").write_text("{prompt}: judge it.")
    (folder / "rubric.toml").write_text(
        f'id = "{folder.name}"\nversion = "1"\ntitle = "T"\nsource = "the tests"\nprompt = "prompt.txt"\nreply = "{form}"\n'
        'needs = ["prompt", "image"]\nunit = ["prompt"]\nscale = { min = 1, max = 5, step = 1 }\n'
        + "".join(f'[[dimensions]]\nkey = "{key}"\n' for key in keys)
        + '[[messages]]\nrole = "user"\nparts = [{ kind = "template" }, { kind = "image" }]\n'
    )
    return load_rubric(folder)


@pytest.mark.parametrize("form", ["label", "bracket", "json"])
@pytest.mark.parametrize(
    "keys",
    [
        ("new_score", "style_score"), ("style_score", "revised_score"), ("position_accuracy", "total_score"),
        ("correction", "style"), ("overall_score", "final_score"), ("corrected_position", "position"), ("update", "style_update"),
    ],
    ids="-".join,
)  # fmt: skip
def test_a_declared_label_that_sounds_like_a_correction_is_an_answer(tmp_path: Path, form: str, keys: tuple[str, str]) -> None:
    """However it is spelled; and with another number on a further line it contradicts itself."""
    rubric = of_two(tmp_path / "two", form, keys)
    for first, second in (
        keys,
        [key.replace("_", " ") for key in keys],
        [key.title().replace("_", "") for key in keys],
    ):
        reply = {
            "label": f"{first}: 3\n{second}: 5",
            "bracket": f"[{first}: 3; {second}: 5]",
            "json": f'{{"{first}": 3, "{second}": 5}}',
        }[form]
        for more in ("", "\nThere are 2 cats.", f"\n{second}: 5"):
            read = parse_reply(rubric, reply + more, {})
            assert read.as_dict() == {"scores": dict(zip(keys, (3, 5), strict=True))}, (reply, more)
        assert said(rubric, f"{reply}\n{second}: 3") == "ambiguous"


@pytest.mark.parametrize(("number", "expected"), [(3, {3, 5}), (5, "ambiguous"), (2, "ambiguous")])
def test_a_declared_label_within_a_string_is_held_against_its_own_score(tmp_path: Path, number: int, expected: object) -> None:
    rubric = of_two(tmp_path / "two", "json", ("new_score", "style_score"))
    assert said(rubric, f'{{"new_score": 3, "style_score": 5, "reason": "New score: {number}."}}') == expected
