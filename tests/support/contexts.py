"""The context a stage is given, of a small benchmark file that names every rubric given. No tests here."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark
from schemas.identities import RunIds
from tasks.context import StageContext
from tasks.lake.reading import Lake


def stage_context(
    lake: Lake, rubrics: Mapping[str, Rubric], ids: RunIds, run_date: date = date(2026, 11, 3), **sections: Any
) -> StageContext:
    """What a stage gets; `sections` stand in the benchmark file in place of these."""
    file = {
        "name": "nightly",
        "sources": [{"reader": "geneval", "path": "outputs"}],
        "rubrics": [{"id": rubric_id} for rubric_id in rubrics],
        "judges": [{"model": "eye-2026-01-01"}],
    }
    return StageContext(Benchmark.model_validate(file | sections), rubrics, lake, "sqlite://", run_date, ids)
