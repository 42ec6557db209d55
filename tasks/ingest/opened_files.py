"""What the files of a shard show: each is opened once, each distinct picture a row of `pictures`. Whose: shards.py."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from schemas.tables.stored import PICTURES
from tasks.ingest.images.decode import STOPPED, open_bounded
from tasks.ingest.images.limits import RefusedImage
from tasks.ingest.images.open import OpenedImage, open_header
from tasks.ingest.paths import encodable, is_remote
from tasks.lake.atomic_files import IMAGE_ROWS_PER_GROUP

_GROUP_BYTES = 64 * 1024 * 1024  # of pictures in a row group, which is in memory two or three times while it is written


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture that was opened: its digest, and all that a sample's row says of it."""

    sha256: str
    file_sha256: str
    picture: OpenedImage  # without its bytes


class OpenedFiles:
    """The pictures of a shard: a file that several samples use is opened once, and what it shows kept until it is written."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._n_bytes = 0
        self._by_file: dict[tuple[str, bool], Shown | RefusedImage] = {}
        self._held: set[str] = set()

    @property
    def is_full(self) -> bool:
        """Whether there is a row group of them."""
        return len(self.rows) >= IMAGE_ROWS_PER_GROUP or self._n_bytes >= _GROUP_BYTES

    def taken(self) -> pa.Table:
        """The pictures that are new since the last time."""
        table = pa.Table.from_pylist(self.rows, schema=PICTURES.schema)
        self.rows, self._n_bytes = [], 0
        return table

    def open(self, content: bytes, path: str | None, *, by_header: bool) -> Shown | RefusedImage:
        """What `content` shows, or why nothing; by its header alone where that and its end prove the file whole."""
        file_sha256 = hashlib.sha256(content).hexdigest()
        key = file_sha256, by_header
        if key not in self._by_file:
            found = (open_header(content) if by_header else None) or open_bounded(content)
            if isinstance(found, OpenedImage):
                digest = file_sha256 if found.shown is content else hashlib.sha256(found.shown).hexdigest()
                shown = Shown(digest, file_sha256, replace(found, shown=b""))
                self._keep(shown, found.shown, path, len(content))
                self._by_file[key] = shown
            elif STOPPED in found.detail:  # another try might end otherwise
                return found
            else:
                self._by_file[key] = found
        return self._by_file[key]

    def _keep(self, shown: Shown, content: bytes, path: str | None, n_bytes: int) -> None:
        if shown.sha256 in self._held:
            return
        self._held.add(shown.sha256)
        self._n_bytes += len(content)
        self.rows.append({
            "image_sha256": shown.sha256, "image": {"bytes": content, "path": own_path(path)}, "n_bytes": n_bytes,
            **about_of(shown),
        })  # fmt: skip


def about_of(shown: Shown | None) -> dict[str, Any]:
    """What `samples` and `pictures` both say of a picture."""
    picture = shown.picture if shown else None
    return {
        "file_sha256": shown.file_sha256 if shown else None,
        "image_format": picture.format if picture else None,
        "image_treatment": picture.treatment if picture else None,
        "width_px": picture.width_px if picture else None,
        "height_px": picture.height_px if picture else None,
    }


def own_path(path: str | None) -> str | None:
    """The path by which a source names a picture, `./` taken off; its last part alone where it is of one machine."""
    if path and is_remote(path):
        from tasks.ingest.fetching import shown_url  # aiohttp with it

        path = shown_url(path)
        return encodable(PurePosixPath(path).name)
    if not path:
        return None
    plain = PurePosixPath(path.replace("\\", "/"))
    if not plain.parts:  # "." and "./" are no file's
        return None
    is_of_a_machine = plain.is_absolute() or ".." in plain.parts or plain.parts[0].endswith(":")
    return encodable(plain.name if is_of_a_machine else str(plain))
