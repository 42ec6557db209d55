"""Which columns sources have: for a message to whom one is missing; and which of them are Salon's by other names."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from schemas.benchmark.file import Benchmark
from schemas.errors import SourceError
from schemas.pointers import steps
from tasks.delimited import columns_told
from tasks.ingest.paths import RefusedPath, bare_url, is_remote, locate
from tasks.ingest.readers import READERS
from tasks.ingest.rows import RawRow, pointers
from tasks.ingest.source_files import IMAGE_SUFFIXES
from tasks.ingest.sources import expand

N_SOURCES = 5
_SAME: Final[Mapping[str, tuple[str, ...]]] = {
    "prompt": ("caption", "text", "instruction", "description", "txt", "sentence"),
    "category": ("tag",),
    "model": ("modelname", "generator"),
    "checkpoint": ("ckpt", "checkpointname", "step"),
    "seed": ("randomseed", "noiseseed"),
}
"""Other names of Salon's columns, without `_` and `-`; the first that is there is taken."""


def columns_there(benchmark: Benchmark, own_texts: Sequence[str], wanted: Collection[str]) -> str:
    """The columns of each source whose first row lacks one of these, and which look like it, a line each. Raises SourceError."""
    told: dict[str, str] = {}
    for source in expand(benchmark, own_texts):
        reader = READERS[source.reader]
        row = None if source.name in told or len(told) == N_SOURCES else next(iter(reader.rows(source)), None)
        if row is None:
            continue
        columns, places = row.columns or list(row.values), pointers(source, reader.columns)
        missing = [name for name in sorted(wanted) if str(steps(places.get(name, name))[0]) not in columns]
        if missing and columns:
            told[source.name] = f"\nthe columns of source {source.name}: {columns_told(columns, missing)}"
    return "".join(told.values())


def renamed(
    reader: str, rows: Sequence[RawRow], columns: Sequence[str], prompt: str | None, *, has_texts: bool
) -> dict[str, str]:
    """Salon's text columns that have another name here. Pictures' names are prompts unless `has_texts`: files beside them.

    Raises SourceError for a `prompt` that is no column.
    """
    mapped: dict[str, str] = {}
    for name, others in _SAME.items():
        usual = READERS[reader].columns.get(name, name)
        wanted = prompt if name == "prompt" and prompt else usual
        if wanted in columns:
            mapped |= {name: wanted} if wanted != usual else {}
        elif name == "prompt" and prompt:
            raise SourceError(f"there is no column {prompt!r} for --prompt; {columns_told(columns, [prompt])}")
        elif at := _other_name(name, others, columns):
            mapped[name] = at
    if "prompt" not in {*columns, *mapped} and "stem" in columns and not has_texts and _are_prompts(rows, "stem"):
        are_seeds = "seed" not in columns and _are_prompts_and_seeds(rows)
        mapped |= {"prompt": "stem_text", "seed": "stem_number"} if are_seeds else {"prompt": "stem"}
    return mapped


def picture_columns(root: Path, rows: Sequence[RawRow], columns: Iterable[str]) -> dict[str, set[str]]:
    """The columns whose values are pictures that are there, or URLs of pictures; of these the hosts."""
    found: dict[str, set[str]] = {}
    for name in columns:
        values = [(row, row.values[name]) for row in rows if row.values.get(name) is not None]
        urls = [value for _, value in values if isinstance(value, str) and is_remote(value) and _is_named_so(bare_url(value))]
        if urls or any(_is_picture(root, row.folder, value) for row, value in values):
            found[name] = {bare_url(url).split("/")[2] for url in urls}
    return found


def picture_column(found: Mapping[str, set[str]], usual: str, image: str | None) -> str | None:
    """The one of the judged picture: as told, or the usual one, or the only one; None where there is none. Raises SourceError."""
    if image is not None and image not in found:
        raise SourceError(f"no pictures that are there stand in the column {image!r} of --image; {', '.join(found) or 'none'} do")
    if image is None and usual not in found and len(found) > 1:
        raise SourceError(f"several columns name pictures: {', '.join(found)}; name the judged one with --image")
    return image or (usual if usual in found else next(iter(found), None))


def _other_name(name: str, others: Iterable[str], columns: Sequence[str]) -> str | None:
    plain = {re.sub(r"[-_ ]", "", column).casefold(): column for column in reversed(columns)}
    if "question" in plain:
        plain.pop("text", None)  # its answer, which is judged
    return next((plain[one] for one in (name, *others) if one in plain), None)


def _are_prompts(rows: Sequence[RawRow], column: str) -> bool:
    """Whether most of these are several words, and so may say what a picture should show."""
    return 2 * sum(len(str(row.values.get(column)).split()) > 1 for row in rows) > len(rows)


_SIZES = frozenset({"256", "384", "512", "640", "720", "768", "1024", "1080", "1280", "1536", "2048", "4096"})
"""Pixels a side: with years the numbers behind a text that are no seeds."""


def _are_prompts_and_seeds(rows: Sequence[RawRow]) -> bool:
    """Whether every picture's name ends in a number that may be a seed, and most of the several texts before it have several."""
    named = {(row.values["stem_text"], row.values["stem_number"]) for row in rows}
    n_numbers = Counter(text for text, number in named if number and len(number) < 19)
    n_several = sum(n > 1 for n in n_numbers.values())
    are_others = all(number in _SIZES or 1800 <= int(number) < 2100 for _, number in named if number)
    return n_numbers.total() == len(named) and 2 * n_several > len(n_numbers) > 1 and not are_others


def _is_picture(root: Path, folder: str, value: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(value.get("bytes"), bytes) or _is_picture(root, folder, value.get("path"))
    if isinstance(value, str) and _is_named_so(value):
        return not isinstance(locate(root, f"{folder}/{value}" if folder else value), RefusedPath)
    return isinstance(value, bytes)


def _is_named_so(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGE_SUFFIXES
