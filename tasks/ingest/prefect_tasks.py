"""The Prefect task of ingest: one shard of samples opened and written. The work is in samples.py."""

from pathlib import Path

from prefect import task

from schemas.records import Sample
from tasks.ingest.samples import ShardResult, open_and_write_shard
from tasks.lake.writing import Staging
from tasks.prefect_options import OPTIONS


class SampleList:
    """A shard's samples, opaque to Prefect, which would otherwise look into every one of them."""

    def __init__(self, samples: list[Sample]) -> None:
        self.samples = samples

    @property
    def has_pictures(self) -> bool:
        """Whether the samples carry their pictures' bytes: too much to send to another process."""
        return any(sample.image_bytes is not None for sample in self.samples)


@task(name="open samples", task_run_name="open samples, shard {index}", **OPTIONS)
def open_samples(staging: Staging, index: int, samples: SampleList, root: Path) -> ShardResult:
    """Open a shard's pictures and write it."""
    return open_and_write_shard(staging, index, samples.samples, root)
