"""What a run did, as commands, artifacts and events tell it. How it did it is flows/run/."""

from dataclasses import dataclass

import polars as pl

from schemas.statuses import CellStatus
from tasks.ingest.samples import IngestResult
from tasks.judge.outcome import Outcome
from tasks.ledger.import_replies.importing import ImportResult
from tasks.publish.folders import Published


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run did: what it read, what it asked, what it published."""

    dataset: IngestResult
    n_requests: int
    asked: Outcome
    published: Published
    cells: pl.DataFrame  # means for prompts like these
    imported: ImportResult | None = None

    @property
    def n_cells(self) -> int:
        """Cells of the headline."""
        return self.cells.height

    @property
    def n_blocked(self) -> int:
        """Cells without a figure because too much is missing."""
        return self.cells.filter(pl.col("status") == CellStatus.BLOCKED).height

    @property
    def outcome(self) -> str:
        """The run's word in the table of runs."""
        return "published" if self.published.is_new else "unchanged"
