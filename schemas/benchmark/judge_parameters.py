"""What a judge's `parameters` may hold: any JSON, and no key. Which of them a provider takes itself is tasks/judge/provider."""

import math
import re
from collections.abc import Iterator
from typing import Any

from schemas.input_budget import JSON_LEVELS, is_too_deep

EXTRA_BODY = "extra_body"
"""What the OpenAI client calls the parameters it does not know itself; they stand beside the others in what is sent."""

OUTPUT_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
"""What providers call the most tokens of a reply."""

_SECRET = re.compile(
    r"(x[-_])?(api[-_]?key|authorization|(access|auth|bearer|api)[-_]?token|(client[-_]?)?secret|passw(or)?d)", re.IGNORECASE
)


def checked(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters as they are sent, those of `extra_body` among them. Raises ValueError naming the key and what is allowed."""
    if is_too_deep(parameters):
        raise ValueError(f"nested in more than {JSON_LEVELS} levels")
    extra = parameters.get(EXTRA_BODY, {})
    if not isinstance(extra, dict):
        raise ValueError(  # noqa: TRY004 - pydantic tells ValueErrors
            f"{EXTRA_BODY} must be a table of further parameters; write {EXTRA_BODY} = {{ top_k = 1 }}"
        )
    twice = sorted(extra.keys() & parameters.keys())
    if twice:
        raise ValueError(f"{twice[0]} is both in {EXTRA_BODY} and outside it; keep one of them")
    sent = {name: value for name, value in parameters.items() if name != EXTRA_BODY} | extra
    for path, name, value in _inside(sent, ""):
        if name and _SECRET.fullmatch(name):
            raise ValueError(
                f"{path} is not allowed as a parameter: it would be stored in the ledger, in tables and on pages; put the key "
                "into an environment variable and name that variable with api_key_env"
            )
        if name in OUTPUT_BOUNDS and isinstance(value, str):
            raise ValueError(f"{path} = {value[:60]!r} is a text and does not limit anything; write the number without quotes")
        if not _is_json(value):
            raise ValueError(
                f"{path} = {str(value)[:60]} cannot be written as JSON; allowed are texts, finite 64-bit numbers, true, false, "
                "lists and tables of them"
            )
    return sent


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LIKE_A_KEY = re.compile(
    r"(sk|pk|rk|xai|gsk)-.{8,}|(hf|gsk)_[A-Za-z0-9]{20,}|AIza.{20,}|(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{24,}|Bearer .+"
)


def variable_of_key(name: str) -> str:
    """The name of the environment variable that holds a judge's key. Raises ValueError that does not show what may be the key."""
    if _LIKE_A_KEY.fullmatch(name):
        raise ValueError(
            "this looks like a key, but must be the NAME of the environment variable that holds it, such as OPENAI_API_KEY; "
            "remove the key from the file, and if others could read it, replace it by a new key"
        )
    if not _VARIABLE.fullmatch(name):
        raise ValueError("this is not the name of an environment variable: only letters, digits and _, such as OPENAI_API_KEY")
    return name


def _inside(value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """(path, name where it has one, value) of every value in a table or list, itself left out."""
    named = value.items() if isinstance(value, dict) else ((f"[{index}]", one) for index, one in enumerate(value))
    for name, inner in named:
        at = f"{path}{name}" if name.startswith("[") or not path else f"{path}.{name}"
        yield at, name if isinstance(value, dict) else "", inner
        if isinstance(inner, dict | list):
            yield from _inside(inner, at)


def _is_json(value: object) -> bool:
    match value:
        case bool() | str() | dict() | list() | None:
            return True
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return math.isfinite(value)
        case _:
            return False
