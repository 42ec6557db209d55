"""A published folder found, read, and held against its manifest. Against the same made again: made_again.py."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schemas.errors import InputError
from schemas.tables.field import DIGEST_LENGTH
from tasks.lake.atomic_files import sha256_of_file
from tasks.lake.object_store.cache_folder import pull
from tasks.lake.reading import Lake
from tasks.publish.agreement import FOLDER as AGREEMENT_FOLDER
from tasks.publish.folders import LAYOUT, MANIFEST, PROVENANCE
from tasks.publish.machine_tables import FOLDER as TABLES_FOLDER
from tasks.publish.reading import look_again
from tasks.verify.rows import NOTHING, Difference, shown


def find_folder(lake_root: Path, publication: str) -> Path:
    """The published folder of an id, of its beginning (four characters or more) or of a path. Raises InputError."""
    if Path(publication).is_dir():
        return Path(publication).resolve()
    look_again(lake_root)
    home = lake_root / "publish" / LAYOUT
    look_again(lake_root, *(f"{path.name}/{AGREEMENT_FOLDER}" for path in home.glob("*/") if path.name != TABLES_FOLDER))
    places = [*home.glob("*/*/"), *home.glob(f"*/{AGREEMENT_FOLDER}/*/")]
    known = sorted(path for path in places if len(path.name) == DIGEST_LENGTH)
    found = [path for path in known if len(publication) >= 4 and path.name.startswith(publication)]
    if len(found) == 1:
        pull(lake_root, found[0].relative_to(lake_root).as_posix())
        return found[0]
    listed = "\n".join(f"  {path.name[:12]}  {path.parent.relative_to(home)}" for path in found or known) or "  none"
    what = f"{len(found)} publications begin" if found else "no publication begins"
    place = Lake(lake_root).place
    raise InputError(
        f"{what} with {publication!r} in the lake {place}; give a folder, or four characters or more of one of\n{listed}"
    )


def is_agreement(folder: Path) -> bool:
    """Whether the folder holds an agreement with people, and not a benchmark's tables."""
    return folder.parent.name == AGREEMENT_FOLDER


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object, or None where the file is not there or holds none."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def check_manifest(folder: Path, may_lack: tuple[str, ...] = ()) -> Iterator[Difference]:
    """The folder's files against the sizes and checksums of its manifest. `may_lack`: the endings of those that may be away."""
    manifest = read_json(folder / MANIFEST)
    files = manifest.get("files") if manifest else None
    if manifest is None or not isinstance(files, dict):
        yield Difference(MANIFEST, "", "", "no manifest that can be read", "one that lists every file")
        return
    benchmark = folder.parents[1].name if is_agreement(folder) else folder.parent.name
    for name, derived in (("publication_id", folder.name), ("benchmark", benchmark)):
        if manifest.get(name) != derived:
            yield Difference(MANIFEST, "", name, shown(manifest.get(name)), shown(derived))
    there = {path.name: path for path in sorted(folder.iterdir()) if path.name != MANIFEST}
    for name in sorted(there.keys() - files.keys()):
        yield Difference(MANIFEST, "", name, NOTHING, "a file of the folder")
    for name, entry in sorted(files.items()):
        path, said = there.get(name), entry.get("sha256") if isinstance(entry, dict) else None
        n_bytes = entry.get("n_bytes") if isinstance(entry, dict) else None
        if path is None and name.endswith(may_lack):
            continue
        if path is None or not path.is_file():
            yield Difference(MANIFEST, "", name, f"sha256 {said}", "the file is not there")
        elif sha256_of_file(path) != said:
            yield Difference(MANIFEST, "", name, f"sha256 {said}", f"the file's sha256 {sha256_of_file(path)}")
        elif path.stat().st_size != n_bytes:
            yield Difference(MANIFEST, "", name, f"{n_bytes} bytes", f"the file's {path.stat().st_size}")


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """What provenance.json says, where it says enough to derive anything; else None."""
    said = read_json(folder / PROVENANCE) or {}
    identities = said.get("identities")
    wanted = ("dataset_id", "plan_id", "snapshot_id", "reading_id", "code_version")
    # They name files of the lake: one that is a path would lead out of it, and out of what verifying writes.
    is_whole = isinstance(identities, dict) and all(
        Path(str(identities.get(name, "/"))).name == identities.get(name) for name in wanted
    )
    return said if is_whole and isinstance(said.get("run_date"), str) else None
