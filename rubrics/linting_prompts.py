"""What a prompt tells the judge, held against what its rubric reads: answers, scale, form, digits, braces. All are remarks.

A prompt may say it in words that nobody can look for, or a column may say it: so none of these is a problem. Labels, and what is
certainly wrong, are linting.py.
"""

import re
from collections.abc import Iterator

from rubrics.model import ReplyFormat, Rubric, Variant

_NUMBER = r"(\d{1,4}(?:\.\d+)?)"
_SPANS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:from|between)\s+{_NUMBER}(?:\s*\([^()\n]{{0,80}}\))?\s+(?:to|and)\s+{_NUMBER}(?![\w/])",
        rf"\bscale\s+(?:of|from|is)?\s*{_NUMBER}\s*(?:to|[-–—~])\s*{_NUMBER}(?![\w/])",
        rf"[:\[(<]\s*{_NUMBER}\s*(?:to|[-–—~])\s*{_NUMBER}\s*(?=[,}}\])>\n]|\Z)",
    )
)
_TOPS = re.compile(rf"(?:\b[XYN]|[>\]}})_.])\s?/\s?{_NUMBER}(?![\w/.,]\d)|\bout\s+of\s+{_NUMBER}\b", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"(?<![\d,.])\d{1,3},\d{1,2}(?![\d,]|\.\d)")
_OTHER_DIGITS = re.compile(r"[０-９]")
_PAIR = re.compile(r'"([^"\n]{1,60})"\s*:\s*("[^"\n]*"|[^\s,}\n"]+)')
_SLOT = re.compile(r"\{\w+\}")
_TEMPLATES = re.compile(r"\{\{\s*(\w+)\s*\}\}|\$\{(\w+)\}")
_EVIDENT = frozenset({"yes", "no"})
"""Answers that a question calls for by itself."""
_EVIDENT_ASIDE = frozenset({"n/a", "na", "not applicable"})
_ONE_OBJECT = (ReplyFormat.JSON, ReplyFormat.NUMBERS)
_NO_OBJECT = (ReplyFormat.BRACKET, ReplyFormat.LABEL, ReplyFormat.ANSWER, ReplyFormat.LINES)


def prompt_remarks(rubric: Rubric) -> Iterator[str]:
    """A sentence for all that the prompt says otherwise than the rubric reads it, or does not say."""
    is_asked = bool(rubric.messages) and not rubric.requests
    for variant in rubric.variants.values() if is_asked else ():
        if variant.prompt is None:
            continue
        told = "\n".join([variant.prompt, *(p.value for m in rubric.messages for p in m.parts if p.kind == "text")])
        for remark in (*_words(rubric, variant, told), *_scales(variant, told), *_form(rubric, variant, told)):
            yield f"{variant.prompt_file} {remark}"
        for remark in (*_digits(variant), *_braces(rubric, variant)):
            yield f"{variant.prompt_file} {remark}"


def figure_remarks(rubric: Rubric) -> Iterator[str]:
    """A dimension that one figure is made of twice counts twice there."""
    for one in {one.key: one for variant in rubric.variants.values() for one in variant.derived}.values():
        named = one.figure.of if one.figure else ()
        for key in dict.fromkeys(key for key in named if named.count(key) > 1):
            yield f"figure {one.key!r} names {key!r} {named.count(key)} times, which adds weight; name it once unless intended"


def _words(rubric: Rubric, variant: Variant, told: str) -> Iterator[str]:
    """Closed lists are the judge's to know: a word that it is not told is a word that it does not say."""
    for dimension in variant.dimensions:
        words = [word for word, _ in dimension.answers if word.casefold() not in _EVIDENT]
        unsaid = [word for word in words if not _is_told(word, told)]
        if unsaid:
            listed = ", ".join(map(repr, unsaid))
            where = " (nor may an item's choices)" if rubric.items else ""
            yield f"does not name the answers {listed} of {dimension.key!r}{where}; a judge that is not told them gives others"
    of_word: dict[tuple[str, ...], list[str]] = {}
    for dimension in variant.dimensions:
        aside = dimension.not_applicable
        if aside and _EVIDENT_ASIDE.isdisjoint(map(str.casefold, aside)) and not any(_is_told(word, told) for word in aside):
            of_word.setdefault(aside, []).append(repr(dimension.key))
    for aside, keys in of_word.items():
        yield f"names no word of not_applicable of {', '.join(keys)} ({', '.join(map(repr, aside))}); another word is not a score"


def _is_told(word: str, told: str) -> bool:
    flags = re.NOFLAG if len(word) == 1 else re.IGNORECASE  # "A" is no article
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)" if word[:1].isalnum() else re.escape(word), told, flags) is not None


def _scales(variant: Variant, told: str) -> Iterator[str]:
    """Scales that the prompt states, where none is the dimension's."""
    spans = [(float(low), float(high)) for pattern in _SPANS for low, high in pattern.findall(told)]
    tops = [float(one or other) for one, other in _TOPS.findall(told)]
    if not spans and not tops:
        return
    stated = ", ".join(dict.fromkeys([*(f"{low:g} to {high:g}" for low, high in spans), *(f"/ {top:g}" for top in tops)]))
    others: dict[str, list[str]] = {}
    for dimension in variant.dimensions:
        own = (dimension.minimum, dimension.maximum)
        if not dimension.answers and own not in spans and dimension.maximum not in tops:
            others.setdefault(f"{dimension.minimum:g} to {dimension.maximum:g}", []).append(repr(dimension.key))
    for scale, keys in others.items():
        has = "have" if len(keys) > 1 else "has"
        yield f"states the scale {stated}, but {', '.join(keys)} {has} {scale}; a number on another scale is not a score"


def _form(rubric: Rubric, variant: Variant, told: str) -> Iterator[str]:
    """JSON that is shown and not read, or read and not shown; and a key of it beside the dimensions', shown as theirs are."""
    form, pairs = rubric.reply_format, dict(_PAIR.findall(told))
    shows_object = "{" in _SLOT.sub("", told)
    labels = {label for dimension in variant.dimensions for label in (dimension.key, *dimension.labels)}
    if form in _NO_OBJECT and shows_object and not labels.isdisjoint(pairs):
        yield f"shows a JSON object, but reply = {form.value!r} does not read one; write reply = 'json', or show that form"
    if form not in _ONE_OBJECT:
        return
    if not shows_object and "json" not in told.lower():
        yield f"shows no JSON, but reply = {form.value!r} reads nothing else; show the object that the judge should write"
    if all(dimension.at is None for dimension in variant.dimensions):
        shown = {pairs[label] for label in labels if label in pairs}
        for key in (key for key, value in pairs.items() if key not in labels and value in shown):
            yield f"asks for {key!r} like the dimensions, but no dimension has this name; it is not read"


def _digits(variant: Variant) -> Iterator[str]:
    """What a judge copies from its prompt, and no reader takes for a number."""
    if all(dimension.answers for dimension in variant.dimensions):
        return
    if comma := _DECIMAL_COMMA.search(variant.prompt or ""):
        yield f"writes {comma[0]!r}: a reply with a decimal comma is not a score (malformed); write a point, and ask for one"
    if digit := _OTHER_DIGITS.search(variant.prompt or ""):
        yield f"writes {digit[0]!r}: a reply with full-width digits is not a score (wrong_type); write 0 to 9, and ask for them"


def _braces(rubric: Rubric, variant: Variant) -> Iterator[str]:
    """Habits of other templates, whose marks stay around what is filled in."""
    if not any(part.kind == "template" for message in rubric.messages for part in message.parts):
        return
    for found in _TEMPLATES.finditer(variant.prompt or ""):
        if (found[1] or found[2]) in rubric.needs and found[0] not in rubric.slots:
            name = found[1] or found[2]
            yield f"has {found[0]!r}, of which {{{name}}} is filled and the rest is sent around it; write {{{name}}}"
