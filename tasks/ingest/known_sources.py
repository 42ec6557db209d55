"""Sources that were read before: what has not changed since is taken as it is, and no picture of it is opened.

A whole dataset where no source has changed; else each part whose own rows and pictures are as they were. What is remembered
stands in the lake's folder `sources/`, a file for each source.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, TypeAlias

import orjson

from schemas.errors import CorruptLakeError
from schemas.identities import RunIds
from schemas.records import UNKNOWN, Sample
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import PICTURES, SAMPLES
from tasks.context import StageContext
from tasks.ingest.fingerprints import RESTLESS_NS, Fingerprint
from tasks.ingest.left_out import LeftOut, notes_of
from tasks.ingest.parts import ShardResult
from tasks.ingest.readers import left_out, read
from tasks.ingest.sources import ResolvedSource
from tasks.lake.atomic_files import store_error, write_bytes
from tasks.lake.own_places import own_folder, remove_in
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake
from tasks.regular_files import content_of

FOLDER = "sources"

Origin: TypeAlias = ResolvedSource | str
"""A source; or what stands behind them by a name that says all of its content: an anchor set, the twins of an exam."""


@dataclass(frozen=True, slots=True)
class KnownPart:
    """A part of a dataset in the lake. `shard`: what its samples were; None where it may stand in no other dataset."""

    index: int
    n_by_status: Mapping[str, int]
    shard: str | None


@dataclass(frozen=True, slots=True)
class KnownSource:
    """The parts that a source gave to a dataset. `files`: what they were; None where that may change unseen."""

    dataset_id: str
    parts: Sequence[KnownPart]
    files: str | None
    pictures: Sequence[str]
    roles: Sequence[tuple[str, str]]  # (model, checkpoint), each once
    left_out: LeftOut | None = None


class KnownSources:
    """What a lake remembers of sources, as this code reads them into shards of this size."""

    def __init__(self, lake: Lake, ids: RunIds, shard_size: int, restless_ns: int = RESTLESS_NS) -> None:
        self._lake, self._ids, self._restless_ns = lake, ids, restless_ns
        self._of_code = f"{ids.code_version} {shard_size} {version('pillow')}"  # another Pillow may open what one could not
        self._known: dict[str, KnownSource | None] = {}
        self._reading: dict[str, _Reading] = {}

    @classmethod
    def of(cls, context: StageContext) -> Self:
        """What the lake of a run remembers."""
        return cls(context.lake, context.ids, context.benchmark.limits.shard_size)

    def roles_in(self, source: ResolvedSource) -> Iterable[tuple[str, str]]:
        """Each (model, checkpoint) that the source has a row of, in the order of its rows. Raises SourceError.

        A run that has made its dataset has looked at the files: it is told of the source as it was then.
        """
        known = self._remembered(self._name(source))
        if known is None or known.dataset_id != self._ids.dataset_id:
            known = self._unchanged(source)
        if known is not None:
            return [role for role in known.roles if role[0] != UNKNOWN]
        return dict.fromkeys((sample.model, sample.checkpoint) for sample in read(source) if sample.model != UNKNOWN)

    def dataset_of(self, origins: Sequence[Origin]) -> tuple[str, list[KnownPart]] | None:
        """The dataset that is made of these and of nothing else, and its parts; None where one of them has changed."""
        known = [one for origin in origins if (one := self._unchanged(origin)) is not None]
        if len(known) < len(origins) or len({one.dataset_id for one in known}) != 1:
            return None
        parts = [part for one in known for part in one.parts]
        n_parts = self._lake.n_parts(SAMPLES, known[0].dataset_id)
        return (known[0].dataset_id, parts) if [part.index for part in parts] == list(range(n_parts)) else None

    def begin(self, source: ResolvedSource) -> None:
        """Look at the source's files: before any row of it is read."""
        self._reading[self._name(source)] = _Reading(self._files_of(source))

    def end(self, source: ResolvedSource) -> None:
        """Look at what of the source's files was not read: after its last row."""
        self._reading[self._name(source)].left_out = left_out(source)

    def left_out(self, origins: Sequence[Origin] | None = None) -> dict[str, str]:
        """What is not read, by the source's name: of the sources read just now, or of these that dataset_of() found."""
        known = [self._remembered(self._name(one)) for one in origins] if origins is not None else self._reading.values()
        return notes_of(one.left_out for one in known if one is not None and one.left_out is not None)

    def part_like(self, source: ResolvedSource, samples: Sequence[Sample], index: int) -> tuple[StoredDataset, int] | None:
        """(dataset, part) that holds what these samples would become as part `index`, where they are as they were; else None.

        To be asked of every shard of a source that was begun, before its pictures are opened.
        """
        name, is_file = self._name(source), not source.path.is_dir()
        reading, shard = self._reading[name], Fingerprint(source.root, self._restless_ns)
        for sample in samples:
            reading.roles[sample.model, sample.checkpoint] = None
            for name_of, found in shard.note_sample(sample):
                if is_file:
                    reading.pictures.append(name_of)
                    reading.files.note(name_of, found)
        reading.shards.append((index, shard))
        known = self._remembered(name)
        if known is None or self._lake.bucket:  # out of a bucket a part would be fetched, and sent back
            return None
        like = next((part for part in known.parts if part.shard == shard.digest), None)
        try:
            if like is None or not self._lake.is_complete(PICTURES, known.dataset_id):
                return None
            for table in (SAMPLES, PICTURES):
                self._lake.part(table, known.dataset_id, like.index)
        except CorruptLakeError:  # of another dataset, which is not asked for
            return None
        return StoredDataset(self._lake, known.dataset_id), like.index

    def note_further(self, name: str, index: int | None) -> None:
        """Part `index` holds what is called so; None: there is nothing of it."""
        files = self._files_of(name)
        self._reading[self._name(name)] = _Reading(files, [] if index is None else [(index, files)])

    def remember(self, dataset_id: str, results: Sequence[ShardResult]) -> None:
        """Keep where the rows of each origin stand now. `results`: of all parts, as they are in the dataset."""
        for name, reading in self._reading.items():
            parts, is_certain = [], reading.files.stands_for(0)
            for index, shard in reading.shards:
                one = results[index]
                is_as_read = one.is_lasting and shard.stands_for(one.n_by_status.get(SampleStatus.MISSING_FILE.value, 0))
                is_certain &= is_as_read
                parts.append(KnownPart(index, dict(one.n_by_status), shard.digest if is_as_read and not one.is_settled else None))
            digest, left = reading.files.digest if is_certain else None, reading.left_out
            known = KnownSource(dataset_id, parts, digest, reading.pictures, [*reading.roles], left)
            write_bytes(zlib.compress(orjson.dumps(asdict(known)), level=1), self._path(name), self._lake.root / "staging")

    def _unchanged(self, origin: Origin) -> KnownSource | None:
        """What is remembered of an origin none of whose files has changed."""
        known = self._remembered(self._name(origin))
        if known is None or known.files is None:
            return None
        files = self._files_of(origin)
        for name in known.pictures:
            files.look(name)
        return known if files.digest == known.files else None

    def _remembered(self, name: str) -> KnownSource | None:
        if name not in self._known:
            known = known_source(self._path(name))
            is_there = known is not None and StoredDataset(self._lake, known.dataset_id).is_whole
            self._known[name] = known if is_there else None
        return self._known[name]

    def _files_of(self, origin: Origin) -> Fingerprint:
        """Of all below the source's folder, or of its file; the pictures that a file names are to be noted one by one."""
        if isinstance(origin, str):
            return Fingerprint(Path(), self._restless_ns)
        files = Fingerprint(origin.root, self._restless_ns)
        if origin.path.is_dir():
            files.note_folder(origin.path)
        else:
            files.note_file(origin.path)
        return files

    def _path(self, name: str) -> Path:
        return self._lake.root / FOLDER / f"{name}.json.z"

    def _name(self, origin: Origin) -> str:
        said: object = origin
        if isinstance(origin, ResolvedSource):
            said = {one.name: _plain(getattr(origin, one.name)) for one in fields(origin)}
        return sha256(json.dumps([self._of_code, said], sort_keys=True).encode()).hexdigest()[:32]


def known_source(path: Path) -> KnownSource | None:
    """What a file of the folder says; None where it is none, or was cut short: the source is read then."""
    try:
        said = orjson.loads(zlib.decompress(content_of(path)))
        parts, roles = [KnownPart(**part) for part in said["parts"]], [(model, name) for model, name in said["roles"]]
        left_out = LeftOut(**said["left_out"]) if said.get("left_out") else None
        return KnownSource(**said | {"parts": parts, "roles": roles, "left_out": left_out})
    except (OSError, ValueError, TypeError, KeyError, zlib.error):
        return None


def forget(lake: Lake) -> None:
    """Let every source be read anew."""
    with store_error(f"deleting what {lake.place} knows of the sources"):
        for path in (lake.root / FOLDER).glob("*.json.z"):
            with own_folder(lake.root, path.parent) as folder:
                remove_in(folder, path.name)


@dataclass(slots=True)
class _Reading:
    """A source as it is read: its files, each shard's index and samples, and the pictures that its file names."""

    files: Fingerprint
    shards: list[tuple[int, Fingerprint]] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    roles: dict[tuple[str, str], None] = field(default_factory=dict)
    left_out: LeftOut | None = None


def _plain(value: Any) -> Any:
    match value:
        case Path():
            return str(value.absolute())
        case frozenset():
            return sorted(value)
        case Mapping():
            return dict(value)
        case _:
            return value
