"""A batch as the provider shows it, read without trust in its shape. Calls are api.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.judge.provider.responses import one_line

TOKEN_NAME = "salon_batch"  # noqa: S105 - the name of a piece of metadata, no secret
"""The metadata by which a batch is found whose creation was never heard of."""

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
CAPACITY_CODES = frozenset({"token_limit_exceeded"})
"""Why a batch failed that would have been taken had less been enqueued."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. `problem`: what is wrong with the batch as a whole; `codes`: the same in the provider's words for machines."""

    provider_id: str
    status: str
    created_s: int
    token: str | None
    output_file_id: str | None
    error_file_id: str | None
    n_completed: int
    n_done: int
    codes: frozenset[str]
    problem: str

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in ENDED

    @property
    def is_over_capacity(self) -> bool:
        """Whether it failed for being too much at once."""
        return bool(self.codes & CAPACITY_CODES)


def read_seen(content: Mapping[str, Any]) -> Seen | None:
    """A batch object of the API; None where it has no id or no status."""
    provider_id, status = text(content.get("id")), text(content.get("status"))
    if provider_id is None or status is None:
        return None
    counts = mapping(content.get("request_counts"))
    listed = mapping(content.get("errors")).get("data")
    errors = [mapping(error) for error in listed] if isinstance(listed, list) else []
    said = [f"{_place(error)}{error.get('code') or 'error'}: {error.get('message') or 'no message'}" for error in errors[:3]]
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    return Seen(
        provider_id=provider_id,
        status=status,
        created_s=count(content.get("created_at")),
        token=text(mapping(content.get("metadata")).get(TOKEN_NAME)),
        output_file_id=text(content.get("output_file_id")),
        error_file_id=text(content.get("error_file_id")),
        n_completed=count(counts.get("completed")),
        n_done=count(counts.get("completed")) + count(counts.get("failed")),
        codes=frozenset(filter(None, (text(error.get("code")) for error in errors))),
        problem=one_line("; ".join(said) + more) if said else "no reason given",
    )


def text(value: object) -> str | None:
    """A short text that is not empty, else None."""
    return value if isinstance(value, str) and 0 < len(value) <= 200 else None


def count(value: object) -> int:
    """A number of things; 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def _place(error: Mapping[str, Any]) -> str:
    line = error.get("line")
    return f"line {line}: " if isinstance(line, int) else ""
