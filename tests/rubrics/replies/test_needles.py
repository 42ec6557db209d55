"""What a pattern is said to need before it is looked for stands in every text it matches: proven from its parse tree.

A list of needles is walked through the pattern as an automaton walks through a text: where some way through the pattern
ends without having met one of them, the list would cost readings. Most lookarounds are passed over: that allows more texts
than there are, so what is proven holds.
"""

import random
import re
from collections.abc import Iterable, Iterator
from re import _constants as op  # type: ignore[attr-defined] - the parser of the patterns themselves
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubrics.replies.doubts import (
    clues,
    disavowal,
    languages,
    missing_ways,
    own_scales,
    stated_scales,
    taken_back,
    verdicts,
    withdrawals,
    words,
)
from rubrics.replies.numbers import WHITE_SPACE, ZERO_WIDTH

_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_IGNORED = (op.AT, op.ASSERT, op.ASSERT_NOT)


class Walk:
    """The ways through a pattern that meet none of the needles: from how much of one was read to how much is."""

    def __init__(self, needles: Iterable[str]) -> None:
        self.needles = tuple(needles)
        self.letters = frozenset("".join(self.needles))
        self._next: dict[tuple[str, str], str | None] = {}

    def ends(self, tree: Any, starts: frozenset[str]) -> frozenset[str]:
        """How much of a needle may be read last, behind each of the parts one after the other."""
        for kind, value in tree:
            if not starts:
                break
            starts = self._part(kind, value, starts)
        return starts

    def _part(self, kind: Any, value: Any, starts: frozenset[str]) -> frozenset[str]:
        if kind is op.BRANCH:
            return frozenset().union(*(self.ends(tree, starts) for tree in value[1]))
        if kind in (op.SUBPATTERN, op.ATOMIC_GROUP):
            return self.ends(value[-1] if kind is op.SUBPATTERN else value, starts)
        if kind in _REPEATS:
            return self._repeated(*value, starts)
        if kind is op.ASSERT and value[0] > 0:  # what must follow stands in the text as well
            return frozenset(start for start in starts if self.ends(value[1], frozenset({start})))
        letters = [*self._letters(kind, value)] if kind not in _IGNORED else []
        ends = (self._read(start, letter) for start in starts for letter in letters)
        return frozenset(end for end in ends if end is not None) if letters else starts

    def _repeated(self, least: int, most: int, tree: Any, starts: frozenset[str]) -> frozenset[str]:
        for _ in range(least):
            starts = self.ends(tree, starts)
        for _ in range(most - least):
            more = starts | self.ends(tree, starts)
            if more == starts:
                break
            starts = more
        return starts

    def _letters(self, kind: Any, value: Any) -> Iterator[str]:
        """Those of the needles' letters that stand there, or any other ("")."""
        if kind is op.LITERAL:
            letter = chr(value).lower()
            yield letter if letter in self.letters else ""
            return
        if kind is not op.IN or any(member is not op.LITERAL or chr(code).lower() not in self.letters for member, code in value):
            yield ""
        yield from (one for one in self.letters if kind is not op.IN or any(_is_in(case, value) for case in (one, one.upper())))

    def _read(self, start: str, letter: str) -> str | None:
        """The longest end of what was read that a needle begins with; None where one ends."""
        if (start, letter) not in self._next:
            text = start + letter if letter else ""
            ends = [text[place:] for place in range(len(text) + 1)]
            is_met = any(end in self.needles for end in ends)
            found = next(end for end in ends if any(needle.startswith(end) for needle in self.needles))
            self._next[start, letter] = None if is_met else found
        return self._next[start, letter]


def _is_in(letter: str, members: Any) -> bool:
    is_not = members[0][0] is op.NEGATE
    for kind, value in members[1:] if is_not else members:
        if kind is op.LITERAL and chr(value) == letter:
            return not is_not
        if kind is op.RANGE and value[0] <= ord(letter) <= value[1]:
            return not is_not
        if kind is op.CATEGORY and re.match(_CLASSES[value], letter):
            return not is_not
    return is_not


_CLASSES = {
    op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W", op.CATEGORY_SPACE: r"\s", op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D",
}  # fmt: skip


def needs(pattern: str, needles: Iterable[str]) -> bool:
    """Whether every text the pattern matches holds one of the needles."""
    return not Walk(needles).ends(parser.parse(pattern), frozenset({""}))


def _told() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(a pattern, a list of words of which it is said to need one)."""
    for first, others in (*missing_ways.NO_PICTURE, *missing_ways.NO_TEXT, *missing_ways.SEVERAL):
        # Of the blind ways the first list is no need, but a part of what they say: "cannot", and no mark behind it.
        firsts = [first] if first is not missing_ways._NOT else []
        yield from ((way, one_of) for needles, way in others for one_of in (*firsts, *needles))
    for needles, way in (*disavowal._WAYS, *disavowal._OF_THE_NUMBER, disavowal._NOT_IT, *withdrawals._WAYS):
        yield from ((way, one_of) for one_of in needles)
    for _, needles, pattern in (*clues._ALONE, *clues._KINDS):
        yield from ((pattern.pattern, one_of) for one_of in needles)
    yield from ((way, needles) for _, needles, way in taken_back._WAYS)
    yield taken_back._INSTEAD.pattern, taken_back._INSTEAD_NEEDS
    yield from ((way, needles) for needles, way in verdicts._WAYS)
    yield stated_scales._OF_ANOTHER, (*stated_scales._OF_ANOTHER_NEEDS, *stated_scales._OF_TWO_NEEDS)
    yield from ((stated_scales._N_POINT.pattern, one_of) for one_of in stated_scales._N_POINT_NEEDS)
    yield own_scales._STEPS.pattern, own_scales._STEPS_NEED
    tops = (
        (own_scales._TOP, own_scales._TOP_NEEDS),
        (own_scales._WORD_TOP, own_scales._WORD_TOP_NEEDS),
        (own_scales._FULL, own_scales._FULL_NEEDS),
    )
    yield from ((pattern.pattern, one_of) for pattern, needles in tops for one_of in needles)
    yield own_scales._BINARY.pattern, ("binary",)
    yield from ((way, needles) for needles, way in languages.DECLINES.values())
    yield from ((way, needles) for needles, ways in languages.NO_PICTURE.values() for way in ways)


@pytest.mark.parametrize(("pattern", "needles"), [*_told()], ids=str)
def test_a_pattern_matches_nothing_without_what_it_is_said_to_need(pattern: str, needles: tuple[str, ...]) -> None:
    assert needs(pattern, needles)


@pytest.mark.parametrize(
    ("pattern", "needles", "is_so"),
    [
        ("a(?:bc|bd)e", ("b",), True),
        ("a(?:bc|d)e", ("bc", "ad"), True),
        ("a(?:bc|d)e", ("bc",), False),
        ("a(?:bc)?e", ("bc",), False),
        (r"no \w+ image", ("no ", "nope"), True),
        (r"no\w* image", ("no ",), False),
        (r"[^a-c]x{2,}", ("xx",), True),
        (r"(?:ab){1,3}c", ("bc",), True),
        (r"(?<=a)b", ("a",), False),
    ],
)
def test_the_proof_itself(pattern: str, needles: tuple[str, ...], is_so: bool) -> None:
    assert needs(pattern, needles) is is_so


@pytest.mark.parametrize(
    ("pattern", "core"),
    [
        (stated_scales._SPANNED, stated_scales._JOINED),
        (stated_scales._OF_ANOTHER, stated_scales._OF_AN_END),
        (own_scales._GRADED.pattern, own_scales._GRADED_NEEDS),
        (own_scales._FOR_ENDS.pattern, own_scales._FOR_ENDS_NEEDS),
    ],
    ids=["two ends", "an end", "graded from one to the other", "given for one or the other"],
)
@given(data=st.data())
@settings(max_examples=300, suppress_health_check=list(HealthCheck))
def test_what_is_looked_for_first_stands_wherever_the_pattern_does(
    pattern: str, core: re.Pattern[str], data: st.DataObject
) -> None:
    way = re.compile(pattern, re.IGNORECASE)
    text = data.draw(st.from_regex(way))
    lower = words.lowered(text)
    assert lower is None or core.search(lower) or not way.search(text)


def test_sentences_are_what_one_sign_after_the_other_makes_them() -> None:
    """Plain signs and blanks for a whole text at once, as for each sentence alone."""
    draw = random.Random(1)
    signs = [*"aB1.!?;:, \n'’。—éİ４\u200b\xa0\"\\．", "  ", "*_", "“x y”", "3.5", "can't"]
    blank = re.compile(rf"[\s*_#>\"“”„«»\\{ZERO_WIDTH}]+")
    marks = str.maketrans("’‘`´ʼ＇，。；：！？（）【】", 6 * "'" + ",.;:!?()[]")
    parting = {**dict.fromkeys(words._PARTING, " "), **dict.fromkeys(words._APOSTROPHES + ZERO_WIDTH)}
    for _ in range(3000):
        text = words.unadorned("".join(draw.choices(signs, k=draw.randrange(30))))
        plain = [blank.sub(" ", one) for one in words._SENTENCE.findall(text.lower().translate(marks))]
        expected = [(one, frozenset(one.translate(str.maketrans(parting)).split())) for one in plain if one.strip()]
        found = words.Sentences(text)
        assert [(one.text, one.words) for one in found.each] == expected
        assert found.words == frozenset().union(*(one for _, one in expected))
        whole = frozenset(text.lower().translate(str.maketrans(parting)).split())
        assert words.words_of(text, found, is_unquoted=True) == whole


def test_every_white_space_is_a_blank() -> None:
    assert {one for one in map(chr, range(0x110000)) if one.isspace()} == set(WHITE_SPACE)
