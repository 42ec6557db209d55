"""Whether a rubric's dimensions can be read and told apart: labels, scales, answers. The rest of a rubric: linting.py."""

from collections.abc import Iterator

from rubrics.linting_messages import name_of
from rubrics.model import ReplyFormat, Rubric, Variant
from rubrics.replies.labels import keys_by_label

_OF_SEVERAL = (ReplyFormat.LINES, ReplyFormat.LIST)


def dimension_problems(rubric: Rubric) -> Iterator[str]:
    """A sentence for every label, scale or reply form that replies could not be read by, or not as its writer means."""
    yield from _labels(rubric)
    yield from dict.fromkeys(_alike(rubric))
    yield from dict.fromkeys(_scales(rubric))
    if rubric.items and rubric.items.is_together and rubric.reply_format not in _OF_SEVERAL:
        yield (
            f"reply = {rubric.reply_format.value!r} is one answer, and items asked together have one each; write reply = 'lines' "
            "or 'list' (also for an object by the items' ids), or asked = 'each'"
        )


def _labels(rubric: Rubric) -> Iterator[str]:
    for variant in rubric.variants.values():
        if rubric.reply_format in (ReplyFormat.ANSWER, *_OF_SEVERAL):
            yield from _answer_problems(rubric, variant)
            continue
        for dimension in variant.dimensions:
            for label in dimension.labels:
                if variant.prompt is not None and label not in variant.prompt:
                    where = f"{variant.prompt_file} does not hold the label {label!r} of {dimension.key!r}"
                    yield f"{where}; spell it as the prompt does"


def _alike(rubric: Rubric) -> Iterator[str]:
    """Labels that a reply's reader does not tell apart: one number would be two scores. Pointers may take several of a list."""
    if rubric.program:
        return
    for variant in rubric.variants.values():
        for label, named in keys_by_label(variant.dimensions).items():
            if label and len(named) > 1 and any(dimension.at is None for dimension in named):
                keys = " and ".join(repr(dimension.key) for dimension in named)
                yield (
                    f"{keys} have labels that read alike ({label!r}), keys among them: case, blanks, hyphens and _ aside; "
                    "call one otherwise, in the prompt too"
                )


def _scales(rubric: Rubric) -> Iterator[str]:
    """Whole numbers are counted from the scale's lower end by the data checks, and from 0 by a reply's reader."""
    for variant in rubric.variants.values():
        for dimension in variant.dimensions:
            if dimension.step == 1 and not float(dimension.minimum).is_integer():
                yield (
                    f"dimension {dimension.key!r} has whole numbers (step = 1) and a scale that begins at {dimension.minimum:g}; "
                    "begin it at a whole number, or take step away"
                )


def _answer_problems(rubric: Rubric, variant: Variant) -> Iterator[str]:
    """A reply that is one answer is one dimension's; a label before it is the judge's own habit, not the prompt's."""
    is_by_item = rubric.items is not None and "expected" in rubric.items.fields
    if len(variant.dimensions) != 1 or not (
        variant.dimensions[0].answers or is_by_item or rubric.reply_format is ReplyFormat.LIST
    ):
        form, where = rubric.reply_format.value, name_of(rubric, variant)
        yield f"reply = {form!r} is one answer, and {where} has other dimensions; give one, with answers"
    if rubric.reply_format in _OF_SEVERAL and not (rubric.items and rubric.items.is_together):
        yield f"reply = {rubric.reply_format.value!r} answers several items; add [items] with asked = 'together'"
