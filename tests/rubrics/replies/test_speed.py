"""A reply of 1 MB is answered in time that grows with its length alone, whatever it is made of."""

from functools import partial

import pytest

from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.input_budget import REPLY_TEXT_BYTES
from tests.support.cpu import takes_at_most

UNITS = [
    "{", "[", "}", '"', "'", "“", "\\", '\\"', '{"', "{'", '{"a":', '{"a":{', "[{", '{"score":', '"score":', "{a", "{a:",
    "{a ", "/*", "{/*", "//", "#", '{"a":1},', "{}", '{"score":4}', '{"a": "b" ', '{"a","', "{ {", "```json\n", "<think>",
    "</think>", "a", "a ", "1", " ", "\n", "\t*", "*", "_", "s", "S ", "Score", "score ", "Score:", "Score: ", "Score: 4\n",
    "Score: 4 ", "Score: 4-", "Score (", "Score: (", "Overall Score: 4\n", "[Text Response Quality: ",
    "[Text Response Quality: 4; ", "Text Response Quality: 4\n", "Text ", "image image ", "[*", "[Text", "no image ",
    "I'm sorry ", "4,", "4.", "\u200b", "é", "\x00", "3 ", "(3) ",
    "4/5 ", "three of four ", "\\u0041", "final_score: 3\n", "Final_", "aaA", "-score ",
]  # fmt: skip


def of_length(unit: str, n_bytes: int) -> str:
    return unit * (n_bytes // len(unit.encode()))


# A quadratic reader takes minutes here, the worst of ours a yardstick or two.
@pytest.mark.parametrize("opening", ["", "{", '{"reason": "', "Score: ", "[Text Response Quality: "])
def test_an_eighth_of_a_megabyte_of_anything(shipped: dict[str, Rubric], opening: str) -> None:
    """Of each form one rubric."""
    forms = {rubric.reply_format: rubric for rubric in shipped.values()}
    for unit in UNITS:
        text = opening + of_length(unit, REPLY_TEXT_BYTES // 8)
        for rubric in forms.values():
            assert takes_at_most(15, partial(parse_reply, rubric, text, {"category": "counting"})), (rubric.id, opening, unit)


@pytest.mark.parametrize(
    ("rubric_id", "pieces", "expected"),
    [
        ("caption", ('{"score": 4, "reason": "', "word, ", '"}'), 4),
        ("caption", ('{"reason": "', '\\"', '", "score": 4}'), 4),
        ("caption", ("", "lorem {ipsum dolor ", '{"score": 4}'), "malformed"),
        ("caption", ("", "lorem ipsum dolor ", '{"score": 4}'), 4),
        ("caption", ('{"score": ', "1", "}"), "out_of_range"),
        ("caption", ('{"score": 4.', "0", "}"), 4),
        ("caption", ('{"score": 4e', "9", "}"), "out_of_range"),
        ("caption", ("", '{"score": 4}\n', ""), "malformed"),
        ("alignment", ("", "lorem ipsum dolor ", "\nScore: 4"), 4),
        ("alignment", ("", "Score: 4\n", ""), "malformed"),  # 100,000 labels are no reply
        ("alignment", ("", "Reasoning: x\n", "Score: 4"), 4),
        ("alignment", ("Score: 4.", "0", ""), 4),
        ("alignment", ("Score: 4 (", "good ", ")"), 4),
        ("alignment", ("Score: 4", " ", "x"), "wrong_type"),
        ("alignment", ("Score: 4\n", "3 ", ""), "malformed"),  # nor are 5,000 numbers beside the score
        ("caption", ('{"score": 4, "reason": "', "3 ", '"}'), "malformed"),
    ],
)
def test_a_megabyte_is_read_right(
    shipped: dict[str, Rubric], rubric_id: str, pieces: tuple[str, str, str], expected: int | str
) -> None:
    before, unit, after = pieces
    text = before + of_length(unit, REPLY_TEXT_BYTES - 200) + after
    found = parse_reply(shipped[rubric_id], text, {}).as_dict()
    assert found == ({"error": expected} if isinstance(expected, str) else {"scores": {"score": expected}})


def test_a_flood_of_different_answers(shipped: dict[str, Rubric]) -> None:
    text = "\n".join(f"Score: {n}" for n in range(80_000))
    assert parse_reply(shipped["alignment"], text, {}).as_dict() == {"error": "ambiguous"}


FLOODS = ["3 ", "4 ", "(3) ", "3. ", "3/5 ", "3\n", "$3$ ", "x: 3 ", "three of four ", "ten ", "percent ", "final_score: 3\n"]


@pytest.mark.parametrize("unit", [*FLOODS, "\\u0041"])
@pytest.mark.parametrize(
    ("rubric_id", "before", "after"),
    [("alignment", "Score: 3\n", ""), ("alignment", "", "\nScore: 3"), ("caption", '{"score": 3, "reason": "', '"}')],
    ids=["behind a line", "before a line", "in an object"],
)
def test_a_megabyte_of_numbers_beside_an_answer_is_no_reply(
    shipped: dict[str, Rubric], rubric_id: str, before: str, after: str, unit: str
) -> None:
    """Any of them might take the answer back; looking at each took ten yardsticks."""
    text = before + of_length(unit, REPLY_TEXT_BYTES - 200) + after
    read = partial(parse_reply, shipped[rubric_id], text, {})
    assert "scores" not in read().as_dict()
    assert takes_at_most(6, read)


@pytest.mark.parametrize(
    ("rubric_id", "before", "unit", "after"),
    [
        ("alignment", "Reasoning: ", "3 ", "\nScore: 3"),
        ("alignment", "Reasoning: ", "three ", "\nScore: 3"),
        ("alignment", "Score: 3\n", "3 cats, ", ""),
        ("caption", '{"score": 3, "reason": "', "3 ", '"}'),
    ],
    ids=["digits", "words", "behind", "in an object"],
)
def test_numbers_beside_an_answer_are_counted_up_to_five_thousand(
    shipped: dict[str, Rubric], rubric_id: str, before: str, unit: str, after: str
) -> None:
    """The answer's own number is none of them."""
    said = [parse_reply(shipped[rubric_id], before + unit * n + after, {}).as_dict() for n in (4_999, 5_000)]
    assert said == [{"scores": {"score": 3}}, {"error": "malformed"}]


@pytest.mark.parametrize("n_between", [10, 1_000, 4_000])
def test_a_number_taken_back_behind_many_others(shipped: dict[str, Rubric], n_between: int) -> None:
    """What stands near numbers is looked through at both ends."""
    text = "Score: 3\n" + "3 cats and a long street. " * n_between
    assert parse_reply(shipped["alignment"], text, {}).as_dict() == {"scores": {"score": 3}}
    assert parse_reply(shipped["alignment"], f"{text}\nOn reflection, that is a 2.", {}).as_dict() == {"error": "ambiguous"}


def test_a_long_line_beside_an_object(shipped: dict[str, Rubric]) -> None:
    text = '{"score": 4} x: ' + of_length("a ", REPLY_TEXT_BYTES // 2)
    assert parse_reply(shipped["caption"], text, {}).as_dict()["scores"] == {"score": 4}
    assert takes_at_most(4, partial(parse_reply, shipped["caption"], text, {}))


@pytest.mark.parametrize(
    "text",
    [
        "{" + '"score": 4, "reason": "x", ' * 2400 + '"score": 4}',
        "{" + '"scores": {"score": 4}, ' * 2600 + '"score": 4}',
        '{"list": [' + "{}, " * 16_000 + '{}], "score": 4}',
    ],
    ids=["one key again and again", "wrappers", "empty objects"],
)
def test_many_parts_in_strict_json(shipped: dict[str, Rubric], text: str) -> None:
    assert parse_reply(shipped["caption"], text, {}).as_dict() == {"scores": {"score": 4}}
    assert takes_at_most(15, partial(parse_reply, shipped["caption"], text, {}))


@pytest.mark.parametrize(("n_characters", "expected"), [(65_536, {"scores": {"score": 4}}), (65_537, {"error": "malformed"})])
def test_strict_json_is_tried_up_to_64_ki_characters(shipped: dict[str, Rubric], n_characters: int, expected: object) -> None:
    """Its decoder counts no parts: a megabyte of empty objects takes it a second, and the tolerant reader gives up in 0.03 s."""
    text = '{"list": [' + "{}, " * 16_000 + '{}], "score": 4}'
    assert parse_reply(shipped["caption"], text.ljust(n_characters), {}).as_dict() == expected
