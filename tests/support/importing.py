"""A planned benchmark of recorded replies, for tests of what is imported into it."""

import json
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark
from schemas.identities import RunIds
from tasks.context import StageContext
from tasks.lake.reading import Lake
from tasks.ledger.import_replies.importing import ImportResult, check_importable, import_replies
from tasks.ledger.ledger import Ledger


@dataclass
class Import:
    """A planned benchmark of recorded replies, and the file that is imported into it."""

    lake: Lake
    dataset_id: str
    requests: pl.DataFrame
    judgements: pl.DataFrame
    ledger: Ledger
    path: Path
    benchmark: dict[str, Any]
    rubrics: dict[str, Rubric] = field(default_factory=dict)
    plan_id: str = "2" * 64

    def __call__(self, rows: list[dict[str, Any]] | str, name: str = "replies.jsonl", **recorded: Any) -> ImportResult:
        file = self.path / name
        text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
        file.write_text(text, encoding="utf-8")
        return self.of(file, **recorded)

    def of(self, file: Path, **recorded: Any) -> ImportResult:
        ids = RunIds(dataset_id=self.dataset_id, plan_id=self.plan_id)
        benchmark = Benchmark.model_validate(self.benchmark | {"recorded": recorded})
        check_importable(benchmark, self.rubrics, file)
        return import_replies(
            StageContext(benchmark, self.rubrics, self.lake, "sqlite://", date(2026, 11, 3), ids), self.ledger, file
        )

    def texts(self) -> dict[int, str | None]:
        """Stored reply texts by the sample's place."""
        stored = dict(self.ledger.replies(self.requests["request_key"]).select("request_key", "reply_text").iter_rows())
        return {index: stored[key] for index, key in enumerate(self.judgements["request_key"]) if key in stored}
