"""A Rubric of a declaration and the files it names, where its keys can all be meant. Whether it makes sense is linting.py."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from rubrics.declaration import Declaration, DimensionSection, ItemsSection, refusal
from rubrics.dimensions import derived_dimensions, read_dimension
from rubrics.messages import Example, Message, Part
from rubrics.model import Condition, Items, ItemText, ReplyFormat, Rubric, Rule, Variant, WordsOutside
from rubrics.rendering import PLACEHOLDER
from rubrics.sections import RuleSection, WhenSection
from schemas.records import IMAGE, RESERVED_NAMES

_STARTS = {"PNG": rb"\x89PNG\r\n\x1a\n", "JPEG": rb"\xff\xd8\xff", "WEBP": rb"RIFF....WEBP"}


def _example(folder: Path, name: str, content: bytes) -> Example:
    known = next((kind for kind, start in _STARTS.items() if re.match(start, content, re.DOTALL)), None)
    if known is None:
        raise refusal(folder, f"the example picture {name} is none of {', '.join(_STARTS)}; save it as one of these")
    return Example(sha256(content).hexdigest(), known, content)


def assemble(
    folder: Path, declared: Declaration, prompts: Mapping[str, bytes], examples: Mapping[str, bytes], digest: str
) -> Rubric:
    """The rubric of a folder. Raises RubricError where two keys of the declaration cannot both be meant."""
    _check_names(folder, declared)
    variants = _variants(folder, declared, prompts)
    _check_scales_agree(folder, variants)
    value_maps: dict[str, Mapping[str, str]] = {column: dict(words) for column, words in declared.value_maps.items()}
    return Rubric(
        id=declared.id,
        version=declared.version,
        title=declared.title,
        source=declared.source,
        folder=folder,
        digest=digest,
        reply_format=ReplyFormat(declared.reply) if declared.reply else ReplyFormat.NUMBERS,
        program=f"{declared.program.name}-{declared.program.version}" if declared.program else None,
        needs=(*declared.needs, *([IMAGE] if IMAGE in declared.pictures and IMAGE not in declared.needs else [])),
        pictures=(*([IMAGE] if IMAGE in declared.needs and IMAGE not in declared.pictures else []), *declared.pictures),
        slots=dict(declared.slots),
        examples={name: _example(folder, name, content) for name, content in examples.items()},
        may_be_null=frozenset(declared.may_be_null),
        unit=tuple(declared.unit),
        report_by=declared.report_by,
        dispatch=declared.dispatch,
        value_maps=value_maps,
        items=_items(declared.items) if declared.items else None,
        is_of_pairs=declared.pairs,
        words={column: tuple(words) for column, words in declared.words.items()},
        messages=tuple(
            Message(m.role, tuple(Part(p.kind, p.value or "", p.null_as, p.detail) for p in m.parts)) for m in declared.messages
        ),
        variants=variants,
        rules=tuple(_rule(rule) for rule in declared.rules),
        n_output_tokens_expected=declared.output_tokens,
    )


def check_id(folder: Path, declared: Declaration) -> None:
    """Raise RubricError where the rubric is not called as its folder is."""
    if declared.id != folder.resolve().name:
        raise refusal(folder, f"the id {declared.id!r} is not the folder's name; rename the folder or change the id")


def _check_names(folder: Path, declared: Declaration) -> None:
    """The few places where two keys must agree for a Rubric to exist at all."""
    check_id(folder, declared)
    if bool(declared.variants) != (declared.dispatch is not None):
        raise refusal(folder, "variants and dispatch go together: give both, or dimensions alone")
    if bool(declared.dimensions) == bool(declared.variants):
        raise refusal(folder, "dimensions belong either at the top or in variants; give one of the two")
    if declared.prompt is not None and declared.variants:
        raise refusal(folder, "prompt belongs in each of the variants, not at the top; remove it")
    scale, numbers = declared.scale, sorted((declared.answers or {}).values())
    if scale is not None and numbers and (scale.min, scale.max) != (numbers[0], numbers[-1]):
        raise refusal(
            folder,
            f"scale is {scale.min:g} to {scale.max:g} and the answers beside it are {numbers[0]:g} to {numbers[-1]:g}: their "
            "numbers are the scale; remove one of the two, or give it to a dimension",
        )
    refuse_repeats(folder, "needs", declared.needs)
    refuse_repeats(folder, "pictures", declared.pictures)
    refuse_repeats(folder, "unit", declared.unit)
    refuse_repeats(folder, "variants", [variant.category for variant in declared.variants])
    refuse_repeats(folder, "rules", [rule.name for rule in declared.rules])
    _check_columns(folder, declared)


def _check_columns(folder: Path, declared: Declaration) -> None:
    for name in declared.needs:
        if name != IMAGE and name in declared.pictures:
            raise refusal(folder, f"{name!r} is a text in needs and a picture in pictures; rename one of them")
    for column in declared.may_be_null:
        if column not in (*declared.needs, *declared.pictures):
            raise refusal(folder, f"may_be_null names {column!r}, which is not in needs {declared.needs}")
    for column, allowed in declared.words.items():
        refuse_repeats(folder, f"words.{column}", allowed)
    for column, words in declared.value_maps.items():
        # Words are mapped wherever they are met, also twice; so a mapped word must stay as it is.
        chained = sorted(set(words) & set(words.values()))
        if chained:
            raise refusal(folder, f"value_maps.{column} maps to {chained[0]!r} and also from it; map directly to the final word")
        reserved = sorted(RESERVED_NAMES.intersection(words.values()))
        if reserved:
            raise refusal(folder, f"value_maps.{column} maps to {reserved[0]!r}, a name that Salon reserves; choose another word")


def refuse_repeats(folder: Path, key: str, values: Sequence[str]) -> None:
    """Raise RubricError where a value stands twice."""
    for value in values:
        if values.count(value) > 1:
            raise refusal(folder, f"{key} has {value!r} twice; name it once")


def _variants(folder: Path, declared: Declaration, prompts: Mapping[str, bytes]) -> dict[str | None, Variant]:
    sections: list[tuple[str | None, str | None, list[DimensionSection]]] = [
        (section.category, section.prompt, section.dimensions) for section in declared.variants
    ] or [(None, declared.prompt, declared.dimensions)]
    variants: dict[str | None, Variant] = {}
    for category, name, listed in sections:
        refuse_repeats(folder, "dimensions", [section.key for section in listed])
        dimensions = tuple(read_dimension(folder, section, declared) for section in listed)
        derived = derived_dimensions(folder, declared, dimensions)
        refuse_repeats(folder, "labels", [label for d in dimensions if not d.at for label in d.labels])
        variants[category] = Variant(
            category, _text(folder, name, prompts[name]) if name else None, name, dimensions, derived, declared.items is not None
        )
    return variants


def _items(section: ItemsSection) -> Items:
    texts = {n: ItemText(t.each, t.join, t.before, t.after, t.strip) for n, t in section.texts.items()}
    fields = {str(k): v for k, v in section.fields.items()}
    beside_id = {slot for text in texts.values() for slot in PLACEHOLDER.findall(text.each)} - {fields.get("id", "id")}
    if len(beside_id) == 1:  # all that an item says
        fields = {"text": beside_id.pop()} | fields
    return Items(section.column, section.asked == "together", texts, fields, dict(section.kinds))


def _text(folder: Path, name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refusal(folder, f"{name} is not UTF-8: {error}") from error


def _check_scales_agree(folder: Path, variants: Mapping[str | None, Variant]) -> None:
    """A dimension of one name is one column of the tables, so it has one scale."""
    seen: dict[str, tuple[float, float, float | None]] = {}
    for variant in variants.values():
        for dimension in (*variant.dimensions, *variant.derived):
            scale = (dimension.minimum, dimension.maximum, dimension.step)
            if seen.setdefault(dimension.key, scale) != scale:
                raise refusal(folder, f"dimension {dimension.key!r} has different scales in two variants; rename one")


def _rule(section: RuleSection) -> Rule:
    then = section.then
    low, high = (then.equals, then.equals) if then.equals is not None else (then.at_least, then.at_most)
    return Rule(section.name, tuple(_condition(when) for when in section.when), tuple(then.dimensions), low, high)


def _condition(section: WhenSection) -> Condition | WordsOutside:
    if section.words_outside is not None:
        return WordsOutside(section.words_outside.of, section.words_outside.reference, section.words_outside.percent)
    assert section.column is not None
    return Condition(section.column, section.is_null, tuple(section.one_of) if section.one_of is not None else None)
