"""A batch that the provider has: looked at, collected when it has ended, given back where nobody will work on it.

How it came to be there is state_machine.py; what becomes of each line is collect.py.
"""

import uuid
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from schemas.errors import ProviderError
from schemas.statuses import ReplyStatus
from tasks.judge.batch.api import BatchClient
from tasks.judge.batch.backoff import CallFailedError, Patience
from tasks.judge.batch.collect import Collector
from tasks.judge.batch.provider_batch import Seen
from tasks.judge.batch.state import Batch, change, lines_of
from tasks.judge.provider.responses import Answer
from tasks.ledger.ledger import Ledger

N_ABSENT = 3
"""Looks in a row in which the provider does not know a batch, or its results, before that is believed."""


class LostHoldError(Exception):
    """Another process thought this one dead and holds the batch now."""


@dataclass(slots=True)
class Results:
    """What batches at the provider come to. `seen`: the last look at each; `problem`: why the last failed as a whole."""

    ledger: Ledger
    client: BatchClient
    collector: Collector
    patience: Patience
    folder: Path
    seen: dict[str, Seen] = field(default_factory=dict)
    n_absent: Counter[str] = field(default_factory=Counter)
    over_capacity: list[int] = field(default_factory=list)  # lines of batches that failed for being too much at once
    problem: str | None = None

    async def look(self, batch: Batch) -> None:
        """See how far it is; where it has ended, settle its lines."""
        assert batch.provider_id is not None
        try:
            seen = await self.patience.of(partial(self.client.look, batch.provider_id))
        except CallFailedError as error:
            if not error.is_absent:
                raise
            self.n_absent[batch.token] += 1
            if self.n_absent[batch.token] >= N_ABSENT:
                said = f"the provider does not know batch {batch.provider_id} any more; it may have been billed"
                await self._give_up(batch, Answer(ReplyStatus.TIMED_OUT, said))
            return
        self.seen[batch.token] = seen
        if seen.status == "failed":
            self.problem = f"the provider failed batch {seen.provider_id}: {seen.problem}"
            if seen.is_over_capacity:
                self.over_capacity.append(batch.n_lines)
            await self.dissolve(batch, self.problem)
        elif seen.is_ended and seen.n_completed and seen.output_file_id is None:
            self._wait_for_results(batch, seen)
        elif seen.is_ended:
            await self._collect(batch, seen)

    async def dissolve(self, batch: Batch, why: str) -> None:
        """Give the lines of a batch back: nobody has worked on them."""
        await self._give_up(batch, Answer(ReplyStatus.NOT_ASKED, why, is_sent=False))

    async def change(self, batch: Batch, **values: Any) -> None:
        """Change the batch's row. Raises LostHoldError."""
        assert batch.holder_id is not None
        changed = partial(change, token=batch.token, holder_id=batch.holder_id, values=values)
        if not await self.ledger.alone(changed):
            raise LostHoldError

    def _wait_for_results(self, batch: Batch, seen: Seen) -> None:
        """What is answered is paid for: it is not asked again while the provider says that it is there."""
        self.n_absent[batch.token] += 1
        if self.n_absent[batch.token] >= N_ABSENT:
            raise ProviderError(
                f"judge {batch.judge_model} at {batch.endpoint}: batch {seen.provider_id} has {seen.n_completed} replies and "
                "names no file of them; run the same command again later to fetch them"
            )

    async def _collect(self, batch: Batch, seen: Seen) -> None:
        paths = []
        try:
            for file_id in filter(None, (seen.output_file_id, seen.error_file_id)):
                paths.append(self.folder / f"batch-{uuid.uuid4().hex}.jsonl")
                await self._download(file_id, paths[-1])
            is_whole = await self.collector.collect(batch.token, [path for path in paths if path.exists()])
        finally:
            for path in paths:
                path.unlink(missing_ok=True)
        if not is_whole:  # the lines that are left are another run's
            await self.change(batch, holder_id=None)
        if seen.status == "cancelled":
            raise ProviderError(
                f"judge {batch.judge_model} at {batch.endpoint}: batch {seen.provider_id} was cancelled at the provider. What it "
                "had answered is stored; run the same command again to ask the rest"
            )

    async def _download(self, file_id: str, path: Path) -> None:
        try:
            await self.patience.of(partial(self.client.download, file_id, path))
        except CallFailedError as error:
            if not error.is_absent:  # providers delete files after some weeks
                raise

    async def _give_up(self, batch: Batch, answer: Answer) -> None:
        await self.change(batch, detail=(answer.detail or "").encode())
        lines = await self.ledger.alone(partial(lines_of, token=batch.token))
        await self.collector.give_up(batch.token, lines, answer)
