"""The forms that are text: the bracket line `[Label: n; Label: n]`, and a labelled line `Label: n`. JSON is json_form.py.

Work on a text is done by re in one pass; Python sees each distinct piece once, so that a label repeated 100,000 times is cheap.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from rubrics.model import Dimension
from rubrics.replies.answers import whole_answers
from rubrics.replies.labels import keys_by_label, label_pattern, normal
from rubrics.replies.numbers import BLANK, Found, Value, read_number, scale_stated
from rubrics.replies.weighing.around_labels import LAST_WORDS, OWN_WORDS, listed_below, qualifier_of
from schemas.statuses.rows import ParseReason

_N_DISTINCT_MAX = 2000
_N_LABELS_MAX = 20_000
_N_BRACKETS_MAX = 20_000
_LINE_END = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_FIRST_LINE = re.compile(rf"[^{_LINE_END}]*+")
_FIRST_ENTRY = re.compile(rf"(?:[^{_LINE_END};；\[\]]++|\[[^\[\]]*+\])*+")
_ANY_LINE_END = re.compile(f"[{_LINE_END}]")
_OPEN_ENDS = "0123456789.,/+-–—~ \t"
_GAP = BLANK + "*`"
_AFTER_VALUE = _GAP + "|,/(，、；"
_PLAIN_VALUE = re.compile(r"[ *_]{0,4}+([0-9]{1,9}+(?:\.[0-9]{1,9}+)?+)(?=[*_ ]{0,3}+(?:[;；\]】］,，\n]|\Z)(?!\s?[0-9]))")
_GAPS = re.compile(f"[{_GAP}]*+")


class _Patterns(NamedTuple):
    label: re.Pattern[str]  # a label with its colon: (label, parenthesis or None)
    form: re.Pattern[str]  # a bracket that opens with a label: (inside, closing bracket or "")


class _Said(NamedTuple):
    """A label and what stands behind it; `value` None: nothing does. `is_rival`: no answer, but it may contradict one.

    `qualifier`: the word that makes the label another: "final", "realism".
    """

    key: str
    value: Value | None
    is_rival: bool = False
    qualifier: str = ""


def read_bracket(text: str, dimensions: tuple[Dimension, ...], *, is_cut: bool) -> Found:
    """The values in the bracket line; without brackets, those of the bare labels, if every dimension has one.

    Beside a bracket line other labelled numbers count too: one that differs makes the dimension ambiguous.
    """
    if text.count("[") > _N_BRACKETS_MAX:
        return Found(reason=ParseReason.MALFORMED)
    form = _patterns(dimensions).form
    forms = sorted(set(form.findall(text)))
    if not forms:
        return _read_bare(text, dimensions, is_cut=is_cut)
    if any(not closing for _, closing in forms):
        return Found(reason=ParseReason.TRUNCATED)
    values: dict[str, list[Value]] = {}
    for inside, _ in forms[:_N_DISTINCT_MAX]:
        said_inside = _said(_parts(inside, dimensions), dimensions, _FIRST_ENTRY)
        entries = [said for said in said_inside if said.value is not ParseReason.WRONG_TYPE or not said.is_rival]
        is_unfilled = all(said.value is None for said in entries)
        blank = ParseReason.TEMPLATE_ECHO if is_unfilled else ParseReason.WRONG_TYPE
        for said in entries:
            values.setdefault(said.key, []).append(blank if said.value is None else said.value)
    beside = form.sub("\n", text)
    parts = _parts(beside, dimensions)
    for entry in (_FIRST_LINE, _FIRST_ENTRY):  # "4 (good; sharp)" on a line of its own, and "Label: 4; Label: 3" on one
        for said in _said(parts, dimensions, entry):
            if isinstance(said.value, Decimal):
                values.setdefault(said.key, []).append(said.value)
    return Found(values)


def read_label(text: str, dimensions: tuple[Dimension, ...], *, is_cut: bool) -> Found:
    """The values of the labelled lines. `is_cut`: the provider says the reply was stopped by its length."""
    return _read_lines(text, dimensions, _FIRST_LINE, is_cut=is_cut)


def read_whole(text: str, dimensions: tuple[Dimension, ...], *, is_cut: bool) -> Found:
    """The answer of a reply that is one answer. One that stops right behind its word may have gone on: "no" to "not"."""
    (dimension,) = dimensions
    placed = whole_answers(text, dimension)
    if is_cut and (not placed or not text[placed[-1].span[1] :].strip(BLANK)):
        return Found(reason=ParseReason.TRUNCATED)
    if not placed:
        return Found(reason=ParseReason.NOT_FOUND)
    value = {one.value for one in placed}
    if value == {ParseReason.WRONG_TYPE}:
        return Found(reason=ParseReason.NOT_FOUND)
    return Found({dimension.key: [one.value for one in placed]}, spans={dimension.key: placed[0].span})


def numbers_beside(text: str, dimensions: tuple[Dimension, ...]) -> Iterator[tuple[str, Decimal]]:
    """(key, number) of each labelled line in a text that holds the answer in another form."""
    for said in _said(_parts(text, dimensions), dimensions, _FIRST_LINE):
        if isinstance(said.value, Decimal):
            yield said.key, said.value


def places_in_lines(text: str, dimensions: tuple[Dimension, ...], scores: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """Where the first value behind each dimension's label stands that reads as its score."""
    labels, label = keys_by_label(dimensions), _patterns(dimensions).label
    places: dict[str, tuple[int, int]] = {}
    for n_seen, found in enumerate(label.finditer(text)):
        if len(places) == len(dimensions) or n_seen > _N_LABELS_MAX:
            break
        for dimension in labels.get(normal(found[1]), ()):  # "Qualİty" is found without regard to case, and is no label
            if dimension.key not in places and (place := _place(text, found.end(), dimension, label, scores[dimension.key])):
                places[dimension.key] = place
    return places


def _place(text: str, at: int, dimension: Dimension, label: re.Pattern[str], score: float) -> tuple[int, int] | None:
    plain = _PLAIN_VALUE.match(text, at)
    if plain is not None and float(plain[1]) == score:
        return plain.span(1)
    gap = _GAPS.match(text, at)
    start = gap.end() if gap else at
    for entry in (_FIRST_LINE, _FIRST_ENTRY):
        said = entry.match(text, start)
        following = label.search(text, start, said.end()) if said else None
        end = following.start() if following else said.end() if said else start
        value = text[start:end].rstrip(_AFTER_VALUE)
        if any(read_number(value.rstrip(closing), dimension, is_prose_allowed=True) == score for closing in ("", "]】］")):
            return start, end
    return None


def _read_lines(text: str, dimensions: tuple[Dimension, ...], entry: re.Pattern[str], *, is_cut: bool) -> Found:
    values: dict[str, list[Value]] = {}
    parts = _parts(text, dimensions)
    everything = list(_said(parts, dimensions, entry))
    for said in everything:
        if said.value is not None and not said.is_rival:
            values.setdefault(said.key, []).append(said.value)
    for said in everything:
        if said.is_rival and said.key in values and isinstance(said.value, Decimal):
            values[said.key].append(said.value)
    if not values and len(dimensions) == 1:
        values = _final(everything)
    if is_cut and (len(values) < len(dimensions) or _is_last_number_open(text, dimensions)):
        return Found(reason=ParseReason.TRUNCATED)
    if not values:
        is_blank = any(said.value is None for said in everything)
        return Found(reason=ParseReason.TRUNCATED if is_blank else ParseReason.NOT_FOUND)
    return Found(values, _reasoning(parts, dimensions))


def _final(everything: list[_Said]) -> dict[str, list[Value]]:
    """The values of a "Final Score", where no other score is named beside it: it can be no other's."""
    if not everything or any(said.qualifier not in OWN_WORDS or said.value is None for said in everything):
        return {}
    return {everything[0].key: [said.value for said in everything if said.value is not None]}


def _read_bare(text: str, dimensions: tuple[Dimension, ...], *, is_cut: bool) -> Found:
    """Labels without their brackets. Words behind a label, as in a discussion of it, are no answer."""
    found = _read_lines(text, dimensions, _FIRST_ENTRY, is_cut=is_cut)
    if found.reason or found.has_number or len(found.values) == len(dimensions):
        return found
    return Found(reason=ParseReason.NOT_FOUND)


def _parts(text: str, dimensions: tuple[Dimension, ...]) -> list[Any]:
    """The text parted at its labels: what stands before the first, that label, the scale beside it, what stands behind, ..."""
    return _patterns(dimensions).label.split(text, _N_LABELS_MAX)


def _said(parts: list[Any], dimensions: tuple[Dimension, ...], entry: re.Pattern[str]) -> Iterator[_Said]:
    """What a text's parts say behind its labels, each distinct piece once; `entry` is how far a value may reach."""
    if len(parts) == 1:
        return
    pieces = dict.fromkeys(zip(parts[0::3], parts[1::3], parts[2::3], parts[3::3], strict=False))
    labels = keys_by_label(dimensions)
    if len(pieces) > _N_DISTINCT_MAX or len(parts) > 3 * _N_LABELS_MAX:  # no reply, but a flood of answers
        reason = ParseReason.AMBIGUOUS if len(pieces) > _N_DISTINCT_MAX else ParseReason.MALFORMED
        yield from (_Said(dimension.key, reason) for dimension in dimensions)
        return
    for index, (before, label, parenthesis, after) in enumerate(pieces):
        qualifier = qualifier_of(before, label, dimensions, is_first=index == 0)
        is_other = bool(qualifier) and qualifier not in LAST_WORDS
        found = entry.match(after.lstrip(_GAP))
        value = found[0].rstrip(_AFTER_VALUE) if found else ""
        listed = listed_below(after) if value else None
        for dimension in labels.get(normal(label), ()):
            if is_other or listed:
                reason = listed or ParseReason.WRONG_TYPE
                yield _Said(dimension.key, reason, is_rival=is_other or listed is ParseReason.WRONG_TYPE, qualifier=qualifier)
                continue
            says = scale_stated(parenthesis or "", dimension) or read_number(value, dimension, is_prose_allowed=True)
            yield _Said(dimension.key, says if value else None, bool(qualifier), qualifier)


def _is_last_number_open(text: str, dimensions: tuple[Dimension, ...]) -> bool:
    """Whether the text ends in a labelled value that might have gone on: 4, 4.5, 4/10."""
    after = _patterns(dimensions).label.split(text)[-1].lstrip(_GAP)
    if _ANY_LINE_END.search(after) or ";" in after or "；" in after:
        return False
    says = [read_number(after, dimension, is_prose_allowed=True) for dimension in dimensions]
    return after[-1:] in _OPEN_ENDS or not any(isinstance(value, Decimal) for value in says)


def _reasoning(parts: list[Any], dimensions: tuple[Dimension, ...]) -> dict[str, str]:
    """Where there is one dimension, what stands before its label is its note."""
    if len(dimensions) != 1:
        return {}
    note = parts[0].strip(BLANK + "*_`#") if len(parts) > 1 else ""
    return {dimensions[0].key: note} if note else {}


@lru_cache(maxsize=256)
def _patterns(dimensions: tuple[Dimension, ...]) -> _Patterns:
    label = label_pattern(dimensions)
    # split() gives back every group: the label and the scale said beside it, no other.
    marks = r"[ \t*_`]{0,6}+(?:</[A-Za-z]{1,10}+>)?+"
    scale = r"(?:\([^()\n]{0,40}+\)|\[[0-9][^\[\]\n]{0,20}+\])"
    # a dash between blanks, where nothing but the number follows it: "-1" and "1 - 2" are none
    alone = r"[*_`]{0,3}+[0-9]{1,9}+(?:\.[0-9]{1,9}+)?+[*_`]{0,3}+[ \t]{0,3}+(?:\n|\Z)"
    end = rf"[ \t*_`]{{0,6}}+(?:[:：=]|(?<=[ \t])[–—][ \t](?={alone}))"
    inside = r"((?:[^\[\]［］【】]++|\[[^\[\]]*+\])*+)"
    return _Patterns(
        label=re.compile(rf"({label}){marks}】?+({scale})?{end}"),
        form=re.compile(rf"[\[［【](?=[\s*_`]*+{label}{marks}(?:{scale})?{end}){inside}([\]］】]?)"),
    )
