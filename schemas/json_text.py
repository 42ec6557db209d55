"""JSON texts that two readers would read as two things: an object names a key twice. How large one may be: input_budget.py."""

import json
from typing import Any


class RepeatedKeyError(ValueError):
    """An object names a key twice; the text says which. Most readers take the last value, others the first."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKeyError(f"the key {next(key for key in keys if keys.count(key) > 1)[:60]!r} occurs twice")
    return found


loads = json.JSONDecoder(object_pairs_hook=_object).decode
"""As json.loads() of a str, and as fast: that makes a decoder for each call that has a hook. Raises RepeatedKeyError too."""
_check = json.JSONDecoder(object_pairs_hook=_object, parse_int=str, parse_float=str).decode


def refuse_repeated_keys(text: bytes) -> None:
    """Raise RepeatedKeyError where an object of a JSON text, which another library has read, names a key twice."""
    try:
        _check(text.decode())
    except RecursionError as error:  # of a value that the library dropped: what it kept has few levels
        raise RepeatedKeyError("a key occurs twice, once with a value that is nested too deeply") from error
