"""Finding rubric folders, reading their files, each inside its folder and bounded, and assembling a Rubric of them.

Whether a rubric makes sense is linting.py.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rubrics.declaration import Declaration, DimensionSection, ItemsSection, RuleSection, WhenSection, explain
from rubrics.dimensions import derived_dimensions, read_dimension
from rubrics.model import (
    Condition,
    Example,
    Items,
    ItemText,
    Message,
    Part,
    ReplyFormat,
    Rubric,
    Rule,
    Variant,
    WordsOutside,
)  # fmt: skip
from rubrics.requests import check_request, combined
from schemas.errors import RubricError
from schemas.input_budget import RUBRIC_DECLARATION_BYTES, RUBRIC_EXAMPLE_BYTES, RUBRIC_KEY_PARTS, RUBRIC_PROMPT_BYTES
from schemas.records import IMAGE

SHIPPED = Path(__file__).resolve().parent
"""The folder of the rubrics that come with Salon."""

DECLARATION = "rubric.toml"
_MAX_PROBLEMS = 20
_LONG_KEY = re.compile(rb"(?<![\w\"'.-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){%d}" % RUBRIC_KEY_PARTS)
_STARTS = {"PNG": rb"\x89PNG\r\n\x1a\n", "JPEG": rb"\xff\xd8\xff", "WEBP": rb"RIFF....WEBP"}
_PROMPT_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)*[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def load_rubric(folder: Path) -> Rubric:
    """The rubric declared in a folder. Raises RubricError naming the file, the key and what is allowed."""
    declared, raw = _declared(folder)
    prompts = {name: _read_prompt(folder, name) for name in _prompt_names(declared)}
    examples = {name: _read_prompt(folder, name, RUBRIC_EXAMPLE_BYTES) for name in _example_names(declared)}
    _refuse_repeats(folder, "requests", declared.requests)
    requests = {name: load_rubric(folder / name) for name in declared.requests}
    digests = {f"{name}/": request.digest.encode() for name, request in requests.items()}
    digest = _digest({DECLARATION: raw} | prompts | examples | digests)
    if not requests:
        return _assemble(folder, declared, prompts, examples, digest)
    _check_id(folder, declared)
    for request in requests.values():
        check_request(folder, request)
    own: dict[str, Any] = {
        "id": declared.id, "version": declared.version, "title": declared.title, "source": declared.source, "folder": folder,
        "digest": digest, "slots": {}, "unit": tuple(declared.unit), "report_by": declared.report_by,
    }  # fmt: skip
    return replace(next(iter(requests.values())), **own, **combined(folder, declared, requests))


def rubric_files(folder: Path) -> list[str]:
    """The names of the files that a rubric's digest is of, relative to its folder, which loads."""
    declared, _ = _declared(folder)
    inside = [f"{name}/{file}" for name in declared.requests for file in rubric_files(folder / name)]
    return sorted({DECLARATION, *_prompt_names(declared), *_example_names(declared), *inside})


def find_rubrics(ids: Sequence[str], folders: Sequence[Path] = (SHIPPED,)) -> dict[str, Rubric]:
    """The rubrics of these ids, by id; each of `folders` is a rubric folder or holds some. Raises RubricError."""
    places = _places(folders)
    found: dict[str, Rubric] = {}
    for name in ids:
        at = places.get(name, [])
        if not at:
            close = difflib.get_close_matches(name, places, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            known = ", ".join(sorted(places)) or "none"
            searched = ", ".join(str(folder) for folder in folders)
            raise RubricError(f"there is no rubric {name!r}{hint} Known: {known}. Searched: {searched}")
        if len(at) > 1:
            both = " and ".join(str(folder) for folder in at)
            raise RubricError(f"the rubric {name!r} stands in {both}; rename one, so that it is clear which is meant")
        found[name] = load_rubric(at[0])
    return found


def list_rubrics(folders: Sequence[Path] = (SHIPPED,)) -> list[Rubric]:
    """Every rubric of these folders, by id. Raises RubricError at the first that does not load."""
    return list(find_rubrics(sorted(_places(folders)), folders).values())


def _places(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Rubric id (which is the folder's name) -> the folders of that name, each real folder once."""
    places: dict[str, dict[Path, Path]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise RubricError(f"{folder} is not a folder; name one that holds rubric folders")
        try:
            inside = sorted(folder.iterdir())
        except OSError as error:
            raise RubricError(f"{folder} cannot be read: {error}") from error
        for place in [folder, *inside]:
            if (place / DECLARATION).is_file():
                places.setdefault(place.resolve().name, {}).setdefault(place.resolve(), place)
    return {name: list(at.values()) for name, at in places.items()}


def _declared(folder: Path) -> tuple[Declaration, bytes]:
    raw = _read(folder, DECLARATION, RUBRIC_DECLARATION_BYTES)
    return _declaration(folder / DECLARATION, raw), raw


def _prompt_names(declared: Declaration) -> list[str]:
    return [name for name in (declared.prompt, *(variant.prompt for variant in declared.variants)) if name]


def _example_names(declared: Declaration) -> list[str]:
    return [part.value or "" for message in declared.messages for part in message.parts if part.kind == "example"]


def _read_prompt(folder: Path, name: str, max_bytes: int = RUBRIC_PROMPT_BYTES) -> bytes:
    if not _PROMPT_NAME.fullmatch(name):
        raise _refusal(folder, f"{name[:100]!r} must be a file of the rubric folder: plain letters, digits, _ . - and no ..")
    return _read(folder, name, max_bytes)


def _read(folder: Path, name: str, max_bytes: int) -> bytes:
    """A regular file of the folder, followed to where it really is; a data folder must not read the rest of the disk."""
    root = folder.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(root):
        raise _refusal(folder, f"{name} is a link that leaves the rubric folder; put the file itself there")
    if not path.is_file():
        raise _refusal(folder, f"{name} is not there, or is no regular file; put it into the folder")
    try:
        with path.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        raise _refusal(folder, f"{name} cannot be read: {error}") from error
    if len(content) > max_bytes:
        raise _refusal(folder, f"{name} has more than {max_bytes} bytes; shorten it")
    return content


def _declaration(path: Path, raw: bytes) -> Declaration:
    if _LONG_KEY.search(raw):
        raise RubricError(f"{path}: a key of more than {RUBRIC_KEY_PARTS} parts (a.b.c has three)")
    try:
        content = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RubricError(f"{path}: not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        raise RubricError(f"{path}: not valid TOML: {error}") from error
    try:
        return Declaration.model_validate(content)
    except ValidationError as error:
        problems = [f"{path}: {explain(problem)}" for problem in error.errors()[:_MAX_PROBLEMS]]
        raise RubricError("\n".join(problems)) from error


def _digest(files: dict[str, bytes]) -> str:
    """sha256 over the files' names and bytes, in name order: one changed byte is another rubric."""
    lines = [f"{name} {sha256(content).hexdigest()}\n" for name, content in sorted(files.items())]
    return sha256("".join(lines).encode()).hexdigest()


def _refusal(folder: Path, message: str) -> RubricError:
    return RubricError(f"{folder / DECLARATION}: {message}")


def _example(folder: Path, name: str, content: bytes) -> Example:
    known = next((kind for kind, start in _STARTS.items() if re.match(start, content, re.DOTALL)), None)
    if known is None:
        raise _refusal(folder, f"the example picture {name} begins as no {', '.join(_STARTS)} does; save it as one of these")
    return Example(sha256(content).hexdigest(), known, content)


def _assemble(
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


def _check_id(folder: Path, declared: Declaration) -> None:
    if declared.id != folder.resolve().name:
        raise _refusal(folder, f"the id {declared.id!r} is not the folder's name; rename the folder or change the id")


def _check_names(folder: Path, declared: Declaration) -> None:
    """The few places where two keys must agree for a Rubric to exist at all."""
    _check_id(folder, declared)
    if bool(declared.variants) != (declared.dispatch is not None):
        raise _refusal(folder, "variants and dispatch go together: give both, or dimensions alone")
    if bool(declared.dimensions) == bool(declared.variants):
        raise _refusal(folder, "dimensions stand either at the top or in variants; give one of the two")
    if declared.prompt is not None and declared.variants:
        raise _refusal(folder, "prompt stands in each of the variants, not at the top; remove it")
    _refuse_repeats(folder, "needs", declared.needs)
    _refuse_repeats(folder, "pictures", declared.pictures)
    _refuse_repeats(folder, "unit", declared.unit)
    _refuse_repeats(folder, "variants", [variant.category for variant in declared.variants])
    _refuse_repeats(folder, "rules", [rule.name for rule in declared.rules])
    _check_columns(folder, declared)


def _check_columns(folder: Path, declared: Declaration) -> None:
    for name in declared.needs:
        if name != IMAGE and name in declared.pictures:
            raise _refusal(folder, f"{name!r} is a text in needs and a picture in pictures; call one of them otherwise")
    for column in declared.may_be_null:
        if column not in (*declared.needs, *declared.pictures):
            raise _refusal(folder, f"may_be_null names {column!r}, which is not in needs {declared.needs}")
    for column, allowed in declared.words.items():
        _refuse_repeats(folder, f"words.{column}", allowed)
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
        dimensions = tuple(read_dimension(folder, section, declared) for section in listed)
        derived = derived_dimensions(folder, declared, dimensions)
        _refuse_repeats(folder, "labels", [label for d in dimensions if not d.at for label in d.labels])
        variants[category] = Variant(
            category, _text(folder, name, prompts[name]) if name else None, name, dimensions, derived, declared.items is not None
        )
    return variants


def _items(section: ItemsSection) -> Items:
    texts = {n: ItemText(t.each, t.join, t.before, t.after, t.strip) for n, t in section.texts.items()}
    return Items(
        section.column, section.asked == "together", texts, {str(k): v for k, v in section.fields.items()}, dict(section.kinds)
    )


def _text(folder: Path, name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refusal(folder, f"{name} is not UTF-8: {error}") from error


def _check_scales_agree(folder: Path, variants: Mapping[str | None, Variant]) -> None:
    """A dimension of one name is one column of the tables, so it has one scale."""
    seen: dict[str, tuple[float, float, float | None]] = {}
    for variant in variants.values():
        for dimension in (*variant.dimensions, *variant.derived):
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
