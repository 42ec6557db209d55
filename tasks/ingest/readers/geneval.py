"""Reader `geneval`: GenEval's output folders, one a prompt: `00000/metadata.jsonl` (one JSON object) and `00000/samples/*.png`.

Rows have the metadata's keys and item_id (the folder's name), seed (the number in the picture's name) and image;
GenEval's `tag` is the category.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schemas.errors import SourceError
from schemas.input_budget import ARCHIVE_TEXT_BYTES, JSON_LEVELS, is_too_deep
from schemas.json_text import loads
from schemas.statuses.rows import SampleStatus
from tasks.ingest.paths import RefusedPath, quote, read_file
from tasks.ingest.rows import DatasetReader, RawRow
from tasks.ingest.source_files import IMAGE_SUFFIXES
from tasks.ingest.sources import ResolvedSource


def read_rows(source: ResolvedSource) -> Iterator[RawRow]:
    """One row a picture; a prompt folder without pictures is one row with a status, so that its absence is counted."""
    if not source.path.is_dir():
        raise SourceError(f"source {source.name!r}: {source.path} is not a folder of prompt folders (00000, 00001, …)")
    for folder in _prompt_folders(source.path):
        values = _metadata(source.path, folder)
        pictures = _pictures(source.path / folder / "samples")
        for number, name in enumerate(pictures, 1):
            place = f"{folder}/samples/{name}"
            own = {"image": place, "item_id": folder, "seed": _number(name)}
            yield _row(values, own, number, place)
        if not pictures:
            yield _without_pictures(values, folder)


def _row(values: dict[str, Any] | str, own: dict[str, Any], number: int, place: str) -> RawRow:
    file = f"{own['item_id']}/metadata.jsonl"
    if isinstance(values, str):
        return RawRow(own, file, number, place, status=SampleStatus.MISSING_VALUE, detail=values)
    return RawRow(values | own, file, number, place)


def _without_pictures(values: dict[str, Any] | str, folder: str) -> RawRow:
    place, own = f"{folder}/samples", {"item_id": folder}
    if isinstance(values, str):
        return _row(values, own, 1, place)
    detail = f"{place} holds no picture"
    return RawRow(values | own, f"{folder}/metadata.jsonl", 1, place, status=SampleStatus.MISSING_FILE, detail=detail)


def _prompt_folders(root: Path) -> list[str]:
    folders = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not entry.name.startswith("."))
    return [name for name in folders if (root / name / "metadata.jsonl").exists() or (root / name / "samples").is_dir()]


def _metadata(root: Path, folder: str) -> dict[str, Any] | str:
    """What the prompt folder says about itself, or what is wrong with it."""
    content = read_file(root, f"{folder}/metadata.jsonl", ARCHIVE_TEXT_BYTES)
    if isinstance(content, RefusedPath):
        return f"the picture's prompt is unknown: {content.detail}"
    try:
        found = loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return f"{folder}/metadata.jsonl is not one JSON object: {quote(str(error))}"
    if is_too_deep(found):
        return f"{folder}/metadata.jsonl is nested in more than {JSON_LEVELS} levels"
    return found if isinstance(found, dict) else f"{folder}/metadata.jsonl is a JSON {type(found).__name__}, not an object"


def _pictures(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in os.scandir(folder) if Path(entry.name).suffix.lower() in IMAGE_SUFFIXES)


def _number(name: str) -> int | None:
    stem = Path(name).stem
    return int(stem) if stem.isascii() and stem.isdigit() and len(stem) < 19 else None


READER = DatasetReader(read_rows, columns={"category": "tag"})
