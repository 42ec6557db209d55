"""Questions that several checkpoints of a backfill share, as of one picture under one prompt: asked once, and so counted once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from flows.run.context import RunContext
from flows.run.judging import asked_parts
from schemas.records import PlannedPart
from tasks.ledger.open_ledgers import opened


@dataclass(slots=True)
class RequestsMet:
    """The request keys of the checkpoints so far, hashed: 8 bytes each. No key stands in two parts of one plan."""

    _seen: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self._seen)

    def meet(self, keys: pl.Series) -> npt.NDArray[np.bool_]:
        """Which of these distinct keys are met for the first time; all of them are met now."""
        hashes = keys.hash().to_numpy()
        are_new = ~np.isin(hashes, self._seen)
        self._seen = np.union1d(self._seen, hashes)
        return are_new

    def shared_by(self, run: RunContext, parts: Sequence[PlannedPart]) -> dict[tuple[str, str], int]:
        """By (rubric, judge), how many of these requests are left to ask and were met before; all of them are met now."""
        found = Counter[tuple[str, str]]()
        with opened(run.ledger_url) as ledger:
            for part in asked_parts(run, parts):
                keys = run.request_keys(part).unique()
                again = keys.filter(~self.meet(keys))
                if len(again):
                    known = ledger.known(again)
                    found[part.rubric_id, part.judge_model] += len(again) - len(known) + len(ledger.reasks_due(known))
        return dict(found)
