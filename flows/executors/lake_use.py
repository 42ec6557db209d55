"""A lake that is used is not cleared meanwhile: what every command holds that makes, or looks at, a run's partitions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flows.observability.progress import current
from tasks.context import StageContext

if TYPE_CHECKING:
    from tasks.ledger.process_identity import Process


@contextmanager
def lake_in_use(run: StageContext) -> Iterator[None]:
    """Hold the run's lake against `salon gc`, which is waited for where it clears now. Raises StoreError, StoppedError."""
    from tasks.lake.identity import find_lake_id, lake_to_write
    from tasks.lake.object_store.cache_folder import forget_cleared
    from tasks.lake.reading_through import is_read_only
    from tasks.ledger.mutex import in_use
    from tasks.ledger.open_ledgers import opened

    with opened(run.ledger_url) as ledger:
        # One that has no id yet and takes none, of an earlier release: by its place, as that release does.
        of_lake = (find_lake_id(run.lake.root) or run.lake.place) if is_read_only(run.lake) else lake_to_write(run.lake.root)
        with in_use(ledger, of_lake, _say_who_clears):
            forget_cleared(run.lake.root)
            yield


def _say_who_clears(other: "Process") -> None:
    current().say(f"process {other.pid} is clearing the lake (salon gc); waiting until it has ended")
