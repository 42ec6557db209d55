"""Writing so that no reader meets a half: temp file, fsync, rename, fsync of the folder; and locks. What is written: reading.py.

Neither Parquet library may write at a final name: on a full disk one leaves a broken file there, the other deletes the good one.
"""

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import InputError, StoreError, remedy
from tasks.lake.own_places import open_lock
from tasks.regular_files import opened
from tasks.stopping import STOP, check_not_stopped

if TYPE_CHECKING:
    import polars as pl

IMAGE_ROWS_PER_GROUP = 64  # a row group of 64 pictures reads in about 2 ms
IMAGE_ROWS_PER_WRITE, IMAGE_PAGE_BYTES = 8, 1024 * 1024
"""After so many rows a page may end, and it ends at so many bytes; else a row group is one page of 10 MB readers hold whole."""
_LOCK_POLL_S = 0.05
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def write_parquet(table: pa.Table, target: Path, staging: Path) -> None:
    """Write a Parquet file so that `target` is never anything but absent, old or whole."""
    write_tables([table], table.schema, target, staging)


def write_tables(tables: Iterable[pa.Table], schema: pa.Schema, target: Path, staging: Path) -> int:
    """The same of tables as they come, each in row groups of its own and none kept in memory; the number of rows."""
    n_rows, has_images = 0, "image" in schema.names and schema.field("image").type.get_field_index("bytes") >= 0
    options: dict[str, Any] = {"compression": "zstd"}
    if has_images:  # pictures are compressed already: zstd gives the same size at a third of the speed
        plain = [name for name in schema.names if name != "image"]
        options = {
            "compression": dict.fromkeys(plain, "zstd") | {"image.bytes": "none", "image.path": "none"},
            "use_dictionary": [*plain, "image.path"],
            "write_batch_size": IMAGE_ROWS_PER_WRITE,
            "data_page_size": IMAGE_PAGE_BYTES,
        }
    with _placed(target, staging) as temporary, pq.ParquetWriter(temporary, schema, **options) as writer:
        for table in tables:
            holds_images = has_images and table["image"].null_count < table.num_rows
            if table.num_rows or not has_images:  # a row group without rows has no column chunks to tell apart
                writer.write_table(table, IMAGE_ROWS_PER_GROUP if holds_images else None)
            n_rows += table.num_rows
    return n_rows


def write_bytes(content: bytes, target: Path, staging: Path) -> None:
    """Write a small file so that `target` is never anything but absent, old or whole."""
    with _placed(target, staging) as temporary:
        temporary.write_bytes(content)


@contextmanager
def locked(lake_root: Path, name: str) -> Iterator[None]:
    """One process at a time in the block of this name; the lock dies with its holder. Raises StoppedError, StoreError."""
    path = lake_root / "locks" / f"{name}.lock"
    with store_error(f"locking {path}"):
        try:
            descriptor = open_lock(lake_root, path)
        except FileNotFoundError:
            make_folder(path.parent)
            descriptor = open_lock(lake_root, path)
    with os.fdopen(descriptor, "rb") as file:
        while True:  # not in the kernel, where a signal would not end the wait once Polars is loaded
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                check_not_stopped()
                STOP.wait(_LOCK_POLL_S)
        yield


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, durably: what is synced in a folder that a power cut forgets is forgotten with it."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        with suppress(PermissionError):  # a folder above the lake that may be written to and not be read
            fsync_folder(folder.parent)


def fsync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of_file(path: Path) -> str:
    """Hexadecimal sha256 of a file, read in blocks."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_footer(path: Path) -> str:
    """sha256 of what stands at the end of a Parquet file: its schema, where its columns are, how long all that is."""
    with opened(path) as file:
        n_bytes = file.seek(0, os.SEEK_END)
        file.seek(max(0, n_bytes - 8))
        n_footer = int.from_bytes(file.read(4), "little") + 8
        file.seek(max(0, n_bytes - n_footer))
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_without_pictures(path: Path) -> str:
    """sha256 of a Parquet file less the column chunks that hold pictures: its footer, which is believed, says where they are."""
    digest, done = hashlib.sha256(), 0
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    # Not by `metadata.schema`, which makes a circle with it: a megabyte that waits for the garbage collector.
    names = [groups[0].column(index).path_in_schema for index in range(metadata.num_columns)] if groups else []
    pictures = [index for index, name in enumerate(names) if name.startswith("image.")]
    with path.open("rb") as file:
        for rows in groups:
            for chunk in (rows.column(index) for index in pictures):
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                digest.update(file.read(start - done))
                done = start + chunk.total_compressed_size
                file.seek(done)
        digest.update(file.read())
    return digest.hexdigest()


@contextmanager
def store_error(doing: str) -> Iterator[None]:
    """Turn what the operating system raises while writing into a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{doing} failed: {error}; {remedy(error)}, then run the same command again") from error


def write_scratch(rows: "pl.DataFrame", path: Path) -> None:
    """A file of rows for a while, through pyarrow, which tells a full disk as the system does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = rows.to_arrow()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=_LZ4) as writer:
        writer.write_table(table)


@contextmanager
def scratch(lake_root: Path, kind: str) -> Iterator[Path]:
    """A folder of this kind among what is unfinished, not made yet; what is left of it when the block ends is removed."""
    folder = lake_root / "staging" / f"{kind}-{uuid.uuid4().hex}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refuse_full(option: str, folder: Path) -> None:
    """Raise InputError where something stands in the folder that is to be written."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{option} {folder} is not an empty folder; name one that does not exist yet, or empty it")


@contextmanager
def staged_beside(folder: Path) -> Iterator[Path]:
    """A folder beside the one that is to be, on the same file system; gone when the block ends without having placed it."""
    whole = folder.absolute()
    staged = whole.with_name(f".{whole.name}.{uuid.uuid4().hex}")
    staged.mkdir(parents=True)
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def link_or_copy(source: Path, target: Path, staging: Path) -> None:
    """A second name for a file that nobody changes any more, or a copy where the file system has no second names."""
    with _placed(target, staging) as temporary:
        try:
            temporary.hardlink_to(source)
        except OSError:
            shutil.copyfile(source, temporary)


@contextmanager
def _placed(target: Path, staging: Path) -> Iterator[Path]:
    """A path to write to; what the block wrote there has its place when it ends."""
    with store_error(f"writing {target}"):
        make_folder(staging)
        temporary = staging / f"{uuid.uuid4().hex}.tmp"
        try:
            yield temporary
            place(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def place(temporary: Path, target: Path) -> None:
    """Rename a written file to its place, durably; on the same file system."""
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    make_folder(target.parent)
    temporary.replace(target)
    fsync_folder(target.parent)


def place_folder(staged: Path, target: Path) -> None:
    """Rename a folder of synced files to its place, durably; what stands there is replaced. For one process at a time."""
    fsync_folder(staged)
    make_folder(target.parent)
    aside = staged.with_name(f"{staged.name}.leftover")
    if target.exists():
        target.rename(aside)
    staged.rename(target)
    if aside.is_symlink():
        aside.unlink()  # the link alone: what it names is another's
    shutil.rmtree(aside, ignore_errors=True)
    fsync_folder(target.parent)
