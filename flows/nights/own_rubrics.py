"""The rubrics that nights were judged by, kept in the lake, and whether two ask and read the same. The series are series.py.

`rubrics/<digest>/<id>/` holds the files that a rubric's digest is of: a night's anchors are read by its own, and a benchmark has
only the rubrics of today. A digest changes with a title, too; whether anything else did is seen from the files of both.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from rubrics.loading import load_rubric, rubric_files
from rubrics.model import Rubric
from schemas.errors import RubricError
from tasks.lake.atomic_files import write_bytes
from tasks.lake.object_store.cache_folder import pull, push


def keep_rubrics(lake_root: Path, rubrics: Mapping[str, Rubric], say: Callable[[str], None]) -> None:
    """Keep those that the lake does not hold yet. One whose files were changed since it was loaded cannot be, which is said."""
    for rubric in rubrics.values():
        if kept_rubric(lake_root, rubric.id, rubric.digest) is not None:
            continue
        if not _is_unchanged(rubric):
            say(
                f"the files of rubric {rubric.id} were edited since they were read: this command goes by what it read, which the "
                "lake cannot keep. Anchors of a night that are judged so are compared with no later night's, unless a run finds "
                "the files as they were"
            )
            continue
        target = _folder(lake_root, rubric.id, rubric.digest)
        names = rubric_files(rubric.folder)
        for name in names:
            write_bytes((rubric.folder / name).read_bytes(), target / name, lake_root / "staging")
        push(lake_root, *(target / name for name in names))


def _is_unchanged(rubric: Rubric) -> bool:
    try:
        return load_rubric(rubric.folder).digest == rubric.digest
    except RubricError:  # half an edit
        return False


def rubrics_of_night(lake_root: Path, digests: Mapping[str, str], today: Mapping[str, Rubric]) -> dict[str, Rubric]:
    """Of the rubrics that a night was judged by (`digests`, by id), those whose anchors belong into its series.

    Those of another version than `today` are in series of their own. Those of the same version must ask and read the same.
    """
    found = {}
    for name, digest in digests.items():
        now, own = today.get(name), _of_digest(lake_root, today, name, digest)
        if own is not None and (now is None or own.version != now.version or _asks(own) == _asks(now)):
            found[name] = own
    return found


def asks_the_same(
    lake_root: Path, today: Mapping[str, Rubric], name: str, digest: str, other: str, *, but_for_version: bool = False
) -> bool:
    """Whether rubric `name` of two digests asks and reads the same. No where one is neither of `today` nor kept in the lake.

    `but_for_version`: whatever their versions are.
    """
    if digest == other:
        return True
    one, two = (_of_digest(lake_root, today, name, each) for each in (digest, other))
    if one is None or two is None:
        return False
    return _asks(replace(one, version=two.version) if but_for_version else one) == _asks(two)


def _of_digest(lake_root: Path, today: Mapping[str, Rubric], name: str, digest: str) -> Rubric | None:
    now = today.get(name)
    return now if now is not None and now.digest == digest else kept_rubric(lake_root, name, digest)


def _asks(rubric: Rubric) -> Rubric:
    """What can change a question or the reading of a reply: all but title, source and where the files are."""
    requests = {name: _asks(one) for name, one in rubric.requests.items()}
    return replace(rubric, title="", source="", digest="", folder=Path(), requests=requests)


def kept_rubric(lake_root: Path, name: str, digest: str) -> Rubric | None:
    """The rubric of this digest as the lake keeps it, after its files were held against the digest; None where it does not."""
    if not re.fullmatch(r"[0-9a-f]{64}", digest):  # of a provenance that anything may have happened to
        return None
    folder = _folder(lake_root, name, digest)
    for fetch in (False, True):
        if fetch:
            pull(lake_root, folder)
        try:
            found = load_rubric(folder)
        except RubricError:  # not there, or half of it: another Salon may have been killed while it kept it
            continue
        if found.digest == digest:
            return found
    return None


def _folder(lake_root: Path, name: str, digest: str) -> Path:
    return lake_root / "rubrics" / digest / name
