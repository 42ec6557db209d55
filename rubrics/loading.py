"""Finding rubric folders and reading their files, each inside its folder and bounded. The Rubric is made in assembling.py.

A rubric of several requests has each in a folder of its own inside it; all are asked of each sample, with figures over all.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rubrics.assembling import assemble, check_id, refuse_repeats
from rubrics.declaration import DECLARATION, Declaration, explain, refusal
from rubrics.dimensions import check_turned, derived_dimensions
from rubrics.model import REQUEST, Rubric, Variant
from rubrics.sections import is_column
from schemas.errors import RubricError
from schemas.input_budget import RUBRIC_DECLARATION_BYTES, RUBRIC_EXAMPLE_BYTES, RUBRIC_KEY_PARTS, RUBRIC_PROMPT_BYTES

SHIPPED = Path(__file__).resolve().parent
"""The folder of the rubrics that come with Salon."""

_MAX_PROBLEMS = 20
_LONG_KEY = re.compile(rb"(?<![\w\"'.-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){%d}" % RUBRIC_KEY_PARTS)
_PROMPT_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)*[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def load_rubric(folder: Path) -> Rubric:
    """The rubric declared in a folder. Raises RubricError naming the file, the key and what is allowed."""
    rubric = _load(folder)
    for category, variant in rubric.variants.items():
        if category is None or not rubric.requests:  # a request's dimensions are turned by figures over all requests
            check_turned(folder, variant.dimensions, variant.derived)
    return rubric


def _load(folder: Path) -> Rubric:
    declared, raw = _declared(folder)
    prompts = {name: _read_prompt(folder, name) for name in _prompt_names(declared)}
    examples = {name: _read_prompt(folder, name, RUBRIC_EXAMPLE_BYTES) for name in _example_names(declared)}
    refuse_repeats(folder, "requests", declared.requests)
    requests = {name: _load(folder / name) for name in declared.requests}
    digests = {f"{name}/": request.digest.encode() for name, request in requests.items()}
    digest = _digest({DECLARATION: raw} | prompts | examples | digests)
    if not requests:
        return assemble(folder, declared, prompts, examples, digest)
    check_id(folder, declared)
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


def find_rubrics(ids: Sequence[str], folders: Sequence[Path] = (SHIPPED,), advice: str = "") -> dict[str, Rubric]:
    """The rubrics of these ids, by id; each of `folders` is a rubric folder or holds some. Raises RubricError.

    `advice` says how the caller is told of another folder.
    """
    places = _places(folders)
    found: dict[str, Rubric] = {}
    for name in ids:
        at = places.get(name, [])
        if not at:
            close = difflib.get_close_matches(name, places, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            known = ", ".join(sorted(places)) or "none"
            searched = ", ".join(str(folder) for folder in folders)
            raise RubricError(f"there is no rubric {name!r}{hint} Known: {known}. Searched: {searched}{advice and f'; {advice}'}")
        if len(at) > 1:
            both = " and ".join(str(folder) for folder in at)
            raise RubricError(f"the rubric {name!r} exists in {both}; rename one of them")
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
        raise refusal(folder, f"{name[:100]!r} must be a file of the rubric folder: plain letters, digits, _ . - and no ..")
    return _read(folder, name, max_bytes)


def _read(folder: Path, name: str, max_bytes: int) -> bytes:
    """A regular file of the folder, followed to where it really is; a data folder must not read the rest of the disk."""
    root = folder.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(root):
        raise refusal(folder, f"{name} is a link out of the rubric folder; put the file itself there")
    if not path.is_file():
        raise refusal(folder, f"{name} does not exist, or is not a regular file; put it into the folder")
    try:
        with path.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        raise refusal(folder, f"{name} cannot be read: {error}") from error
    if len(content) > max_bytes:
        raise refusal(folder, f"{name} has more than {max_bytes} bytes; shorten it")
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


def check_request(folder: Path, request: Rubric) -> None:
    """Raise RubricError where a request is more than messages, a reply form and dimensions."""
    said = {
        "items": request.items, "requests": request.requests, "program": request.program, "dispatch": request.dispatch,
        "rules": request.rules, "pairs": request.is_of_pairs, "figures": any(v.derived for v in request.variants.values()),
    }  # fmt: skip
    for key in (key for key, value in said.items() if value):
        raise refusal(folder, f"the request {request.id!r} has {key}; a request has only messages and dimensions, remove it")
    if not request.messages:
        raise refusal(folder, f"the request {request.id!r} has no messages; add [[messages]]")


def combined(folder: Path, declared: Declaration, requests: Mapping[str, Rubric]) -> dict[str, Any]:
    """What a rubric of several requests has of them, by the fields of Rubric. Raises RubricError where there is no figure."""
    dimensions = tuple(one for request in requests.values() for one in request.variants[None].dimensions)
    keys = [one.key for one in dimensions]
    for key in keys:
        if keys.count(key) > 1:
            raise refusal(folder, f"two requests have the dimension {key!r}; rename one of them")
    if not declared.figures:
        raise refusal(folder, "with requests, tables need figures; add [[figures]] with a key, a form and of = [dimensions]")
    variants: dict[str | None, Variant] = {
        None: Variant(None, None, None, dimensions, derived_dimensions(folder, declared, dimensions), is_of_items=True)
    }
    parts: dict[str, Rubric] = {}
    for name, request in requests.items():
        variant = replace(request.variants[None], category=REQUEST + name, is_of_items=True)
        variants[REQUEST + name] = variant
        parts[name] = replace(request, id=declared.id, version=declared.version, variants={None: variant})
    first = next(iter(requests.values()))
    _check_units(folder, declared, requests)
    _check_words(folder, requests)
    needs = tuple(dict.fromkeys(column for one in requests.values() for column in one.needs))
    pictures = tuple(dict.fromkeys(role for one in requests.values() for role in one.roles))
    may_be_null = {name for one in requests.values() for name in one.may_be_null}
    must = {name for one in requests.values() for name in {*one.needs, *one.roles} - one.may_be_null}
    return {
        "requests": parts, "variants": variants, "messages": first.messages, "reply_format": first.reply_format, "needs": needs,
        "pictures": pictures, "may_be_null": frozenset(may_be_null - must),
        "words": {column: words for one in requests.values() for column, words in one.words.items()},
        "value_maps": {column: words for one in requests.values() for column, words in one.value_maps.items()},
        "examples": {f"{name}/{file}": one for name, request in requests.items() for file, one in request.examples.items()},
        "n_output_tokens_expected": max(one.n_output_tokens_expected for one in requests.values()),
    }  # fmt: skip


def _check_words(folder: Path, requests: Mapping[str, Rubric]) -> None:
    """A column has one list of words and one map, whichever request reads it."""
    for (name, one), (other, two) in combinations(requests.items(), 2):
        for what, of_one, of_two in (("words", one.words, two.words), ("value_maps", one.value_maps, two.value_maps)):
            for column in sorted(of_one.keys() & of_two.keys()):
                if of_one[column] != of_two[column]:
                    raise refusal(folder, f"requests {name} and {other} have different {what} of {column!r}; give both the same")


def _check_units(folder: Path, declared: Declaration, requests: Mapping[str, Rubric]) -> None:
    roles = {role for one in requests.values() for role in one.roles}
    for name in declared.unit:
        try:
            is_column(name if name not in roles else "image")
        except ValueError as error:
            raise refusal(folder, f"unit: {error}") from error
