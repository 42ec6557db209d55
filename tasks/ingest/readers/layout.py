"""How a folder of pictures is laid out: the reader it is for, which folders are models and checkpoints, which columns are which.

What `salon new` writes begins with it. It is told by names and first rows; what the benchmark file says is read as it says.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final

from schemas.errors import SourceError
from schemas.records import IMAGE
from tasks.ingest.readers import READERS
from tasks.ingest.readers.columns import picture_column, picture_columns, renamed
from tasks.ingest.readers.huggingface import METADATA
from tasks.ingest.readers.tables import SUFFIXES
from tasks.ingest.rows import RawRow
from tasks.ingest.source_files import IMAGE_SUFFIXES
from tasks.ingest.sources import ResolvedSource

N_LEVELS, N_FOLDERS, N_ROWS = 4, 2_000, 50  # that are looked at
_PARTS: Final = frozenset({
    "data", "dev", "image", "images", "imgs", "output", "outputs", "pictures", "samples", "test", "train", "val", "validation",
})  # fmt: skip
"""Names of folders that say nothing of who made what is in them."""
_CHECKPOINT: Final = re.compile(
    r"(global_?step|step|ckpt|checkpoint|epoch|iter(ation)?|it|ep|v)?[-_. =]?\d[\d._-]*[km]?|final|last|latest|best",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a `[[sources]]` of it says. `path` holds `{model}` and `{checkpoint}` where folders are these.

    `model`, `checkpoint`: where neither path nor rows say it. `first`: a folder or file that the path stands for. `n_others`:
    folders of pictures below the place that are laid out in another way. `shown`: the columns of the first rows.
    `has_pictures`: one of these names pictures that are there. `has_texts`: text files stand beside pictures.
    """

    reader: str
    path: Path
    first: Path
    model: str | None = None
    checkpoint: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    remote_hosts: tuple[str, ...] = ()
    n_others: int = 0
    shown: Sequence[str] = ()
    has_pictures: bool = False
    has_texts: bool = False


def find_layout(place: Path, prompt: str | None = None, image: str | None = None) -> Layout:
    """How this folder, or file, is laid out; `prompt`, `image`: their columns, if told. Raises SourceError."""
    if not place.exists():
        raise SourceError(f"{place} does not exist; name the folder that holds your pictures, or the file that lists them")
    found = _of_file(place) if place.is_file() else _of_folder(place)
    rows = _first_rows(found)
    columns = list(dict.fromkeys(name for row in rows for name in (row.columns or row.values)))
    in_path = {name for name in ("model", "checkpoint") if f"{{{name}}}" in str(found.path)}
    root, usual = found.first if found.first.is_dir() else found.first.parent, READERS[found.reader].columns.get(IMAGE, IMAGE)
    pictures = picture_columns(root, rows, columns)
    at = picture_column(pictures, usual, image)
    has_texts = "stem" in columns and any((root / str(row.values.get("file_name"))).with_suffix(".txt").is_file() for row in rows)
    texts = renamed(found.reader, rows, columns, prompt, has_texts=has_texts)
    mapped = {name: one for name, one in texts.items() if name not in in_path} | ({IMAGE: at} if at and at != usual else {})
    model, checkpoint = _names(place)
    said = {*in_path, *mapped, *columns}
    return replace(
        found,
        model=None if "model" in said else model,
        checkpoint=None if "checkpoint" in said else checkpoint,
        columns=mapped,
        remote_hosts=tuple(sorted(pictures[at])) if at else (),
        shown=columns,
        has_pictures=at is not None,
        has_texts=has_texts,
    )


def _names(place: Path) -> tuple[str, str | None]:
    """The model and the checkpoint that the place's own name, and that of the folder above, may be."""
    folder = place.resolve() if place.is_dir() else place.resolve().parent
    if _CHECKPOINT.fullmatch(folder.name) and folder.parent.name:
        return folder.parent.name, folder.name
    return place.stem if place.is_file() else folder.name, None


def _of_file(place: Path) -> Layout:
    suffix = place.suffix.lower()
    if suffix in {*SUFFIXES, ".tar"}:
        return Layout({".tar": "webdataset", ".parquet": "huggingface"}.get(suffix, "manifest"), place, place)
    allowed = ", ".join((*SUFFIXES, ".tar"))
    raise SourceError(f"{place} is no list of pictures: its name ends in {suffix!r}; allowed: {allowed}, or a folder")


def _of_folder(place: Path) -> Layout:
    """The nearest folders below in which a reader finds something, by their own names or those of the folders above them."""
    leaves = _leaves(place)
    if not leaves:
        tables = ", ".join(sorted(entry.name for entry in place.iterdir() if entry.suffix.lower() in SUFFIXES))
        raise SourceError(
            f"{place} holds no pictures that a reader knows, {N_LEVELS} folders deep; docs/datasets.md lists the layouts: "
            "pictures with or without a metadata file, a manifest, Parquet or tar files, or GenEval's prompt folders"
            + (f". It holds several tables; name one of them: {tables}" if tables else "")
        )
    (reader, file, depth), _ = Counter((kind, file, len(parts)) for parts, kind, file in leaves).most_common(1)[0]
    alike = [parts for parts, kind, name in leaves if (kind, name, len(parts)) == (reader, file, depth)]
    if alike[0] and {parts[-1].lower() for parts in alike} <= _PARTS and reader in {"imagefolder", "huggingface"}:
        alike = [parts[:-1] for parts in alike]  # the reader looks below
    levels = _levels(alike, is_deep=reader in {"imagefolder", "huggingface", "webdataset"})
    path, first = (place.joinpath(*parts, *([file] if file else [])) for parts in (levels, alike[0][: len(levels)]))
    return Layout(reader, path, first, n_others=len(leaves) - len(alike))


def _levels(alike: Sequence[tuple[str, ...]], *, is_deep: bool) -> list[str]:
    """The parts of the path below the place, with placeholders for models and checkpoints. `is_deep`: a reader looks further."""
    by_level = [sorted({parts[n] for parts in alike}) for n in range(len(alike[0]))]
    of_checkpoints = [n for n, names in enumerate(by_level) if all(_CHECKPOINT.fullmatch(name) for name in names)]
    last = of_checkpoints[0] if of_checkpoints and is_deep else len(by_level) - 1
    if last <= 0 and not of_checkpoints:
        return ["{model}"] if by_level else []
    above = by_level[: max(last - 1, 0)]
    if any(len(names) > 1 for names in above):
        raise SourceError(
            f"pictures lie {last + 1} folders deep, such as {'/'.join(alike[0])}; name a folder nearer to them, of which the "
            "folders below are models and, in these, checkpoints"
        )
    return [*(names[0] for names in above), *(["{model}"] if last else []), "{checkpoint}"]


def _leaves(place: Path) -> list[tuple[tuple[str, ...], str, str | None]]:
    """The folders nearest to the place that hold something to read: their parts below it, the reader, the file it reads."""
    level: list[tuple[str, ...]] = [()]
    found: list[tuple[tuple[str, ...], str, str | None]] = []
    for _ in range(N_LEVELS + 1):
        below: list[tuple[str, ...]] = []
        for parts in level[:N_FOLDERS]:
            folder = place.joinpath(*parts)
            try:
                entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
            except OSError as error:
                raise SourceError(f"{folder} cannot be read: {error.strerror}") from error
            is_above = any(
                entry.is_dir() and _CHECKPOINT.fullmatch(entry.name) for entry in entries
            )  # beside them a grid.png, or so
            if (kind := _kind(entries)) and not (is_above and kind[0] == "imagefolder"):
                found.append((parts, *kind))
            else:
                below += [(*parts, entry.name) for entry in entries if entry.is_dir()]
        level = below
    return found


def _kind(entries: Sequence[Path]) -> tuple[str, str | None] | None:
    """The reader of a folder with these entries, and the file in it where that reader wants a file."""
    files = [entry for entry in entries if not entry.is_dir()]
    folders = [entry for entry in entries if entry.is_dir()]
    suffixes = {file.suffix.lower() for file in files}
    tables = [file for file in files if file.suffix.lower() in SUFFIXES]
    has_pictures = bool(suffixes & IMAGE_SUFFIXES)
    table = next((file for file in tables if _names_pictures(file)), None)
    only = None if has_pictures or len(tables) != 1 else tables[0]  # of texts alone
    kinds = (
        (any((one / "metadata.jsonl").is_file() and (one / "samples").is_dir() for one in folders[:20]), "geneval", None),
        (any(file.stem == "manifest" for file in tables), "manifest", None),
        (any(file.name in METADATA for file in files), "imagefolder", None),
        (".tar" in suffixes, "webdataset", None),
        (".parquet" in suffixes, "huggingface", None),
        (table is not None, "manifest", table),
        (has_pictures, "imagefolder", None),
        (only is not None, "manifest", only),
    )
    return next(((reader, file.name if file else None) for is_it, reader, file in kinds if is_it), None)


def _names_pictures(table: Path) -> bool:
    found = Layout("manifest", table, table)
    try:
        rows = _first_rows(found)
    except SourceError:
        return False
    return bool(picture_columns(table.parent, rows, list(rows[0].values)))


def _first_rows(found: Layout) -> list[RawRow]:
    """The first rows, with the values of every column they have."""
    source = ResolvedSource("source-0", found.reader, found.first, model="any")
    rows = READERS[found.reader].rows
    first = next(iter(rows(source)), None)
    if first is None:
        raise SourceError(f"{found.first} has no rows")
    wider = ResolvedSource("source-0", found.reader, found.first, model="any", own_texts=tuple(first.columns))
    return list(islice(rows(wider), N_ROWS))
