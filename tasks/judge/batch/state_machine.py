"""The steps of one batch, from a declared file to the provider. Each is durable before the next begins, so any process goes on.

    intended --upload--> uploaded --> creating --create--> live --collect--> ended

Behind a kill or a lost reply stands a question, and the provider is asked it before anything is done again: for a file by its
name, for a batch by the token in its metadata. What comes of a live batch is results.py.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from schemas.errors import InputError
from schemas.statuses import ReplyStatus
from tasks.judge.batch.api import BatchClient
from tasks.judge.batch.backoff import BatchRules, CallFailedError, Patience
from tasks.judge.batch.provider_batch import Seen
from tasks.judge.batch.results import LostHoldError, Results
from tasks.judge.batch.state import Batch, BatchState, batch_of
from tasks.judge.provider.client import is_loopback
from tasks.judge.retries import RETRIES
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import now_us

N_CREATIONS = 3
"""Creations of one batch without a word from the provider, after which the run gives up."""
_CLOCKS_DIFFER_S = 3600


@dataclass(slots=True)
class Steps:
    """Does the next step of batches this process holds. `files`: those on this disk, by token.

    Without `is_asking`, a batch that the provider does not have yet is given back.
    """

    ledger: Ledger
    client: BatchClient
    results: Results
    rules: BatchRules
    patience: Patience
    is_asking: bool = True
    files: dict[str, Path] = field(default_factory=dict)
    n_refused: Counter[str] = field(default_factory=Counter)

    async def step(self, batch: Batch) -> None:
        """One step of a batch that is held. Raises CallFailedError, LostHoldError, ProviderError, InputError, StoreError."""
        self._check_is_ours(batch)
        match batch.state:
            case BatchState.INTENDED:
                await self._upload(batch)
            case BatchState.UPLOADED:
                await self._create(batch)
            case BatchState.CREATING:
                await self._find(batch)
            case _:
                await self.results.look(batch)

    def _check_is_ours(self, batch: Batch) -> None:
        """Refuse a batch that was handed to another endpoint or account: it cannot be asked about from here."""
        judge = self.client.judge
        was_here = is_loopback(judge.model_copy(update={"base_url": batch.endpoint})) and is_loopback(judge)
        if (batch.endpoint != self.client.endpoint and not was_here) or batch.api_key_env != judge.api_key_env:
            raise InputError(
                f"{batch.n_lines} requests of {batch.judge_model} are in a batch at {batch.endpoint} with the key of "
                f"{batch.api_key_env}, and the benchmark asks {self.client.endpoint} with the key of {judge.api_key_env}; "
                "set base_url and api_key_env back, so that what was paid for can be fetched"
            )

    async def _upload(self, batch: Batch) -> None:
        path = self.files.get(batch.token)
        if path is None:  # the process that wrote it is gone
            file_id = await self.patience.of(partial(self.client.find_file, batch.file_name, batch.n_bytes))
        else:
            file_id = await self.patience.of(partial(self._send, path, batch))
        if file_id is None:
            await self.results.dissolve(batch, "the process stopped before its file was uploaded")
        else:
            await self.results.change(batch, state=BatchState.UPLOADED.value, file_id=file_id)

    async def _send(self, path: Path, batch: Batch) -> str:
        try:
            return await self.client.upload(path, batch.file_name, batch.n_bytes)
        except CallFailedError as error:
            if error.is_unsupported:
                await self.results.dissolve(batch, "the endpoint has no Batch API")
                raise InputError(
                    f"judge {batch.judge_model}: {batch.endpoint} has no Batch API ({error.answer.detail}); "
                    'set mode = "online", or "auto" to use one where there is one'
                ) from error
            found = await self.client.find_file(batch.file_name, batch.n_bytes) if error.may_have_worked else None
            if found is None:
                raise
            return found

    async def _create(self, batch: Batch) -> None:
        assert batch.file_id is not None
        if not self.is_asking:
            await self.results.dissolve(batch, "the process stopped before its batch was created")
            return
        sent_at_us = await self.ledger.alone(now_us)
        await self.results.change(batch, state=BatchState.CREATING.value, create_sent_at_us=sent_at_us)
        try:
            seen = await self.client.create(batch.file_id, batch.token)
        except CallFailedError as error:
            await self._not_created(batch, error)
            return
        try:
            await self._adopt(batch, seen)
        except LostHoldError:  # this process was thought dead in between: another may have created the batch once more
            now = await self.ledger.alone(partial(batch_of, token=batch.token))
            if now is not None and now.provider_id not in (None, seen.provider_id):
                await self._cancel(seen)
            raise

    async def _not_created(self, batch: Batch, error: CallFailedError) -> None:
        """Go on after a creation that failed: look for the batch, try again after a wait, or give its lines back."""
        self.n_refused[batch.token] += 1
        n_tried, retry = self.n_refused[batch.token], RETRIES.get(error.answer.status)
        if error.may_have_worked:
            if n_tried >= N_CREATIONS:
                raise error
            return  # the next step looks for it
        if error.is_absent or error.answer.status in (ReplyStatus.REJECTED, ReplyStatus.FILTERED):
            self.results.problem = f"the provider refused to create a batch: {error.answer.detail}"
            await self.results.dissolve(batch, self.results.problem)
            return
        await self.results.change(batch, state=BatchState.UPLOADED.value)
        if retry is None or n_tried >= retry.n_attempts:
            raise error
        await asyncio.sleep((error.answer.retry_after_s or 0.0) + retry.wait_s(n_tried))

    async def _find(self, batch: Batch) -> None:
        """Look for a batch that may have been created; where it never was, and cannot be under way, create it."""
        since_s = batch.intended_at_us // 1_000_000 - _CLOCKS_DIFFER_S
        found = await self.patience.of(partial(self.client.find, batch.token, since_s))
        if found:
            await self._adopt(batch, found[0])
            for more in found[1:]:
                await self._cancel(more)
        elif await self.ledger.alone(now_us) - (batch.create_sent_at_us or 0) > self.rules.settle_s * 1e6:
            await self.results.change(batch, state=BatchState.UPLOADED.value)

    async def _adopt(self, batch: Batch, seen: Seen) -> None:
        self.results.seen[batch.token] = seen
        await self.results.change(batch, state=BatchState.LIVE.value, provider_id=seen.provider_id)

    async def _cancel(self, seen: Seen) -> None:
        with suppress(CallFailedError):
            await self.client.cancel(seen.provider_id)
