"""The files of the Batch API: uploads kept on disk, and the checks an input file meets before its batch begins."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from demo.mock_provider.scenario import Batch


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file, and what the API says of it."""

    id: str
    name: str
    purpose: str
    created_at: int
    path: Path

    def as_json(self) -> dict[str, Any]:
        """The file object of the API."""
        return {
            "id": self.id, "object": "file", "bytes": self.path.stat().st_size, "created_at": self.created_at,
            "filename": self.name, "purpose": self.purpose, "status": "processed", "expires_at": None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One request of an input file."""

    custom_id: str
    body: Any


def read_lines(path: Path, endpoint: str, rules: Batch) -> tuple[list[Line], list[dict[str, Any]]]:
    """The requests of an input file, or what is wrong with it: then nothing of the file is done."""
    lines: list[Line] = []
    problems: list[dict[str, Any]] = []
    seen: set[str] = set()
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if number > rules.max_lines:
                return [], [_problem("too_many_requests", f"the file has more than {rules.max_lines} requests", None)]
            found = _read_line(raw, endpoint, number)
            if isinstance(found, dict):
                problems.append(found)
            elif found.custom_id in seen:
                problems.append(_problem("duplicate_custom_id", f"custom_id {found.custom_id!r} stands twice", number))
            else:
                seen.add(found.custom_id)
                lines.append(found)
    models = {line.body.get("model") for line in lines}
    if len(models) > 1:
        problems.append(_problem("mismatched_model", "all requests of a batch must be for the same model", None))
    if not lines and not problems:
        problems.append(_problem("empty_file", "the file has no requests", None))
    return ([], problems) if problems else (lines, [])


def _read_line(raw: bytes, endpoint: str, number: int) -> Line | dict[str, Any]:
    try:
        content = orjson.loads(raw)
    except ValueError:
        return _problem("invalid_json_line", "this line is not JSON", number)
    if not isinstance(content, dict) or not isinstance(content.get("body"), dict):
        return _problem("invalid_request", "a line is an object with custom_id, method, url and body", number)
    custom_id = content.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        return _problem("missing_required_parameter", "custom_id is missing", number)
    if content.get("method") != "POST":
        return _problem("invalid_method", "method must be POST", number)
    if content.get("url") != endpoint:
        return _problem("invalid_url", f"the url must be the batch's endpoint, {endpoint}", number)
    return Line(custom_id, content["body"])


def _problem(code: str, message: str, line: int | None) -> dict[str, Any]:
    return {"code": code, "message": message, "param": None, "line": line}
