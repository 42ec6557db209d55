"""Ingest as a whole: sources -> shards -> parts of the samples table -> one committed dataset. No Prefect: flows wrap these.

A flow runs find_shards() in order, open_and_write_shard() for each (in threads, in any order, again after a failure),
and finish() at the end.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from schemas.benchmark.file import Benchmark
from schemas.errors import SourceError
from schemas.identities import RunIds
from schemas.records import Sample
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import SAMPLES
from tasks.ingest.identity import dataset_id, packed
from tasks.ingest.known_sources import KnownPart, KnownSources, Origin
from tasks.ingest.parts import ShardResult, commit, settle_pictures, settled, take_part, write_part
from tasks.ingest.paths import quote
from tasks.ingest.readers import read, unreadable
from tasks.ingest.shards import OpenedShard, shards
from tasks.ingest.sources import ResolvedSource, expand, no_rows
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging

N_TOLD = 20
"""Of further sources that cannot be read."""


class SampleList:
    """A shard's samples, opaque to Prefect, which would otherwise look into every one of them."""

    def __init__(self, samples: list[Sample]) -> None:
        self.samples = samples

    @property
    def has_pictures(self) -> bool:
        """Whether the samples carry their pictures' bytes: too much to send to another process."""
        return any(picture.content is not None for sample in self.samples for picture in sample.pictures)


@dataclass(frozen=True, slots=True)
class OpenShard:
    """Some samples of one folder, in order, to be opened and made part `index` of what is staged.

    `part`: where they were made before, (dataset, index).
    """

    staging: Staging
    index: int
    samples: SampleList
    root: Path
    part: tuple[StoredDataset, int] | None = None


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The dataset that stands in the lake. `left_out`: what of its sources' files is not read, by the source's name."""

    dataset_id: str
    n_samples: int
    n_ok: int
    n_by_status: dict[str, int]
    n_parts: int
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """The same as sentences."""
        return [f"source {quote(name)}: {what}" for name, what in self.left_out.items()]


def find_shards(
    benchmark: Benchmark,
    staging: Staging,
    checkpoints: Collection[str] | None = None,
    known: KnownSources | None = None,
    own_texts: Sequence[str] = (),
) -> Iterator[OpenShard]:
    """The benchmark's samples in shards of `limits.shard_size`, lazily, sources in order; a shard has one folder.

    Of those that are known the part is given too. Raises SourceError as reading goes on, which names every source that cannot be
    read, and at its end where a source had no row (where only some checkpoints are wanted: where all had none).
    """
    known = known or KnownSources(staging.lake, RunIds(), 0)
    index = itertools.count()
    n_rows: Counter[str] = Counter()
    sources = expand(benchmark, own_texts, checkpoints)
    for number, source in enumerate(sources, 1):
        n_rows[source.name] += 0
        known.begin(source)
        try:
            for samples in shards(read(source), benchmark.limits.shard_size):
                n_rows[source.name] += len(samples)
                place = next(index)
                part = known.part_like(source, samples, place)
                yield OpenShard(staging, place, SampleList(samples if part is None else []), source.root, part)
        except SourceError as error:
            raise _with_all_others(error, sources[number:]) from error
        known.end(source)
    empty = [name for name, n in n_rows.items() if not n]
    # Of some checkpoints alone a source may well have nothing; of all of them, an empty source is a mistake.
    if empty and (checkpoints is None or len(empty) == len(n_rows)):
        raise no_rows(benchmark, empty[0], checkpoints, known.left_out().get(empty[0]))


def _with_all_others(first: SourceError, behind: Sequence[ResolvedSource]) -> SourceError:
    """What the first source that cannot be read says, and those behind it: folders are mended together."""
    others = [str(error) for _, error in unreadable(behind)]
    more = f"\n  and {len(others) - N_TOLD} more" if len(others) > N_TOLD else ""
    return SourceError("\n  ".join([str(first), *others[:N_TOLD]]) + more) if others else first


def open_and_write_shard(shard: OpenShard) -> ShardResult:
    """Open a shard's pictures and make it a part, durably. Run again it writes the same part anew."""
    if shard.part is not None:
        return take_part(shard.staging, shard.index, *shard.part)
    opened = OpenedShard(shard.samples.samples, shard.root)
    return write_part(shard.staging, shard.index, opened.pictures(), opened.rows)


def finish(staging: Staging, results: Sequence[ShardResult], known: KnownSources | None = None) -> IngestResult:
    """Settle across the staged parts what several hold, name the dataset by its content and commit it.

    Only parts that hold what an earlier one holds are read: no other picture comes to this machine. Raises StoreError where one
    of the parts is not staged.
    """
    if not results:
        raise SourceError("the dataset is empty: no source has any rows")
    ordered = sorted(results, key=lambda one: one.index)
    settle_pictures(staging, ordered)
    found = settled(staging, ordered)
    key = dataset_id([one.ids for one in found], sum(one.of_sources for one in found))
    is_new = not staging.lake.is_complete(SAMPLES, key)
    commit(staging, key, len(results))
    if known is not None and (is_new or _is_same(staging.lake, key, found)):
        known.remember(key, found)
    return _result(key, found, known.left_out() if known is not None else {})


def find_dataset(
    benchmark: Benchmark,
    known: KnownSources,
    checkpoints: Collection[str] | None = None,
    further: Sequence[str] = (),
    own_texts: Sequence[str] = (),
) -> IngestResult | None:
    """The dataset of these sources, where it stands in the lake and none of their files has changed since.

    `further`: names of what else stands in it, anchors and twins, which say all of their content.
    """
    origins: list[Origin] = [*expand(benchmark, own_texts, checkpoints), *further]
    found = known.dataset_of(origins)
    return None if found is None else _result(*found, known.left_out(origins))


def _result(key: str, parts: Sequence[ShardResult | KnownPart], left_out: Mapping[str, str]) -> IngestResult:
    counts: Counter[str] = Counter()
    for one in parts:
        counts.update(one.n_by_status)
    return IngestResult(key, counts.total(), counts[SampleStatus.OK.value], dict(sorted(counts.items())), len(parts), left_out)


def _is_same(lake: Lake, key: str, parts: Sequence[ShardResult]) -> bool:
    """Whether the dataset, which stood there before, has the same rows in the same parts: others may have been cut otherwise."""
    if lake.n_parts(SAMPLES, key) != len(parts):
        return False
    return all(packed(lake.read_part(SAMPLES, key, one.index, ["sample_id"])["sample_id"]) == one.ids for one in parts)
