"""Items: which lists cannot be asked, and replies that answer several, of which each answer must be the item's own."""

# ruff: noqa: E501 - a reply is read whole, a line each

import json
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from rubrics.items import BadItems, items_of
from rubrics.loading import load_rubric
from rubrics.model import Dimension, Items, ItemText, Rubric
from rubrics.replies.items.lines import read_lines
from rubrics.replies.items.lists import read_list
from rubrics.replies.jsonl import parse_jsonl_line
from rubrics.replies.read import parse_reply
from schemas.errors import InputError
from schemas.records import Unreadable

YES_NO = Dimension("answer", ("answer",), 0, 1, answers=(("yes", 1.0), ("no", 0.0)))
NUMBER = Dimension("answer", ("answer",), 0, 10)
TWO = [{"id": "a", "text": "Is it red?"}, {"id": "b", "text": "Is it big?"}]
SHOWN = Items("items", True, {"questions": ItemText("{question}")}, {"text": "question"})
FOUR = [{"id": id_, "text": f"Is it {word}?"} for id_, word in zip("abcd", ("red", "big", "round", "wet"), strict=True)]
PLAIN = [{"id": id_, "text": word} for id_, word in zip("abcd", ("red", "red hat", "hat", "wet"), strict=True)]
DECLARED = """\
id = "asked"
version = "1"
title = "Items"
source = "written for the tests"
prompt = "prompt.txt"
reply = "{reply}"
needs = ["items", "image"]
unit = ["items"]
{scale}
[[dimensions]]
key = "answer"
[items]
column = "items"
asked = "together"
texts = {{ questions = {{ each = "{each}" }} }}
[[figures]]
key = "score"
form = "mean"
[[messages]]
role = "user"
parts = [{{ kind = "template" }}, {{ kind = "image" }}]
"""


def rubric_of(
    folder: Path, scale: str = "answers = { yes = 1, no = 0 }", each: str = "{question}", reply: str = "lines"
) -> Rubric:
    (folder / "asked").mkdir(parents=True)
    (folder / "asked" / "rubric.toml").write_text(DECLARED.format(scale=scale, each=each, reply=reply))
    (folder / "asked" / "prompt.txt").write_text("{questions}")
    return load_rubric(folder / "asked")


@pytest.mark.parametrize(
    ("reply", "dimension", "said"),
    [
        ("1.5\n2.5", NUMBER, [1.5, 2.5]),
        ("- 7.5\n- 3.5", NUMBER, [7.5, 3.5]),
        ("1. 7.5\n2. 3", NUMBER, [7.5, 3]),
        ("0) 7.5\n1) 3", NUMBER, [7.5, 3]),
        ("4: 2, since it has two legs\n3: 1, since one is cut", NUMBER, ["ambiguous", "ambiguous"]),
        ("1. yes\n2. no\n\nOnce more:\n1. yes\n2. no", YES_NO, [1, 0]),
        ("1. yes\n2. no\n\nOnce more:\n1. no\n2. no", YES_NO, "ambiguous"),
        ("1. yes\n1. no\n2. yes", YES_NO, "ambiguous"),
        ("The answer:\nyes", YES_NO, "not_found"),  # the second item's, by its place
    ],
)
def test_lines(reply: str, dimension: Dimension, said: object) -> None:
    assert read_lines(reply, dimension, TWO) == said


LOST = "missing_key"


@pytest.mark.parametrize(
    ("reply", "dimension", "items", "said"),
    [
        ("1. yes\n2. no\n4. yes", YES_NO, FOUR, [1, 0, LOST, 1]),
        ("Here are the answers:\n- Q2: no\n- Q4: yes", YES_NO, FOUR, [LOST, 0, LOST, 1]),
        ("0. yes\n1. no\n3. yes", YES_NO, FOUR, [1, 0, LOST, 1]),
        ("1. yes\n2. perhaps\n4. yes", YES_NO, FOUR, [1, "wrong_type", LOST, 1]),
        ("1: 7\n3: 2, since one is cut\n4: 9", NUMBER, FOUR, [7, LOST, "wrong_type", 9]),
        ("Is it wet? no\nIs it red? yes", YES_NO, FOUR, [1, LOST, LOST, 0]),
        ("1. Is it red? yes\n2. Is it round? no", YES_NO, FOUR, [1, LOST, 0, LOST]),
        ("red: yes\nwet: no", YES_NO, PLAIN, [1, LOST, LOST, 0]),
        ("1. yes\n2. no\n3. yes", YES_NO, FOUR, LOST),  # its own count, or the last left out
        ("yes\nno\nyes", YES_NO, FOUR, LOST),
        ("1. yes\nno\n4. yes", YES_NO, FOUR, LOST),
        ("1. yes\n1. yes\n4. yes", YES_NO, FOUR, LOST),
        ("2. yes\n1. yes\n4. yes", YES_NO, FOUR, LOST),
        ("1. yes\n2. no\n5. yes", YES_NO, FOUR, LOST),
        ("0. yes\n2. no\n4. yes", YES_NO, FOUR, LOST),
        ("4. yes", YES_NO, FOUR, "not_found"),
        ("1. yes\n3. Is it big? no\n4. yes", YES_NO, FOUR, LOST),
        ("Is it red? yes\nIs it red? no", YES_NO, FOUR, LOST),
        ("red hat: yes\nwet: no", YES_NO, [PLAIN[0], *PLAIN[2:]], LOST),
        ("1. so\n2. so\n4. so", YES_NO, FOUR, LOST),
        ("1. yes\n2. no\n4. yes", YES_NO, [one | {"text": f"Q{k}: {one['text']}"} for k, one in enumerate(FOUR, 1)], LOST),
        ("1. yes\n2. no\n4. yes", YES_NO, [{"id": one["id"]} for one in FOUR], LOST),
    ],
)
def test_a_line_that_was_left_out_costs_its_own_item_where_the_others_say_whose_they_are(
    reply: str, dimension: Dimension, items: list[dict[str, str]], said: object
) -> None:
    assert read_lines(reply, dimension, items, SHOWN) == said


WITH_IDS = Items("items", True, {"questions": ItemText("{id}: {question}")}, {"text": "question"})
THREE = [{"id": id_, "text": text} for id_, text in (("2", "Is it red?"), ("3", "Is there a dog?"), ("1", "Is there a cup?"))]
NAMED = [one | {"id": id_} for one, id_ in zip(THREE, ("red", "dog", "cup"), strict=True)]
UNSURE = "ambiguous"


def ids_of(*ids: str) -> list[dict[str, str]]:
    return [one | {"id": id_} for one, id_ in zip(THREE, ids, strict=True)]


@pytest.mark.parametrize(
    ("reply", "items", "shown", "said"),
    [
        ("1: no\n2: yes\n3: yes", THREE, WITH_IDS, [1, 1, 0]),
        ("2: yes\n3: yes\n1: no", THREE, WITH_IDS, [1, 1, 0]),
        ("Of the three:\n3: yes\n\n2: yes\n1: no\nThat is all.", THREE, WITH_IDS, [1, 1, 0]),
        ("1: no\n2: yes\n3: yes\n1: yes", THREE, WITH_IDS, UNSURE),
        ("2: Is there a dog? yes\n3: Is it red? yes\n1: Is there a cup? no", THREE, WITH_IDS, UNSURE),
        ("cup: no\nRed: yes\n**dog**: yes", NAMED, WITH_IDS, [1, 1, 0]),
        ("cup: no\nyes\nyes", NAMED, WITH_IDS, UNSURE),
        ("1. yes\n2. yes\n3. no", NAMED, WITH_IDS, [1, 1, 0]),
        ("1: yes\n2: yes\n3: no", [one | {"id": str(k)} for k, one in enumerate(THREE, 2)], WITH_IDS, UNSURE),
        ("q1: no\nQ2: yes\n**q3**: yes", ids_of("q2", "q3", "q1"), WITH_IDS, [1, 1, 0]),
        ("#1: no\n#2: yes\n#3: yes", ids_of("#2", "#3", "#1"), WITH_IDS, [1, 1, 0]),
        ("1: no\n2: yes\n3: yes", ids_of("02", "03", "01"), WITH_IDS, [1, 1, 0]),
        ("Item 1: no\nItem 2: yes\nItem 3: yes", ids_of("2", "3", "1"), WITH_IDS, [1, 1, 0]),
        ("1: no\n2: yes\n3: yes", ids_of("q2", "q3", "q1"), WITH_IDS, UNSURE),
        ("1. no\n2. yes\n3. yes", ids_of("q1", "q2", "q3"), WITH_IDS, [0, 1, 1]),
        ("item3: no\nitem5: yes\nitem9: yes", ids_of("item3", "item5", "item9"), WITH_IDS, [0, 1, 1]),
        ("1. no\n2. yes\n3. yes", ids_of("0", "1", "2"), WITH_IDS, UNSURE),
        ("1. Is it red? no\n2. Is there a dog? yes\n3. Is there a cup? yes", ids_of("0", "1", "2"), WITH_IDS, [0, 1, 1]),
        ("1. Is it red? yes\n2. Is there a dog? yes\n3. Is there a cup? no", THREE, WITH_IDS, [1, 1, 0]),
        ("1: yes\n2: yes\n3: no", THREE, SHOWN, [1, 1, 0]),  # ids it was not shown
        ("3: no\n1: yes\n2: yes", THREE, SHOWN, UNSURE),
        ("Is there a cup? no\nIs it red? yes\nIs there a dog? yes", THREE, SHOWN, [1, 1, 0]),
        ("1. Is there a cup? no\n2. Is it red? yes\n3. Is there a dog? yes", THREE, SHOWN, [1, 1, 0]),
        ("Is there a dog? yes\nyes\nno", THREE, SHOWN, UNSURE),
        ("Is it red? yes\nyes\nno", THREE, SHOWN, [1, 1, 0]),
        ("Cup? no\nDog? yes\nRed? yes", THREE, SHOWN, UNSURE),
        ("Red? yes\nDog? yes\nDog by the cup? no", THREE, SHOWN, [1, 1, 0]),
        ("Yes: red\nYes, it is by the cup\nNo: the dog is alone", THREE, SHOWN, [1, 1, 0]),
        ("No, wet\nYes: big", [TWO[0], {"id": "b", "text": "Is there no sun?"}], SHOWN, [0, 1]),
        ("Yes, the cup: small\nNo\nYes", THREE, SHOWN, [1, 0, 1]),
        ("Answer: yes\nAnswer: no", [{"id": "a", "text": "Does it answer the prompt?"}, TWO[1]], SHOWN, [1, 0]),
    ],
)
def test_a_line_that_names_its_item_is_that_items_wherever_it_stands(
    reply: str, items: list[dict[str, str]], shown: Items, said: object
) -> None:
    assert read_lines(reply, YES_NO, items, shown) == said


def test_ids_in_any_order_give_each_item_its_own_answer() -> None:
    """However the items are shown and the lines written."""
    for order in permutations(("1", "2", "3")):
        items = [{"id": id_, "text": f"Is it {id_}?"} for id_ in order]
        for written in permutations(order):
            reply = "\n".join(f"{id_}: {'yes' if id_ == '2' else 'no'}" for id_ in written)
            assert read_lines(reply, YES_NO, items, WITH_IDS) == [int(id_ == "2") for id_ in order]


@pytest.mark.parametrize("each", ["{number}. {question}", "Question 3: {question}", "{id}. {question}"])
def test_numbers_say_nothing_where_the_judge_was_shown_others(each: str) -> None:
    shown = Items("items", True, {"questions": ItemText(each)}, {"text": "question"})
    ids = [one | {"id": id_} for one, id_ in zip(FOUR, ("1", "2", "4", "5"), strict=True)]
    assert read_lines("1. yes\n2. no\n4. yes", YES_NO, ids, shown) == LOST
    assert read_lines("Is it red? yes\nIs it big? no", YES_NO, ids, shown) == [1, 0, LOST, LOST], "a text says whose it is"


def test_an_answer_never_lands_on_another_item() -> None:
    """Whichever lines are left out, with their numbers kept or counted anew; the answers that are yes differ for each."""
    for n in range(2, 6):
        items = [{"id": f"i{place}", "text": f"Is it {'x' * place}?"} for place in range(n)]
        for yes in range(n):
            answers = ["yes" if place == yes else "no" for place in range(n)]
            for kept in (kept for size in range(1, n) for kept in combinations(range(n), size)):
                for first in (0, 1):
                    read = read_lines("\n".join(f"{k + first}. {answers[k]}" for k in kept), YES_NO, items, SHOWN)
                    assert not isinstance(read, list) or read == [int(k == yes) if k in kept else LOST for k in range(n)]
                    anew = "\n".join(f"{number}. {answers[k]}" for number, k in enumerate(kept, first))
                    assert not isinstance(read_lines(anew, YES_NO, items, SHOWN), list)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("<answer>[yes, no]</answer>", [1, 0]),
        ("<answer>[yes, no,]</answer>", [1, 0]),
        ("<answer>[yes,, no]</answer>", "missing_key"),
        ("<answer>[, yes, no]</answer>", "missing_key"),
        ('[{"id": "b", "answer": "yes"}, {"id": "a", "answer": "no"}]', [0, 1]),
        ('[{"question": "Is it big?", "answer": "yes"}, {"question": "Is it red?", "answer": "no"}]', [0, 1]),
        ('[{"id": "a", "question": "big?", "answer": "yes"}, {"id": "b", "question": "red?", "answer": "no"}]', [1, 0]),
        ('[{"id": "b", "question": "big?", "answer": "yes"}, {"id": "a", "question": "red?", "answer": "no"}]', "malformed"),
        ('[{"index": 0, "answer": "yes"}, {"index": 1, "answer": "no"}]', [1, 0]),
        ('[{"index": 1, "answer": "yes"}, {"index": 2, "answer": "no"}]', [1, 0]),
        ('[{"index": 2, "answer": "yes"}, {"index": 1, "answer": "no"}]', "malformed"),
        ('[{"id": "a", "answer": "yes"}, {"id": "a", "answer": "no"}]', "malformed"),
        ('[{"id": "b", "answer": "yes"}, {"id": "c", "answer": "no"}]', "malformed"),
    ],
)
def test_lists(reply: str, said: object) -> None:
    assert read_list(reply, YES_NO, TWO, is_cut=False).answers == said


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("\ud800", "not JSON"),
        ({"question": "?", "id": "\udfff"}, "not JSON"),
        ({"question": "?", "id": ""}, "no usable id"),
        ({"question": "?", "id": []}, "no usable id"),
        ({"question": "?", "id": "a" * 201}, "no usable id"),
        ({"question": " ", "kind": "thing"}, "no text for question"),
        ({"text": "Is it red?"}, "no text for question"),
        ({"question": "?", "expected": "yeah"}, "expects 'yeah'"),
        ({"question": "?", "expected": ""}, "empty answer"),
        ({"question": "?", "expected": "red", "choices": ["red", " "]}, "empty answer"),
        ({"question": "?", "expected": "red", "choices": ["blue", "green"]}, "expects 'red'"),
        ({"question": "?", "expected": ["yes", "No"]}, "expects every answer"),
        ({"question": "?", "expected": ["red", "blue"], "choices": ["blue", "red"]}, "expects every answer"),
    ],
)
def test_a_list_that_cannot_be_asked_or_would_give_one_score_whatever_is_said(item: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadItems, match=message):
        items_of(rubric_of(tmp_path), {"items": json.dumps([item])})


def test_an_id_asks_nothing_where_a_text_stands_beside_it(tmp_path: Path) -> None:
    rubric = rubric_of(tmp_path, each="{id}: {question}")
    with pytest.raises(BadItems, match="no text for question"):
        items_of(rubric, {"items": '[{"id": "a", "qestion": "Is it red?"}]'})


def test_an_item_that_names_a_key_twice_asks_two_things(tmp_path: Path) -> None:
    with pytest.raises(BadItems, match="items is ambiguous: the key 'question' occurs twice in one item; keep one of them"):
        items_of(rubric_of(tmp_path), {"items": '[{"question": "?", "question": "!"}]'})


def test_an_expected_answer_needs_others_beside_it(tmp_path: Path) -> None:
    rubric = rubric_of(tmp_path, "scale = { min = 0, max = 9 }")
    with pytest.raises(BadItems, match="names no others"):
        items_of(rubric, {"items": '[{"question": "?", "expected": "3"}]'})
    (item,) = items_of(rubric, {"items": '[{"question": "?", "expected": " RED", "choices": ["red", "blue"]}]'})
    assert item.expected == (" RED",)


WHOLE = {
    "tens as words": ("lines", 'answers = { "0" = 0, "1" = 1, "5" = 5, "7" = 7, "10" = 10 }'),
    "marks": ("list", 'scale = { min = 0, max = 1, step = 1 }\nnot_applicable = ["N/A"]'),
    "tens": ("list", "scale = { min = 0, max = 10, step = 1 }"),
    "words": ("list", "answers = { yes = 1, no = 0 }"),
    "lines": ("lines", "scale = { min = 0, max = 10, step = 1 }"),
    "said": ("lines", 'answers = { yes = 1, no = 0 }\nnot_applicable = ["N/A"]'),
}
THREE = {"items": [{"id": str(place), "text": text} for place, text in enumerate(("Is it red?", "Is it big?", "Is it wet?"), 1)]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rubric]:
    return {name: rubric_of(tmp_path_factory.mktemp(name), scale, reply=form) for name, (form, scale) in WHOLE.items()}


def told(rubric: Rubric, reply: str, **context: object) -> object:
    """The three items' answers in their order, with a reason where an item has none; or the reason of the whole."""
    read = parse_reply(rubric, reply, THREE | context)
    if isinstance(read, Unreadable):
        return read.reason.value
    said = {
        **read.scores,
        **dict.fromkeys(read.not_applicable, "n/a"),
        **{name: why.value for name, why in read.unreadable.items()},
    }
    return [said[name] for name in "123"]


@pytest.mark.parametrize(
    ("rubric", "reply", "expected"),
    [
        pytest.param("marks", "Draft: [1, 1, 1]\nFinal: [0, 0, 1]", "ambiguous", id="a draft and a final list"),
        pytest.param("marks", "[1, 1, 1]\nOn reflection: [0, 0, 1]", "ambiguous", id="another list behind the first"),
        pytest.param("marks", '{"answer": [1, 1, 1]}\nCorrected: {"answer": [0, 0, 1]}', "ambiguous", id="two objects"),
        pytest.param("marks", '{"answer": [1, 1, 1]}\n[0, 0, 1]', "ambiguous", id="an object and a list"),
        pytest.param("marks", "<answer>[1, 1, 1]</answer>\nCorrected: [0, 0, 1]", "ambiguous", id="a list behind a tag"),
        pytest.param("marks", "<answer>[1,1,1]</answer> <answer>[1,0,1]</answer>", "ambiguous", id="two tags"),
        pytest.param("tens", '{"answer": [5, 7, 1], "final_answer": [2, 2, 2]}', "ambiguous", id="a key that takes it back"),
        pytest.param("tens", '{"answer": [5, 7, 1], "corrected": {"answer": [2, 2, 2]}}', "ambiguous", id="an object that does"),
        pytest.param("tens", '{"answer": [5, 7, 1], "revised": {"1": 2, "2": 2, "3": 2}}', "ambiguous", id="one by ids"),
        pytest.param("marks", '{"answer": [1, 1, 1], "image_received": false}', "missing_input", id="a key: no picture"),
        pytest.param("marks", '{"answer": [1, 1, 1], "is_placeholder": true}', "missing_input", id="a key: made up"),
        pytest.param("marks", '{"answer": [1, 1, 1], "error": "timeout"}', "refusal", id="a key: an error"),
        pytest.param("marks", '{"answer": [1, 1, 1]}\n{"error": "no image"}', "missing_input", id="a key in another object"),
        pytest.param("marks", '{"answer": [1, 1, 1]}\n{"image_received": false}', "missing_input", id="a key in an object behind"),
        pytest.param("marks", '{"status": "error", "answer": [0, 0, 0]}', "refusal", id="a status"),
        pytest.param("words", '[{"id": "1", "answer": "yes", "refused": true}, {"id": "2", "answer": "no"}, {"id": "3", "answer": "no"}]', "refusal", id="a key in an entry"),
        pytest.param("tens", '[{"id": "1", "score": 5, "max": 20}, {"id": "2", "score": 7}, {"id": "3", "score": 1}]', "scale_mismatch", id="another end in an entry"),
        pytest.param("marks", json.dumps('{"answer": [1, 1, 1], "is_placeholder": true}'), "missing_input", id="a key in a string"),
        pytest.param("marks", "<answer>[1, 1, 1]</answer>\nI take that back, the scores above are wrong.", "ambiguous", id="taken back"),
        pytest.param("marks", "If the image matched, the reply would be:\n<answer>[1, 1, 1]</answer>", "ambiguous", id="of a case"),
        pytest.param("tens", 'The poster reads: {"answer": [5, 7, 1]}', "not_found", id="only mentioned"),
        pytest.param("tens", '{"answer": [5, 7, 1], "max": 100}', "scale_mismatch", id="a key: another end"),
        pytest.param("tens", '{"answer": [5, 7, 1], "note": "These are on a scale of 1 to 100."}', "scale_mismatch", id="another scale in words"),
        pytest.param("tens", "<answer>[5, 7, 1]</answer> (each out of 100)", "scale_mismatch", id="another scale behind a tag"),
        pytest.param("tens", "[50, 70, 10]", "out_of_range", id="most off the scale"),
        pytest.param("tens", "On a scale of 0 to 100: [50, 70, 10]", "scale_mismatch", id="most off the scale that is said"),
        pytest.param("tens", "[50, 7, 1]", ["out_of_range", 7, 1], id="one off the scale"),
        pytest.param("marks", '{"verdicts": [1, 0, 1]}\nConfidence: [1, 1, 1]', "not_found", id="a list beside another object"),
        pytest.param("marks", "I would not give [1, 1, 1] here [too much].", "not_found", id="a list in a sentence"),
        pytest.param("marks", "[[1, 0, 1] and more]", "not_found", id="a list within a broken one"),
        pytest.param("lines", "1: 50\n2: 70\n3: 10", "out_of_range", id="lines: most off the scale"),
    ],
)  # fmt: skip
def test_what_is_said_beside_the_answers_makes_them_none(
    whole: dict[str, Rubric], rubric: str, reply: str, expected: object
) -> None:
    assert told(whole[rubric], reply) == expected


@pytest.mark.parametrize(
    ("rubric", "reply", "expected"),
    [
        pytest.param("said", "1: yes\n2: yes\n3: no", [1, 1, "truncated"], id="no to not applicable"),
        pytest.param("said", "1: yes\n2: yes\n3: N/A", [1, 1, "truncated"], id="a word that may be whole"),
        pytest.param("said", "yes\nyes\nno", [1, 1, "truncated"], id="lines without numbers"),
        pytest.param("said", "1: yes\n2: yes\n3: no\n", [1, 1, 0], id="a line's end"),
        pytest.param("said", "1: yes\n2: yes\n3: no.", [1, 1, 0], id="a sentence's end"),
        pytest.param("said", "1: yes\n2: yes\n3: no, the cat is", [1, 1, 0], id="a reason"),
        pytest.param("said", "1: yes\n2: yes\n3:", [1, 1, "truncated"], id="no answer yet"),
        pytest.param("said", "3: yes\n1: yes\n2: no", "ambiguous", id="another order"),
        pytest.param("said", "Is it wet? yes\nIs it red? yes\nIs it big? no", [1, "truncated", 1], id="another order by text"),
        pytest.param("said", "1: yes\n2: yes\n3: no\nOverall it is", [1, 1, 0], id="a line that is no item's"),
        pytest.param("said", "1: yes\n2: yes", "truncated", id="a line lacks"),
        pytest.param("said", "yes", "truncated", id="one line alone"),
        pytest.param("lines", "1: 5\n2: 7\n3: 1", [5, 7, "truncated"], id="1 to 10"),
        pytest.param("lines", "1: 5\n2: 7\n3: 1.", [5, 7, "truncated"], id="1. to 1.5"),
        pytest.param("lines", "1: 5\n2: 7\n3: 1 (dry", [5, 7, 1], id="a reason behind a number"),
        pytest.param("lines", "1: 5\n2: 7\n3: 1\n", [5, 7, 1], id="a line's end behind a number"),
        pytest.param("tens as words", "1: 5\n2: 7\n3: 1", [5, 7, "truncated"], id="words that are numbers"),
    ],
)
def test_the_last_line_of_a_reply_that_was_cut(whole: dict[str, Rubric], rubric: str, reply: str, expected: object) -> None:
    assert told(whole[rubric], reply, finish_reason="length") == expected


@pytest.mark.parametrize("ids", [["a", "a", "b"], ["", "", "a"]], ids=["twice", "left out twice"])
def test_a_line_with_two_items_of_one_id_is_refused(whole: dict[str, Rubric], ids: list[str]) -> None:
    """One of the two answers would be printed as both."""
    line = json.dumps({"raw": "yes\nno\nyes", "context": {"items": [{"id": id_} if id_ else {} for id_ in ids]}})
    with pytest.raises(InputError, match=f'line 7: two "items" have the id {ids[0]!r}; give each another'):
        parse_jsonl_line(whole["said"], line, number=7)


HONEST = {
    "marks": (
        "[1, 0, 1]",
        "<answer>[1, 0, 1]</answer>",
        "<answer>1, 0, 1</answer>",
        "```json\n[1, 0, 1]\n```",
        "**[1, 0, 1]**",
        "Answer: [1, 0, 1]",
        '{"answer": [1, 0, 1]}',
        '```json\n{\n  "answer": [\n    1,\n    0,\n    1\n  ]\n}\n```',
        '{"1": 1, "2": 0, "3": 1}',
        '{"answers": ["1", "0", "1"], "reasons": ["the cup is red", "3 dogs, all small", "2 of 4 leaves are wet"]}',
        '{"answer": [1, 0, 1], "confidence": [0.9, 1, 1]}',
        '{"answer": [1, 0, 1], "error": null, "image_received": true, "status": "ok"}',
        '{"scale": "0-1", "answer": [1, 0, 1]}',
        "[red, big, wet]: <answer>[1, 0, 1]</answer>",
        "At first I thought [1, 1, 1], but it is small.\n<answer>[1, 0, 1]</answer>",
        "[1, 0, 1]\n\nAll told: [1, 0, 1]",
        "<answer>[1, 0, 1]</answer>\nThe dog is small: 3 of its 4 legs are hidden.",
        "1. Red: the cup is red, so 1.\n2. Big: it is not, so 0.\n3. Wet: drops are on it, so 1.\n<answer>[1, 0, 1]</answer>",
        "Red: Score: 1\nBig: Score: 0\nWet: Score: 1\n\n<answer>[1, 0, 1]</answer>",
        "<answer>[1, 0, 1]</answer>\nTotal: 2/3",
        "<think>Perhaps [1, 1, 1]? No.</think>[1, 0, 1]",
        "The sign reads 'no image available', and is red.\n<answer>[1, 0, 1]</answer>",
        "1 means present, 0 means absent.\n[1, 0, 1]",
        "[1, 0, 1]\n- red: yes, there is no doubt\n- big: no, too small\n- wet: yes",
        "<answer>[1, 0, 1]</answer>\nThe dog's colour is [255, 0, 0].",
        "<answer>[1, 0, 1]</answer>\n\nColour: [255, 0, 0]",
        "<answer>[1, 0, 1]</answer>\n[<score>, <score>, <score>]",
        "<answer>[1, 0, 1]</answer>\n[_, _, _]",
        '{"answer": [1, 0, 1], "actual": [3, 2, 0], "expected": [3, 4, 1]}',
        '{"answer": [1, 0, 1], "status": "fail"}',
        "<answer>[1, 0, 1]</answer>\n1. Sorry, the dog is small.\n2. It is not.\n3. Drops.",
        '{"answer": [1, 0, 1], "total": 2, "max": 3}',
        '{"answer": [1, 0, 1], "scale": "1 = present, 0 = absent"}',
        '[{"id": "1", "answer": 1}, {"id": "2", "answer": 0, "status": "fail", "evidence": "cannot see it"}, {"id": "3", "answer": 1}]',
        "Box [12, 40, 200, 310] holds the cup.\n<answer>[1, 0, 1]</answer>",
        '[{"id": 1, "answer": 1, "reason": "red"}, {"id": 2, "answer": 0, "reason": "no, 3 are small"}, {"id": 3, "answer": 1, "reason": "wet"}]',
    ),
    "tens": (
        "[5, 7, 1]",
        '{"answer": [5, 7, 1], "max": 10}',
        '{"answer": [5, 7, 1], "note": "On the scale of 0 to 10, as asked."}',
        '{"answer": [5, 7, 1], "reasons": ["I deducted 5 points for the hue", "3 dogs are big", "nearly dry"]}',
        "<answer>[5, 7, 1]</answer>\nThe red cup is a 5 since it is half orange.",
        "Each is out of 10.\n<answer>[5, 7, 1]</answer>",
        "[5/10, 7/10, 1/10]",
    ),
    "words": (
        '["yes", "no", "yes"]',
        "<answer>[yes, no, yes]</answer>",
        '{"answer": ["yes", "no", "yes"], "note": "Actually, 3 cats are wet."}',
        "<answer>[yes, no, yes]</answer>\nSo: [yes, no, yes]",
        '["yes", "no", "yes"]\n\nFinal answer: yes, no, yes',
        '{"answer": ["yes", "no", "yes"], "why": ["no doubt", "no, too small", "yes, it drips"]}',
    ),
    "lines": (
        "5\n7\n1",
        "1: 5\n2: 7\n3: 1",
        "1. 5 - the cup is half orange\n2. 7 - two dogs are big\n3. 1 - nearly dry",
        "1: 5/10\n2: 7/10\n3: 1/10",
        "Here are my scores:\n1: 5\n2: 7\n3: 1",
        "- 5 (red in part)\n- 7 (big)\n- 1 (dry)",
        "Is it red? 5\nIs it big? 7\nIs it wet? 1",
        "**1:** 5\n**2:** 7\n**3:** 1",
        "1: 5 points\n2: 7 points\n3: 1 point",
        "1: 5 (better than average)\n2: 7\n3: 1",
        "1: 5 (sorry, the dog is small)\n2: 7\n3: 1",
        "1: 5, I deducted 5 points for the hue\n2: 7\n3: 1",
    ),
    "said": (
        "yes\nno\nyes",
        "1: Yes\n2: No\n3: Yes",
        "1. Yes, the cup is red.\n2. No, it is 3 cm high.\n3. Yes, drops are on it.",
        "Answers:\n1: yes\n2: no\n3: yes",
        "Is it red? yes\nIs it big? no\nIs it wet? yes",
        "1: yes - the score on the board is 3:2\n2: no - there is no image of a big one\n3: yes",
        "- Yes (no doubt)\n- No (a small one)\n- Yes",
        "1: Yes. Actually, 3 cups are red.\n2: No.\n3: Yes.",
        "Answer: yes\nAnswer: no\nAnswer: yes",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rubric", "reply"), [(name, reply) for name, replies in HONEST.items() for reply in replies])
def test_an_honest_reply_to_several_items_is_read(whole: dict[str, Rubric], rubric: str, reply: str) -> None:
    assert told(whole[rubric], reply) == ([5, 7, 1] if rubric in ("tens", "lines") else [1, 0, 1])
