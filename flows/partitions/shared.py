"""Questions that several checkpoints of a backfill share, as of one picture under one prompt: asked once, and so counted once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from flows.run.context import RunContext
from flows.run.judging import asked_parts
from schemas.records import PlannedPart
from tasks.ledger.open_ledgers import opened


@dataclass(slots=True)
class AskedBefore:
    """The request keys of the checkpoints so far, hashed: 8 bytes each."""

    _seen: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def shared_by(self, run: RunContext, parts: Sequence[PlannedPart]) -> dict[tuple[str, str], int]:
        """By (rubric, judge), how many of these requests are left to ask and were met before; all of them are met now."""
        found, met = Counter[tuple[str, str]](), [self._seen]
        with opened(run.ledger_url) as ledger:
            for part in asked_parts(run, parts):
                keys = run.request_keys(part).unique()
                hashes = keys.hash().to_numpy()
                met.append(hashes)
                again = keys.filter(np.isin(hashes, self._seen))
                if len(again):
                    known = ledger.known(again)
                    found[part.rubric_id, part.judge_model] += len(again) - len(known) + len(ledger.reasks_due(known))
        self._seen = np.unique(np.concatenate(met))
        return dict(found)
