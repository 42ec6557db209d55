"""A declaration and its prompt texts into a Rubric, refusing what no Rubric can be made of. Reading files is loading.py."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rubrics.declaration import Declaration, DimensionSection, RuleSection, Scale, WhenSection
from rubrics.model import Condition, Dimension, Message, Part, ReplyFormat, Rubric, Rule, Variant, WordsOutside
from schemas.errors import InputError, RubricError
from schemas.pointers import steps


def assemble(folder: Path, declared: Declaration, prompts: Mapping[str, bytes], digest: str) -> Rubric:
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
        reply_format=ReplyFormat(declared.reply),
        needs=tuple(declared.needs),
        may_be_null=frozenset(declared.may_be_null),
        unit=tuple(declared.unit),
        report_by=declared.report_by,
        dispatch=declared.dispatch,
        value_maps=value_maps,
        messages=tuple(
            Message(m.role, tuple(Part(p.kind, p.value or "", p.null_as) for p in m.parts)) for m in declared.messages
        ),
        variants=variants,
        rules=tuple(_rule(rule) for rule in declared.rules),
        n_output_tokens_expected=declared.output_tokens,
    )


def _check_names(folder: Path, declared: Declaration) -> None:
    """The few places where two keys must agree for a Rubric to exist at all."""
    if declared.id != folder.resolve().name:
        raise _refusal(folder, f"the id {declared.id!r} is not the folder's name; rename the folder or change the id")
    if bool(declared.variants) != (declared.dispatch is not None):
        raise _refusal(folder, "variants and dispatch go together: give both, or dimensions alone")
    if bool(declared.dimensions) == bool(declared.variants):
        raise _refusal(folder, "dimensions stand either at the top or in variants; give one of the two")
    if declared.prompt is not None and declared.variants:
        raise _refusal(folder, "prompt stands in each of the variants, not at the top; remove it")
    _refuse_repeats(folder, "needs", declared.needs)
    _refuse_repeats(folder, "unit", declared.unit)
    _refuse_repeats(folder, "variants", [variant.category for variant in declared.variants])
    _refuse_repeats(folder, "rules", [rule.name for rule in declared.rules])
    for column in declared.may_be_null:
        if column not in declared.needs:
            raise _refusal(folder, f"may_be_null names {column!r}, which is not in needs {declared.needs}")
    for column, words in declared.value_maps.items():
        # Words are mapped wherever they are met, also twice; so a mapped word must stay as it is.
        chained = sorted(set(words) & set(words.values()))
        if chained:
            raise _refusal(folder, f"value_maps.{column} maps to {chained[0]!r} and from it; map to the last word at once")


def _refuse_repeats(folder: Path, key: str, values: Sequence[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise _refusal(folder, f"{key} has {value!r} twice; name it once")


def _variants(folder: Path, declared: Declaration, prompts: Mapping[str, bytes]) -> dict[str | None, Variant]:
    sections: list[tuple[str | None, str | None, list[DimensionSection]]] = [
        (section.category, section.prompt, section.dimensions) for section in declared.variants
    ] or [(None, declared.prompt, declared.dimensions)]
    variants: dict[str | None, Variant] = {}
    for category, name, listed in sections:
        _refuse_repeats(folder, "dimensions", [section.key for section in listed])
        dimensions = tuple(_dimension(folder, section, declared.scale) for section in listed)
        _refuse_repeats(folder, "labels", [label for d in dimensions if not d.at for label in d.labels])
        variants[category] = Variant(category, _text(folder, name, prompts[name]) if name else None, name, dimensions)
    return variants


def _text(folder: Path, name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refusal(folder, f"{name} is not UTF-8: {error}") from error


def _dimension(folder: Path, section: DimensionSection, default: Scale | None) -> Dimension:
    scale = section.scale or default
    if scale is None:
        raise _refusal(folder, f"dimension {section.key!r} has no scale; write scale = {{ min = 0, max = 10 }}")
    if section.at is not None:
        try:
            steps(section.at)
        except InputError as error:
            raise _refusal(folder, f"dimension {section.key!r}, at: {error}") from error
    return Dimension(section.key, tuple(section.labels) or (section.key,), scale.min, scale.max, scale.step, section.at)


def _check_scales_agree(folder: Path, variants: Mapping[str | None, Variant]) -> None:
    """A dimension of one name is one column of the tables, so it has one scale."""
    seen: dict[str, tuple[float, float, float | None]] = {}
    for variant in variants.values():
        for dimension in variant.dimensions:
            scale = (dimension.minimum, dimension.maximum, dimension.step)
            if seen.setdefault(dimension.key, scale) != scale:
                raise _refusal(folder, f"dimension {dimension.key!r} has different scales in two variants; rename one")


def _rule(section: RuleSection) -> Rule:
    then = section.then
    low, high = (then.equals, then.equals) if then.equals is not None else (then.at_least, then.at_most)
    return Rule(section.name, tuple(_condition(when) for when in section.when), tuple(then.dimensions), low, high)


def _condition(section: WhenSection) -> Condition | WordsOutside:
    if section.words_outside is not None:
        return WordsOutside(section.words_outside.of, section.words_outside.reference, section.words_outside.percent)
    assert section.column is not None
    return Condition(section.column, section.is_null, tuple(section.one_of) if section.one_of is not None else None)


def _refusal(folder: Path, message: str) -> RubricError:
    return RubricError(f"{folder / 'rubric.toml'}: {message}")
