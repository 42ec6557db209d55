"""How a folder of pictures is laid out: the reader it is for, which folders are models and checkpoints, which columns are which.

What `salon new` writes begins with it. It is told by names and first rows; what the benchmark file says is read as it says.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from schemas.errors import SourceError
from schemas.records import IMAGE
from tasks.delimited import columns_told
from tasks.ingest.paths import RefusedPath, bare_url, is_remote, locate
from tasks.ingest.readers import READERS
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
    r"(step|ckpt|checkpoint|epoch|iter|iteration|it|ep|global|v)?[-_. ]?\d[\d._-]*[km]?", re.IGNORECASE
)
_SAME: Final[Mapping[str, tuple[str, ...]]] = {
    "prompt": ("caption", "text", "instruction", "description", "txt", "sentence"),
    "category": ("tag",),
    "model": ("modelname", "generator"),
    "checkpoint": ("ckpt", "checkpointname", "step"),
}
"""Other names of Salon's columns, without `_` and `-`; the first that is there is taken."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a `[[sources]]` of it says. `path` holds `{model}` and `{checkpoint}` where folders are these.

    `model`, `checkpoint`: where neither path nor rows say it. `first`: a folder or file that the path stands for. `n_others`:
    folders of pictures below the place that are laid out in another way. `shown`: the columns of the first rows.
    `has_pictures`: one of these names pictures that are there.
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


def find_layout(place: Path, prompt: str | None = None) -> Layout:
    """How this folder, or file, is laid out; `prompt`: the column that holds it. Raises SourceError where no reader fits."""
    if not place.exists():
        raise SourceError(f"{place} does not exist; name the folder that holds your pictures, or the file that lists them")
    found = _of_file(place) if place.is_file() else _of_folder(place)
    rows = _first_rows(found)
    columns = list(dict.fromkeys(name for row in rows for name in (row.columns or row.values)))
    in_path = {name for name in ("model", "checkpoint") if f"{{{name}}}" in str(found.path)}
    at, hosts = _picture(found, rows, columns)
    mapped = {name: at for name, at in _renamed(found, rows, columns, prompt).items() if name not in in_path}
    mapped |= {IMAGE: at} if at is not None and at != READERS[found.reader].columns.get(IMAGE, IMAGE) else {}
    model, checkpoint = _names(place)
    said = {*in_path, *mapped, *columns}
    return replace(
        found,
        model=None if "model" in said else model,
        checkpoint=None if "checkpoint" in said else checkpoint,
        columns=mapped,
        remote_hosts=hosts,
        shown=columns,
        has_pictures=at is not None,
    )


def _renamed(found: Layout, rows: Sequence[RawRow], columns: Sequence[str], prompt: str | None) -> dict[str, str]:
    """Salon's columns that have another name here, or none that the reader knows. Raises SourceError for a `prompt` not there."""
    mapped: dict[str, str] = {}
    for name, others in _SAME.items():
        usual = READERS[found.reader].columns.get(name, name)
        wanted = prompt if name == "prompt" and prompt else usual
        if wanted in columns:
            mapped |= {name: wanted} if wanted != usual else {}
        elif name == "prompt" and prompt:
            raise SourceError(f"{found.first} has no column {prompt!r} for --prompt; {columns_told(columns, [prompt])}")
        elif at := _other_name(name, others, columns):
            mapped[name] = at
    if "prompt" not in {*columns, *mapped} and "stem" in columns and _are_prompts(rows, "stem"):
        mapped["prompt"] = "stem"
    return mapped


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
            if kind := _kind(entries):
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
        (".parquet" in suffixes or any(next(folder.glob("*.parquet"), None) for folder in folders), "huggingface", None),
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
    return _picture(found, rows, list(rows[0].values))[0] is not None


def _first_rows(found: Layout) -> list[RawRow]:
    """The first rows, with the values of every column they have."""
    source = ResolvedSource("source-0", found.reader, found.first, model="any")
    rows = READERS[found.reader].rows
    first = next(iter(rows(source)), None)
    if first is None:
        raise SourceError(f"{found.first} has no rows")
    wider = ResolvedSource("source-0", found.reader, found.first, model="any", own_texts=tuple(first.columns))
    return list(islice(rows(wider), N_ROWS))


def _other_name(name: str, others: Iterable[str], columns: Sequence[str]) -> str | None:
    plain = {re.sub(r"[-_ ]", "", column).casefold(): column for column in reversed(columns)}
    return next((plain[one] for one in (name, *others) if one in plain), None)


def _are_prompts(rows: Sequence[RawRow], column: str) -> bool:
    """Whether most of these are several words, and so may say what a picture should show."""
    return 2 * sum(len(str(row.values.get(column)).split()) > 1 for row in rows) > len(rows)


def _picture(found: Layout, rows: Sequence[RawRow], columns: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The column of the picture, and the hosts where it is a URL: the first whose values are pictures; None where none is."""
    usual = READERS[found.reader].columns.get(IMAGE, IMAGE)
    root = found.first if found.first.is_dir() else found.first.parent
    for name in dict.fromkeys((usual, *columns)):
        values = [(row, row.values[name]) for row in rows if row.values.get(name) is not None]
        urls = [value for _, value in values if isinstance(value, str) and is_remote(value) and _is_named_so(bare_url(value))]
        if urls:
            return name, tuple(sorted({bare_url(url).split("/")[2] for url in urls}))
        if any(_is_picture(root, row.folder, value) for row, value in values):
            return name, ()
    return None, ()


def _is_picture(root: Path, folder: str, value: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(value.get("bytes"), bytes) or _is_picture(root, folder, value.get("path"))
    if isinstance(value, str) and _is_named_so(value):
        return not isinstance(locate(root, f"{folder}/{value}" if folder else value), RefusedPath)
    return isinstance(value, bytes)


def _is_named_so(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGE_SUFFIXES
