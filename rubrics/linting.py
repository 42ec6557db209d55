"""Whether a rubric makes sense, proved before a cent is spent. Its messages are linting_messages.py, its rules linting_rules.py.

Whether it can be loaded at all is loading.py.
"""

import difflib
from collections.abc import Iterator

from rubrics.golden import NOT_RENDERED, REPLIES, as_golden, read_requests, replies_by_line
from rubrics.linting_messages import message_problems, name_of
from rubrics.linting_rules import rule_problems
from rubrics.model import FIRST, SECOND, ReplyFormat, Rubric, Variant
from rubrics.replies.jsonl import LACKS, said_of
from rubrics.replies.labels import keys_by_label
from rubrics.replies.read import parse_reply
from schemas.records import IMAGE, SAMPLE_TEXTS

_LOOKS_LIKE = 0.8  # of difflib's ratio: "promt" is 0.91 from "prompt", "texts" 0.89 from "text", "questions" 0.94
_OF_SEVERAL = (ReplyFormat.LINES, ReplyFormat.LIST)


def lint(rubric: Rubric) -> list[str]:
    """Every problem of a loaded rubric, one sentence each; empty where it can be asked with."""
    problems = [*_vocabulary(rubric)]
    if rubric.requests:
        return problems + [f"request {name}: {problem}" for name, one in rubric.requests.items() for problem in lint(one)]
    if rubric.messages:
        problems += message_problems(rubric)
    problems += [*dimension_problems(rubric), *rule_problems(rubric)]
    # A rubric that is wrong in itself renders wrong golden requests: those sentences would only repeat the others.
    return problems or [*_golden_requests(rubric), *_golden_replies(rubric)]


def _vocabulary(rubric: Rubric) -> Iterator[str]:
    """The columns named, and named where they are needed: a sample without its dispatch column has no prompt."""
    for column in rubric.columns:
        close = difflib.get_close_matches(column, SAMPLE_TEXTS, n=1, cutoff=_LOOKS_LIKE)
        if column not in SAMPLE_TEXTS and close:
            yield f"{column!r} looks like a misspelling of {close[0]!r}; correct it, or give your own column a more distinct name"
    yield from _closed_lists(rubric)
    yield from _pair_problems(rubric)
    if not rubric.messages:
        return
    named_by = [("unit", column) for column in rubric.unit] + [("dispatch", rubric.dispatch)]
    named_by += [("items.column", rubric.items.column)] if rubric.items else []
    if rubric.report_by != "category":  # the default: a sample may lack it
        named_by.append(("report_by", rubric.report_by))
    for key, name in named_by:
        if name and name not in rubric.needs and not (key == "unit" and name in rubric.roles):
            yield f"{key} names {name!r}, which is not in needs; add it there"
    if rubric.dispatch in rubric.may_be_null:
        yield f"dispatch column {rubric.dispatch!r} may be null, and then there is no prompt; remove it from may_be_null"


def _pair_problems(rubric: Rubric) -> Iterator[str]:
    """A pair has a first and a second, and each dimension an answer for either: a number between them is a tie."""
    shown = [role for role in (FIRST, SECOND) if role in rubric.roles]
    if not rubric.is_of_pairs:
        if len(shown) == 2:
            yield f"pictures are {FIRST!r} and {SECOND!r}, but pairs is not true; write pairs = true, or rename them"
        return
    if len(shown) < 2 or IMAGE in rubric.roles:
        yield f"pairs = true shows two samples: write pictures = [{FIRST!r}, {SECOND!r}] and no 'image' in needs"
    if rubric.items or rubric.rules:
        yield "pairs = true cannot be combined with [items] or rules; use a separate rubric for pairs"
    for dimension in rubric.dimensions:
        numbers = {number for _, number in dimension.answers}
        if not {0, 1} <= numbers <= {0, 0.5, 1}:
            yield (
                f"dimension {dimension.key!r} of pairs needs answers such as {{ A = 1, B = 0, tie = 0.5 }}: 1 where the first is "
                "better, 0 where the second is, 0.5 where neither is"
            )
        if dimension.figure or dimension.probability or dimension.not_applicable:
            yield f"dimension {dimension.key!r} of pairs must be an answer only; remove figures, probability, not_applicable"


def _closed_lists(rubric: Rubric) -> Iterator[str]:
    """Every word that the rubric itself names is one its closed lists hold."""
    for column, words in rubric.words.items():
        for word in rubric.value_maps.get(column, {}).values():
            if word not in words:
                yield f"value_maps.{column} maps to {word!r}, which is not in words.{column}; add it there"
    if rubric.dispatch is not None and rubric.dispatch in rubric.words:
        for category in rubric.variants:
            if category not in rubric.words[rubric.dispatch]:
                yield f"there is a variant for {rubric.dispatch} {category!r}, which is not in words.{rubric.dispatch}; add it"


def _golden_requests(rubric: Rubric) -> Iterator[str]:
    try:
        requests = read_requests(rubric.folder)
    except (OSError, ValueError, RecursionError) as error:
        yield f"a golden request cannot be read: {error}"
        return
    for name, golden in requests.items():
        try:
            is_same = as_golden(rubric, golden["values"], golden["has_image"], golden.get("pictures", {})) == golden
        except NOT_RENDERED as error:
            yield f"golden/requests/{name} cannot be rendered: {error}"
            continue
        if not is_same:
            yield (
                f"golden/requests/{name} differs from what is rendered now; if that is intended, raise the version and rewrite "
                f"it: salon rubrics lint {rubric.folder} --rewrite"
            )


def _golden_replies(rubric: Rubric) -> Iterator[str]:
    try:
        replies = list(replies_by_line(rubric.folder))
    except OSError as error:
        yield f"golden/{REPLIES} cannot be read: {error}"
        return
    for number, golden in replies:
        if isinstance(golden, str):
            yield f"golden/{REPLIES}, line {number}: {golden}"
            continue
        said = said_of(rubric, parse_reply(rubric, golden["raw"], golden["context"]), golden["context"])
        if golden["expect"] not in (said, {key: value for key, value in said.items() if key != LACKS}):
            lacking = "; its context lacks the log probabilities (logprobs_json)" if LACKS in said else ""
            yield f"golden/{REPLIES}, line {number} is read as {said}, not as {golden['expect']}{lacking}"


def dimension_problems(rubric: Rubric) -> Iterator[str]:
    """A sentence for every label, scale or reply form that replies could not be read by, or not as its writer means."""
    yield from _labels(rubric)
    yield from dict.fromkeys(_alike(rubric))
    yield from dict.fromkeys(_scales(rubric))
    if rubric.items and rubric.items.is_together and rubric.reply_format not in _OF_SEVERAL:
        yield (
            f"reply = {rubric.reply_format.value!r} is a single answer, but items asked together have one each; write reply = "
            "'lines' or 'list' (also for an object by the items' ids), or asked = 'each'"
        )


def _labels(rubric: Rubric) -> Iterator[str]:
    for variant in rubric.variants.values():
        if rubric.reply_format in (ReplyFormat.ANSWER, *_OF_SEVERAL):
            yield from _answer_problems(rubric, variant)
            continue
        for dimension in variant.dimensions:
            for label in dimension.labels:
                if variant.prompt is not None and label not in variant.prompt:
                    where = f"{variant.prompt_file} does not contain the label {label!r} of {dimension.key!r}"
                    yield f"{where}; spell the label as in the prompt"


def _alike(rubric: Rubric) -> Iterator[str]:
    """Labels that a reply's reader does not tell apart: one number would be two scores. Pointers may take several of a list."""
    if rubric.program:
        return
    for variant in rubric.variants.values():
        for label, named in keys_by_label(variant.dimensions).items():
            if label and len(named) > 1 and any(dimension.at is None for dimension in named):
                keys = " and ".join(repr(dimension.key) for dimension in named)
                yield (
                    f"{keys} have the same label or key ({label!r}) when case, blanks, hyphens and _ are ignored; rename one, "
                    "also in the prompt"
                )


def _scales(rubric: Rubric) -> Iterator[str]:
    """Whole numbers are counted from the scale's lower end by the data checks, and from 0 by a reply's reader."""
    for variant in rubric.variants.values():
        for dimension in variant.dimensions:
            if dimension.step == 1 and not float(dimension.minimum).is_integer():
                yield (
                    f"dimension {dimension.key!r} has whole numbers (step = 1) and a scale that begins at {dimension.minimum:g}; "
                    "begin it at a whole number, or remove step"
                )
            elif dimension.step == 1 and not float(dimension.maximum).is_integer() and not dimension.figure:
                yield (
                    f"dimension {dimension.key!r} has whole numbers (step = 1) and a scale that ends at {dimension.maximum:g}, "
                    "not a whole number; end it at a whole number, or remove step"
                )


def _answer_problems(rubric: Rubric, variant: Variant) -> Iterator[str]:
    """A reply that is one answer is one dimension's; a label before it is the judge's own habit, not the prompt's."""
    is_by_item = rubric.items is not None and "expected" in rubric.items.fields
    if len(variant.dimensions) != 1 or not (
        variant.dimensions[0].answers or is_by_item or rubric.reply_format is ReplyFormat.LIST
    ):
        form, where = rubric.reply_format.value, name_of(rubric, variant)
        yield f"reply = {form!r} is a single answer, but {where} has other dimensions; give one, with answers"
    if rubric.reply_format in _OF_SEVERAL and not (rubric.items and rubric.items.is_together):
        yield f"reply = {rubric.reply_format.value!r} answers several items; add [items] with asked = 'together'"
