"""A rubric's golden files: requests as they must be rendered, replies as they must be read. Comparing is linting.py."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rubrics.model import Rubric
from rubrics.rendering import render
from schemas.errors import InputError

GOLDEN = "golden"
REQUESTS = "requests"
REPLIES = "replies.jsonl"
NOT_RENDERED = (InputError, AttributeError, TypeError)
"""What rendering raises for values that the rubric cannot ask by, or that are none."""


_NONE: Mapping[str, int] = MappingProxyType({})


def as_golden(
    rubric: Rubric, values: Mapping[str, str | None], has_image: bool, pictures: Mapping[str, int] = _NONE
) -> dict[str, Any]:
    """The golden form of one rendered request: texts as lists of lines, so that a person can read a difference.

    `pictures`: how many there are in roles other than `image`.
    """
    messages = [{"role": m["role"], **_in_lines(m["content"])} for m in render(rubric, values, has_image, pictures).messages]
    others = {"pictures": dict(pictures)} if pictures else {}
    return {"values": dict(values), "has_image": has_image, **others, "messages": messages}


def read_requests(folder: Path) -> dict[str, Any]:
    """The golden requests of a rubric folder, by file name. Raises ValueError naming the first that is no JSON object."""
    found = {}
    for path in sorted((folder / GOLDEN / REQUESTS).glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: not JSON in UTF-8 ({error})") from error
        if not isinstance(content, dict) or set(content) - {"pictures"} != {"values", "has_image", "messages"}:
            raise ValueError(f"{path}: must hold values, has_image and messages (and may hold pictures), and nothing else")
        found[path.name] = content
    return found


def read_replies(folder: Path) -> list[dict[str, Any]]:
    """The golden replies of a rubric folder: {"raw", "context", "expect"} each. Raises ValueError naming the line."""
    listed = list(replies_by_line(folder))
    problems = [f"{folder / GOLDEN / REPLIES}, line {number}: {golden}" for number, golden in listed if isinstance(golden, str)]
    if problems:
        raise ValueError("\n".join(problems))
    return [golden for _, golden in listed if not isinstance(golden, str)]


def replies_by_line(folder: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Line number and golden reply of each line that is not blank, or what is wrong with it."""
    path = folder / GOLDEN / REPLIES
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _golden_reply(line)


def _golden_reply(line: bytes) -> dict[str, Any] | str:
    try:
        content = json.loads(line.decode("utf-8"))
    except json.JSONDecodeError as error:
        return f"not JSON ({error.msg} at character {error.pos + 1})"
    except (ValueError, RecursionError) as error:
        return f"not JSON in UTF-8 ({error})"
    if not isinstance(content, dict) or set(content) != {"raw", "context", "expect"}:
        return "must hold raw, context and expect, and nothing else"
    if not isinstance(content["context"], dict) or not isinstance(content["raw"], str | None):
        return "raw must be a text or null, and context an object"
    return content


def rewrite_requests(rubric: Rubric) -> list[str]:
    """Render every golden request of the rubric's folder anew, in place, for a person to review the difference.

    Returns the names of those that changed. What cannot be rendered stays as it is, for lint to say why; ValueError where one
    is no golden request, and nothing is written.
    """
    changed = []
    for name, said in read_requests(rubric.folder).items():
        of = (said["values"], said["has_image"], said.get("pictures", _NONE))
        with suppress(*NOT_RENDERED):
            if as_golden(rubric, *of) != said:
                write_request(rubric, name.removesuffix(".json"), *of)
                changed.append(name)
    return changed


def write_request(
    rubric: Rubric, name: str, values: Mapping[str, str | None], has_image: bool, pictures: Mapping[str, int] = _NONE
) -> None:
    """Write one golden request into the rubric's folder."""
    path = rubric.folder / GOLDEN / REQUESTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(as_golden(rubric, values, has_image, pictures), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def _in_lines(content: Any) -> dict[str, Any]:
    if isinstance(content, str):
        return {"lines": content.split("\n")}
    return {"parts": [{"lines": part["text"].split("\n")} if part["type"] == "text" else part for part in content]}
