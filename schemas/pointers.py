"""The small path language of benchmark files and rubrics: `name`, `name[0]`, `name.inner[1]`. It only looks things up."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from schemas.errors import InputError

_STEP = re.compile(r"(?:^|\.)([^.\[\]]+)|\[(\d{1,9})\]")


class _Missing:
    """The type of MISSING."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
"""Nothing stands at the pointer; a null that stands there is None."""


def look_up(row: object, pointer: str) -> Any:
    """What stands at `pointer` in nested mappings and lists, or MISSING. A key of exactly that name comes first."""
    if isinstance(row, Mapping) and pointer in row:
        return row[pointer]
    found: Any = row
    for step in steps(pointer):
        if isinstance(step, str):
            if not isinstance(found, Mapping) or step not in found:
                return MISSING
            found = found[step]
        else:
            if not isinstance(found, Sequence) or isinstance(found, str | bytes) or step >= len(found):
                return MISSING
            found = found[step]
    return found


@lru_cache(maxsize=4096)
def steps(pointer: str) -> tuple[str | int, ...]:
    """The pointer's steps: names and indices. Raises InputError where it is not a pointer."""
    parts: list[str | int] = []
    end = 0
    for match in _STEP.finditer(pointer):
        if match.start() != end:
            break
        parts.append(match[1] if match[1] is not None else int(match[2]))
        end = match.end()
    if not parts or end != len(pointer):
        raise InputError(f"{pointer!r} is not a column or a path; write name, name[0] or name.inner[1]")
    return tuple(parts)
