"""What of a lake, or of a ledger's files, this user may not write: whose it is, and what to do. Nothing is tried here."""

import grp
import os
import pwd
import shlex
import stat
from collections.abc import Iterable
from contextlib import suppress
from glob import escape
from pathlib import Path

_WRITTEN = (
    "", "staging", "locks", "runs", "asking", "asking/{}", "nights", "nights/{}", "partitions", "partitions/{}", "series",
    "planned", "taken", "verdicts", "tiles", "sources", "data_docs", "rubrics", "complete", "complete/*", "publish", "publish/v1",
    "publish/v1/{}", "publish/v1/{}/drift", "publish/v1/tables", "publish/v1/tables/*",
    "publish/v1/tables/*/benchmark_name={}", "locks/pointer-{}.lock", "locks/derived-{}.lock",
    "locks/partitions-{}.lock", "locks/index.lock",
)  # fmt: skip
"""What a night of a benchmark writes into, or opens to write. Single files are replaced: there the folder's mode counts."""
_N_NAMED = 4
"""A ledger's files and their folder are four."""
_SHARED = 'docs/security.md, "A lake\'s folder", says which folder and umask make what comes later writable too'


def barred(paths: Iterable[Path]) -> dict[Path, os.stat_result]:
    """Those of the paths that are there and that this user may not write; none of a file system that nobody may write."""
    found = dict[Path, os.stat_result]()
    for path in paths:
        with suppress(OSError):  # there is none, or nobody may look
            before = path.stat()
            asked = os.W_OK | os.X_OK if stat.S_ISDIR(before.st_mode) else os.W_OK
            is_barred = not os.access(path, asked) and not os.statvfs(path).f_flag & os.ST_RDONLY
            after = path.stat()
            # the last of several processes takes a ledger's files beside it away, and the next makes others
            if is_barred and (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns):
                found[path] = after
    return found


def barred_of_lake(root: Path, benchmark: str) -> tuple[str, str] | None:
    """What of a lake the benchmark's nights write and this user may not, and what to do; None where there is nothing."""
    tables = (path.name for path in root.glob("complete/*"))
    below = (one.format(escape(benchmark)) for one in (*_WRITTEN, *tables))
    found = barred(path for one in below for path in (sorted(root.glob(one)) if one else [root]))
    return told(found, "the lake") if found else None


def told(found: dict[Path, os.stat_result], what: str) -> tuple[str, str]:
    """In words, paths that this user may not write and whose they are; and what to do."""
    shown = [f"{path} (of {_owner(one)}, {stat.filemode(one.st_mode)})" for path, one in found.items()]
    more = f" and {len(found) - _N_NAMED} more" if len(found) > _N_NAMED else ""
    said = f"this user may not write {' and '.join(shown[:_N_NAMED])}{more}"
    mine = {one.st_uid for one in found.values()} == {os.geteuid()}
    groups = {one.st_gid for one in found.values()}
    all_below, paths = ("-R ", shlex.quote(os.path.commonpath(found))) if more else ("", shlex.join(map(str, found)))
    if mine:
        return said, f"chmod {all_below}u+rwX {paths}"
    if groups <= {os.getegid(), *os.getgroups()}:
        return said, f"to share {what} with its group, their owner runs: chmod {all_below}g+rwX {paths}; {_SHARED}"
    named = ", ".join(sorted(map(_group, groups)))
    return said, f"this user is not in the group {named}: to share {what}, its users need a common group; {_SHARED}"


def _owner(of: os.stat_result) -> str:
    try:
        return pwd.getpwuid(of.st_uid).pw_name
    except KeyError:
        return f"user {of.st_uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
