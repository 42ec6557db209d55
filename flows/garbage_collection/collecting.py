"""Taking away what retention.py lets go, in an order in which a kill leaves nothing that is named and not there."""

import fcntl
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flows.garbage_collection.bucket import end_killed, seen, take_away
from flows.garbage_collection.inventory import LOCK, NOTE, PART, PUBLICATION, TRASH, Item
from flows.garbage_collection.retention import Rule, Weighed, weighed
from flows.nights.index import rewrite_index
from schemas.errors import CorruptLakeError, StoreError
from schemas.tables.stored import REPLIES
from tasks.lake.atomic_files import make_folder, store_error
from tasks.lake.identity import lake_to_write
from tasks.lake.object_store.cache_folder import forget_cleared
from tasks.lake.own_places import open_lock, own_folder, remove_in
from tasks.lake.reading import Lake
from tasks.ledger.mutex import clearing
from tasks.ledger.open_ledgers import opened
from tasks.ledger.process_identity import this_process
from tasks.ledger.snapshot import restore
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.folders import LAYOUT
from tasks.publish.machine_tables import FOLDER as TABLES
from tasks.publish.pins import pinning, pins
from tasks.publish.reading import look_again
from tasks.stopping import check_not_stopped


def clear(lake: Lake, ledger_url: str, rule: Rule, tell: Callable[[list[Weighed]], None]) -> None:
    """Take away what may go as the lake stands now, after it was told. Raises StoreError while a run uses the lake.

    No paid reply is lost: what a snapshot holds and the ledger lacks is first put into the ledger. Publications go before what
    they are made of, a partition's marker before its files; each leaves its place by one rename. Killed at any point, what is
    left is a lake in which less was cleared: the same command goes on.
    """
    with opened(ledger_url) as ledger, clearing(ledger, lake_to_write(lake.root)) as other:
        if other is not None:
            where = "this machine" if other.host == this_process().host else "another machine"
            raise StoreError(
                f"process {other.pid} on {where} is using the lake {lake.place}: nothing was deleted; try again when it has ended"
            )
        if lake.bucket:
            end_killed(lake.bucket)
        with seen(lake) as view:
            found = weighed(view, rule)
            tell(found)
            going = [one.item for one in found if one.why is None]
            if any(item.kind == REPLIES.name for item in going):
                restore(lake, ledger)
            if lake.bucket and going:
                with _not_pinned(lake, going):
                    take_away(lake.bucket, view.root, going)
                forget_cleared(lake.root)
                _list_anew(lake.root)
        if lake.bucket is None:
            _take_out_of_folder(lake, going)


def _take_out_of_folder(lake: Lake, going: list[Item]) -> None:
    with store_error(f"clearing {lake.place}"), _trash(lake.root) as trash:
        published = [item for item in going if item.kind in (PUBLICATION, PART)]
        with _not_pinned(lake, going):
            _take_all_away(published, lake.root, trash)
        try:
            if going:  # of a clearing that was killed here, the next one finds no publication to take away
                _list_anew(lake.root)
            is_listed = True
        except StoreError:  # a full disk, as like as not: the rest makes room
            is_listed = False
        _take_all_away([item for item in going if item not in published], lake.root, trash)
    if not is_listed:
        _list_in_the_end(lake)


def _list_in_the_end(lake: Lake) -> None:
    try:
        _list_anew(lake.root)
    except StoreError as error:
        with suppress(OSError):  # something is left to take away: with it the next clearing lists anew
            make_folder(lake.root / "staging" / f"{TRASH}{uuid.uuid4().hex}")
        raise StoreError(f"what may go was deleted; only the lists of what is left could not be written: {error}") from error


@contextmanager
def _not_pinned(lake: Lake, going: list[Item]) -> Iterator[None]:
    """Raises StoreError where one of what goes was pinned since it was looked for; while the block runs nobody pins."""
    with pinning(lake.root):
        pinned = {one.publication_id for one in pins(lake.root)} & {item.name for item in going if item.kind == PUBLICATION}
        if pinned:
            raise StoreError(
                f"{min(pinned)[:12]} was pinned while the lake {lake.place} was examined: nothing was deleted; run the "
                "same command again"
            )
        yield


def _list_anew(root: Path) -> None:
    """The index and salon.duckdb, without what went."""
    look_again(root)
    for home in sorted((root / "publish" / LAYOUT).glob("*/")):
        if home.name != TABLES:
            write_duckdb(root, home.name)
    rewrite_index(root)


def _take_all_away(items: list[Item], root: Path, trash: int) -> None:
    for item in items:
        check_not_stopped()
        for path in item.paths:
            with own_folder(root, path.parent) as folder:
                _take_away(item.kind, path, (folder, trash), root)


def _take_away(kind: str, path: Path, folders: tuple[int, int], root: Path) -> None:
    """One path of an item out of the first of the folders; what is a folder itself goes to the second."""
    folder, trash = folders
    if kind == LOCK and not _is_free(root, path):
        return
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.rename(path.name, uuid.uuid4().hex, src_dir_fd=folder, dst_dir_fd=trash)
        else:
            os.unlink(path.name, dir_fd=folder)
    if kind not in (LOCK, NOTE):
        os.fsync(folder)


def _is_free(root: Path, lock: Path) -> bool:
    with suppress(OSError, CorruptLakeError), os.fdopen(open_lock(root, lock), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def _trash(root: Path) -> Iterator[int]:
    """Where what goes is put by a rename; emptied at the end. What a killed clearing leaves there goes with the next."""
    name = f"{TRASH}{uuid.uuid4().hex}"
    make_folder(root / "staging")
    with own_folder(root, root / "staging") as staging:
        os.mkdir(name, dir_fd=staging)
        try:
            with own_folder(root, root / "staging" / name) as trash:
                yield trash
        finally:
            with suppress(OSError):
                remove_in(staging, name)
