"""The data checks of a run: the stored tables in; checks, quarantine and the gate's decision out. The flow calls validate()."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from schemas.statuses import CheckStatus
from schemas.tables import CHECKS, QUARANTINE
from tasks.context import StageContext
from tasks.validate.buckets import PARTITIONS, ROWS_AT_ONCE, dealt
from tasks.validate.expectations import all_checks
from tasks.validate.frames import batches
from tasks.validate.gate import decide
from tasks.validate.great_expectations import Outcome, evaluate


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """What the checks found. `sentences` are for people: what blocks first, then the warnings."""

    checks: pl.DataFrame  # per CHECKS, one row a check
    quarantine: pl.DataFrame  # per QUARANTINE, one row for each failing row and check, at most 1,000 a check
    is_blocked: bool
    sentences: list[str]


def validate(context: StageContext, docs_folder: Path | None = None, rows_at_once: int = ROWS_AT_ONCE) -> ValidationResult:
    """Check the five stored tables of a run against their schemas, the rubrics and one another, some rows at a time.

    Nothing is changed; Data Docs are written to `docs_folder` where one is given. Raises StoreError where a partition is not
    there and CorruptLakeError where a stored column is not of its declared type.
    """
    ids = {name: getattr(context.ids, name) for name in PARTITIONS.values()}
    run_id = context.ids.publication_id
    with dealt(context.lake, ids, rows_at_once) as stored:
        outcomes = evaluate(batches(stored, context.rubrics), all_checks(context.rubrics), docs_folder)
    keys = {outcome.check.name: [key for _, key in outcome.failing] for outcome in outcomes}
    is_blocked, sentences = decide(outcomes, keys, {table.name: ids[key] for table, key in PARTITIONS.items()})
    return ValidationResult(_checks(outcomes, keys, run_id), _quarantine(outcomes, keys, run_id), is_blocked, sentences)


def _checks(outcomes: Sequence[Outcome], keys: Mapping[str, list[str]], run_id: str) -> pl.DataFrame:
    rows = [
        (
            run_id,
            outcome.check.name,
            (CheckStatus.PASSED if outcome.is_passed else CheckStatus.FAILED).value,
            outcome.check.severity.value,
            outcome.n_checked,
            outcome.n_failing,
            f"[{','.join(keys[outcome.check.name])}]" if keys[outcome.check.name] else None,
        )
        for outcome in outcomes
    ]
    return pl.DataFrame(rows, schema=pl.DataFrame(CHECKS.schema().empty_table()).schema, orient="row").sort("check")


def _quarantine(outcomes: Sequence[Outcome], keys: Mapping[str, list[str]], run_id: str) -> pl.DataFrame:
    """Each failing row once for each check it failed: rows that share a key are one."""
    rows = [
        (run_id, outcome.check.table, key, outcome.check.name, outcome.check.severity.value)
        for outcome in outcomes
        for key in dict.fromkeys(keys[outcome.check.name])
    ]
    frame = pl.DataFrame(rows, schema=pl.DataFrame(QUARANTINE.schema().empty_table()).schema, orient="row")
    return frame.sort("table_name", "row_key_json", "check")
