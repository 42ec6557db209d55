"""Items: which lists cannot be asked, and replies that answer several, of which each answer must be the item's own."""

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
reply = "lines"
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


def rubric_of(folder: Path, scale: str = "answers = { yes = 1, no = 0 }", each: str = "{question}") -> Rubric:
    (folder / "asked").mkdir()
    (folder / "asked" / "rubric.toml").write_text(DECLARED.format(scale=scale, each=each))
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
    assert read_list(reply, YES_NO, TWO, is_cut=False) == said


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
