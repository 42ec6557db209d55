"""A bundle: one publication with all that its numbers are made from, as a folder or a zip. Opening one is bundle_opening.py.

It is a small lake: the published folder, the partitions it is made of with their markers, the rubrics' files, `bundle.json`.
What shows many publications (pointer, tables for machines, salon.duckdb) stays behind. Pictures are left out unless asked
for: their rows stay, without bytes, and the pages that show them stay behind too.
"""

import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from rubrics.loading import rubric_files
from rubrics.model import Rubric
from schemas.errors import InputError
from schemas.identities import RunIds
from tasks.lake.atomic_files import place, place_folder, staged_beside, store_error, write_tables
from tasks.lake.markers import describe
from tasks.lake.object_store.ranges import PICTURE
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import PARTITION_KEYS, Lake
from tasks.publish.folders import LAYOUT, as_json
from tasks.validate.buckets import PARTITIONS

DECLARATION, RUBRICS = "bundle.json", "rubrics"
PAGES = (".html", ".jpg")
"""The endings of a publication's files that show pictures."""
FORMAT = 1
_DIGEST, _PLAIN = "[0-9a-f]{64}", r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
PUBLISHED = rf"{_PLAIN}/(?:agreement/)?{_DIGEST}"
_TABLES = "samples|pictures|judgements|requests|replies|scores"
_PARTITION = "|".join(f"{name}/{PARTITION_KEYS[name]}={_DIGEST}" for name in _TABLES.split("|"))
NAMES = re.compile(
    rf"{re.escape(DECLARATION)}|publish/{LAYOUT}/{PUBLISHED}/{_PLAIN}|complete/(?:{_TABLES})/{_DIGEST}\.json"
    rf"|(?:{_PARTITION})/part-[0-9]{{5,9}}\.parquet|{RUBRICS}(?:/{_PLAIN}){{2,5}}"
)
"""Every name that a file of a bundle may have."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can tell: the same publication is the same bytes."""


@dataclass(frozen=True, slots=True)
class BundleName:
    """What bundle.json says: the published folder below `publish/v1/`, whether pictures are in it, and who wrote it."""

    folder: str
    has_pictures: bool
    code_version: str
    release: str
    format: int = FORMAT


def write_bundle(
    folder: Path, lake: Lake, ids: RunIds, rubrics: Mapping[str, Rubric], out: Path, *, with_pictures: bool
) -> BundleName:
    """Write a published folder's bundle to `out`: a zip where it ends in .zip, else a folder that is not there yet or empty.

    Raises InputError where `out` is there, StoreError where the disk refuses, CorruptLakeError where a part was changed.
    """
    is_zip = out.suffix.lower() == ".zip"
    if out.exists() and (is_zip or not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out} already exists; name a .zip or a folder that does not exist yet")
    below = folder.relative_to(lake.root / "publish" / LAYOUT).as_posix()
    name = BundleName(below, with_pictures, ids.code_version, version("salon"))
    with store_error(f"writing {out}"), staged_beside(out) as staged, TemporaryDirectory(dir=staged) as slim:
        files = dict(_files(folder, lake, ids, Path(slim), name))
        for rubric_id, rubric in sorted(rubrics.items()):
            files |= {f"{RUBRICS}/{rubric_id}/{file}": rubric.folder / file for file in rubric_files(rubric.folder)}
        files[DECLARATION] = as_json(asdict(name))
        wrong = [one for one in files if not NAMES.fullmatch(one)]
        if wrong:
            raise InputError(
                f"{wrong[0][:200]!r} is not allowed as the name of a file in a bundle: only letters, digits, _ . and -"
            )
        if is_zip:
            _pack(files, staged / "bundle")
            place(staged / "bundle", out.absolute())
        else:
            _copy(files, staged / "bundle")
            place_folder(staged / "bundle", out.absolute())
    return name


def _files(folder: Path, lake: Lake, ids: RunIds, slim: Path, name: BundleName) -> Iterator[tuple[str, Path | bytes]]:
    """Every file's place in the bundle, and the file or its content."""
    pictures = StoredDataset(lake, ids.dataset_id).table_of_pictures
    is_bare = (
        not name.has_pictures
        and not lake.collect(pictures, ids.dataset_id, lambda rows: rows.select("image_sha256").drop_nulls().head(1)).is_empty()
    )
    for path in sorted(folder.iterdir()):
        if path.is_file() and not (is_bare and path.suffix in PAGES):
            yield f"publish/{LAYOUT}/{name.folder}/{path.name}", path
    stored = {table: getattr(ids, of) for table, of in PARTITIONS.items()} | {pictures: ids.dataset_id}
    for table, key in stored.items():
        parts = lake.parts(table, key)
        if is_bare and table is pictures:
            parts = [_without_pictures(path, slim) for path in parts]
            yield _below(lake, lake.marker(table, key)), as_json({"parts": [describe(path) for path in parts]})
        else:
            yield _below(lake, lake.marker(table, key)), lake.marker(table, key)
        yield from ((f"{_below(lake, lake.partition(table, key))}/{path.name}", path) for path in parts)


def _below(lake: Lake, path: Path) -> str:
    return path.relative_to(lake.root).as_posix()


def _without_pictures(path: Path, folder: Path) -> Path:
    """The part with every column but the pictures' bytes, which are null."""
    with pq.ParquetFile(path) as file:
        schema: pa.Schema = file.schema_arrow
        kept = [name for name in schema.names if name != PICTURE]

        def rows() -> Iterator[pa.Table]:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number, columns=kept)
                nothing = pa.nulls(group.num_rows, schema.field(PICTURE).type)
                yield group.append_column(PICTURE, nothing).select(schema.names).cast(schema)

        write_tables(rows(), schema, folder / path.name, folder / "unfinished")
    return folder / path.name


def _pack(files: Mapping[str, Path | bytes], target: Path) -> None:
    """Stored where Parquet packs already, packed else."""
    with zipfile.ZipFile(target, "x") as archive:
        for name, content in _ordered(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
            if isinstance(content, bytes):
                archive.writestr(entry, content)
                continue
            entry.file_size = content.stat().st_size
            with content.open("rb") as source, archive.open(entry, "w") as into:
                shutil.copyfileobj(source, into, 1 << 20)


def _copy(files: Mapping[str, Path | bytes], folder: Path) -> None:
    for name, content in _ordered(files):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            shutil.copyfile(content, target)


def _ordered(files: Mapping[str, Path | bytes]) -> Iterable[tuple[str, Path | bytes]]:
    """bundle.json first: whoever looks into a bundle sees at its beginning what it is."""
    return sorted(files.items(), key=lambda item: (item[0] != DECLARATION, item[0]))
