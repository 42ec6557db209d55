"""The files of results of a batch that has ended: fetched, and held against what the provider counts before they are believed.

When a batch is looked at is state_machine.py, what comes of its lines collect.py.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from schemas.errors import ProviderError
from tasks.judge.batch.absence import N_ABSENT, Absences
from tasks.judge.batch.collect import NEVER_CAME, Collector
from tasks.judge.batch.state import Batch
from tasks.judge.provider.batch_api import BatchApi, CallFailedError, ProviderBatch
from tasks.judge.provider.exchange import Ended
from tasks.judge.retries import CallBackoff
from tasks.ledger.statements import now_us

_NO_FILE_S = 2 * 86_400
"""After a batch was handed over, a file of replies that are there is looked for so long; then it holds up no run any more."""


@dataclass(slots=True)
class ResultFiles:
    """Fetches results, and has what came of our lines stored. Lines that never came are given up after N_ABSENT looks.

    Where a file of them is not known, that must stay so for as long as `absent` says.
    """

    api: BatchApi
    collector: Collector
    backoff: CallBackoff
    folder: Path
    absent: Absences
    _n_short: Counter[str] = field(default_factory=Counter)

    async def collect(self, batch: Batch, seen: ProviderBatch) -> bool:
        """Store what came. False where more may come: results that are paid for are looked for again, not bought again.

        Raises CallFailedError, ProviderError, StoreError.
        """
        if seen.n_completed and seen.output_file_id is None and await self._is_waited_for(batch, seen, "no file with them"):
            return False
        counted = _counted(batch, seen)
        paths = [self.folder / f"batch-{uuid.uuid4().hex}.jsonl" for _ in counted]
        told: list[set[str]] = [set() for _ in counted]
        try:
            are_there = [await self._download(file_id, path) for (file_id, _), path in zip(counted, paths, strict=True)]
            lines = (
                _noted(self.api.results(path), names, n)
                for path, names, (_, n) in zip(paths, told, counted, strict=True)
                if path.exists()
            )
            missing = await self.collector.collect(batch.token, chain.from_iterable(lines))
        finally:
            for path in paths:
                path.unlink(missing_ok=True)
        has_none = bool(missing and all(are_there) and seen.n_completed and not any(told))  # a page of a gateway's, or nothing
        if has_none and await self._is_waited_for(batch, seen, "a file that holds none of them"):
            return False
        are_whole = all(are_there) and all(len(names) >= n for names, (_, n) in zip(told, counted, strict=True))
        if missing and not (counted and are_whole):
            self._n_short[batch.token] += 1
            if all(are_there):
                self.absent.forget(batch.token)
            elif self.absent.add(batch.token) == 2:
                self.absent.say_missing(batch)
            is_over = all(are_there) or self.absent.is_believed(batch.token)
            if self._n_short[batch.token] < N_ABSENT or not is_over:
                return False
        await self.collector.give_up(batch.token, missing, NEVER_CAME)
        return True

    async def _is_waited_for(self, batch: Batch, seen: ProviderBatch, there_is: str) -> bool:
        """What is answered is paid for: it is not asked again at once while the provider says that it is there."""
        if await self.collector.ledger.look(now_us) - batch.intended_at_us > _NO_FILE_S * 1_000_000:
            return False
        self._n_short[batch.token] += 1
        if self._n_short[batch.token] >= N_ABSENT:
            raise ProviderError(
                f"judge {batch.judge_model} at {batch.endpoint}: batch {seen.provider_id} has {seen.n_completed} replies but "
                f"{there_is}; run the same command again later to fetch them. Two days after it was handed over it is "
                "given up, and its requests are asked again"
            )
        return True

    async def _download(self, file_id: str, path: Path) -> bool:
        """False where the provider does not have the file: it deletes them after some weeks."""
        try:
            await self.backoff.until_done(partial(self.api.download, file_id, path))
        except CallFailedError as error:
            if not error.is_absent:
                raise
            return False
        return True


def _counted(batch: Batch, seen: ProviderBatch) -> list[tuple[str, int]]:
    """The files there are, and how many lines each holds as the provider counts: what it answered, and the rest."""
    n_done = min(seen.n_done, batch.n_lines)
    if seen.output_file_id is not None and seen.error_file_id is not None:
        n_completed = min(seen.n_completed, n_done)
        return [(seen.output_file_id, n_completed), (seen.error_file_id, n_done - n_completed)]
    return [(file_id, n_done) for file_id in (seen.output_file_id, seen.error_file_id) if file_id is not None]


def _noted(results: Iterable[tuple[str, Ended]], names: set[str], n_most: int) -> Iterator[tuple[str, Ended]]:
    """The results, while up to so many of their names are noted: a line that stands there twice is one."""
    for name, ended in results:
        if len(names) < n_most:
            names.add(name)
        yield name, ended
