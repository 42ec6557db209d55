"""A rubric of several requests: each a rubric in a folder of its own inside it, all asked of each sample, figures over all.

Loading one request is loading.py, asking each of them items.questions_of.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rubrics.declaration import Declaration, refusal
from rubrics.dimensions import derived_dimensions
from rubrics.model import REQUEST, Rubric, Variant
from rubrics.sections import is_column


def check_request(folder: Path, request: Rubric) -> None:
    """Raise RubricError where a request is more than messages, a reply form and dimensions."""
    said = {
        "items": request.items, "requests": request.requests, "program": request.program, "dispatch": request.dispatch,
        "rules": request.rules, "pairs": request.is_of_pairs, "figures": any(v.derived for v in request.variants.values()),
    }  # fmt: skip
    for key in (key for key, value in said.items() if value):
        raise refusal(folder, f"the request {request.id!r} has {key}; a request is messages and dimensions alone, remove it")
    if not request.messages:
        raise refusal(folder, f"the request {request.id!r} has no messages; add [[messages]]")


def combined(folder: Path, declared: Declaration, requests: Mapping[str, Rubric]) -> dict[str, Any]:
    """What a rubric of several requests has of them, by the fields of Rubric. Raises RubricError where there is no figure."""
    dimensions = tuple(one for request in requests.values() for one in request.variants[None].dimensions)
    keys = [one.key for one in dimensions]
    for key in keys:
        if keys.count(key) > 1:
            raise refusal(folder, f"two requests have the dimension {key!r}; call one of them otherwise")
    if not declared.figures:
        raise refusal(folder, "with requests a table has figures; add [[figures]] with a key, a form and of = [dimensions]")
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


def _check_units(folder: Path, declared: Declaration, requests: Mapping[str, Rubric]) -> None:
    roles = {role for one in requests.values() for role in one.roles}
    for name in declared.unit:
        try:
            is_column(name if name not in roles else "image")
        except ValueError as error:
            raise refusal(folder, f"unit: {error}") from error
