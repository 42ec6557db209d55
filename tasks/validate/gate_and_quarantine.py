"""The data checks of a run: stored tables in; checks, quarantine and the gate's decision out. This decides; the flow raises."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from schemas.metrics import natural_key
from schemas.statuses.rows import CheckSeverity, CheckStatus
from schemas.tables.stored import CHECKS, QUARANTINE, SAMPLES
from tasks.context import StageContext
from tasks.validate.buckets import PARTITIONS, ROWS_AT_ONCE, dealt
from tasks.validate.expectations import all_checks
from tasks.validate.frames import batches
from tasks.validate.great_expectations import Outcome, evaluate

N_KEYS_SAID = 3

_MADE_ANEW = {
    "samples": "the samples are then read again from their sources",
    "judgements": "the plan is then made again",
    "requests": "the plan is then made again",
    "replies": "the replies are then read again from the ledger; those it holds are not requested again",
    "scores": "the stored replies are then read again, and nothing is sent to a judge",
}

_ONE_MODEL = "judgements.judge_model.is_one_model_in_a_cell"
N_CHECKPOINTS_SAID = 10

_ADVICE = {
    _ONE_MODEL: (
        "The provider changed the model that answers under the judge's name. Name a dated snapshot as the judge's model and run "
        "again: its questions are then asked again, all of that model. If both are the same judge, list their names: "
        "accept_models = […]."
    ),
    "scores.reason.saw_its_input": (
        "Check that the judge's model accepts pictures and that its endpoint passes them on; then give the judge a new name in "
        "the benchmark file, so that its questions are asked again. Or allow more with [gate] max_missing_input."
    ),
}


def decide(
    outcomes: Sequence[Outcome], keys: Mapping[str, Sequence[str]], partitions: Mapping[str, str], mixed: Sequence[str] = ()
) -> tuple[bool, list[str]]:
    """Whether a blocking check failed, and a sentence for each failed check, the blocking ones first.

    `keys` are the failing rows' keys by check, `partitions` the partition key by table, `mixed` checkpoints of several models.
    """
    failed = [outcome for outcome in outcomes if not outcome.is_passed]
    blocking = [outcome for outcome in failed if outcome.check.severity is CheckSeverity.BLOCKING]
    warnings = [outcome for outcome in failed if outcome.check.severity is CheckSeverity.WARNING]
    said = [f"blocked: {_what(outcome, keys)} {_what_to_do(outcome, partitions, mixed)}" for outcome in blocking]
    return bool(blocking), said + [f"warning: {_what(outcome, keys)}" for outcome in warnings]


def _what(outcome: Outcome, keys: Mapping[str, Sequence[str]]) -> str:
    check = outcome.check
    if outcome.error is not None:
        return f"{check.name} could not be evaluated: {outcome.error}."
    if outcome.n_failing == 0:
        return f"{check.name} failed: {check.about}"
    first = keys[check.name][:N_KEYS_SAID]
    rest = ", ..." if outcome.n_failing > len(first) else ""
    rows = f"{outcome.n_failing} of {outcome.n_checked} rows of {check.table}"
    return f"{check.name} failed for {rows} ({', '.join(first)}{rest}): {check.about}"


def _what_to_do(outcome: Outcome, partitions: Mapping[str, str], mixed: Sequence[str]) -> str:
    table = outcome.check.table
    if outcome.check.name == _ONE_MODEL and mixed:
        rest = ", …" if len(mixed) > N_CHECKPOINTS_SAID else ""
        return f"They are of {', '.join(mixed[:N_CHECKPOINTS_SAID])}{rest}. {_ADVICE[_ONE_MODEL]}"
    if outcome.check.name in _ADVICE:
        return _ADVICE[outcome.check.name]
    if outcome.check.is_of_table and table == "samples":
        return "Check that the benchmark file's sources have rows."
    return (
        f"If the stored files were changed, delete complete/{table}/{partitions[table]}.json in the lake and run again: "
        f"{_MADE_ANEW[table]}. If it fails again, the rubric or Salon's code is at fault: the quarantine table lists the rows."
    )


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
    most = context.benchmark.gate.max_missing_input
    with dealt(context.lake, ids, context.rubrics, rows_at_once) as stored:
        found = batches(stored, context.rubrics, _whole_sources(context), context.same_models)
        outcomes = evaluate(found, all_checks(context.rubrics, most), docs_folder)
    keys = {outcome.check.name: [key for _, key in outcome.failing] for outcome in outcomes}
    stored_as = {table.name: ids[key] for table, key in PARTITIONS.items()}
    is_blocked, sentences = decide(outcomes, keys, stored_as, _checkpoints_of(context, keys.get(_ONE_MODEL, [])))
    named = {"publication_id": context.ids.publication_id}
    checks = CHECKS.frame(named | row for row in _checks(outcomes, keys)).sort("check")
    quarantine = QUARANTINE.frame(named | row for row in _quarantine(outcomes, keys)).sort("table_name", "row_key_json", "check")
    return ValidationResult(checks, quarantine, is_blocked, sentences)


def _whole_sources(context: StageContext) -> set[str]:
    """The sources of whose samples each is judged: of a prompt some make a pair, and of a judge's share others are drawn."""
    alone = [rubric.id for rubric in context.rubrics.values() if not rubric.is_of_pairs]
    whole = [one for one in alone if any(judge.share is None for judge in context.judges_for(one))]
    return {source for rubric_id in whole for source in context.sources_for(rubric_id)}


def _checkpoints_of(context: StageContext, keys: Sequence[str]) -> list[str]:
    """The checkpoints of failing judgements, model by model."""
    ids = list({json.loads(key)["sample_id"] for key in keys})
    if not ids:
        return []
    rows = context.lake.scan(SAMPLES, context.ids.dataset_id).filter(pl.col("sample_id").is_in(ids))
    made = rows.select("model", "checkpoint").unique().collect().rows()
    return [f"{model}/{checkpoint}" for model, checkpoint in sorted(made, key=lambda one: (one[0], natural_key(one[1])))]


def _checks(outcomes: Sequence[Outcome], keys: Mapping[str, list[str]]) -> Iterator[dict[str, object]]:
    for outcome in outcomes:
        failing = keys[outcome.check.name]
        yield {
            "check": outcome.check.name, "status": (CheckStatus.PASSED if outcome.is_passed else CheckStatus.FAILED).value,
            "severity": outcome.check.severity.value, "n_checked": outcome.n_checked, "n_failing": outcome.n_failing,
            "failing_keys_json": f"[{','.join(failing)}]" if failing else None,
        }  # fmt: skip


def _quarantine(outcomes: Sequence[Outcome], keys: Mapping[str, list[str]]) -> Iterator[dict[str, object]]:
    """Each failing row once for each check it failed: rows that share a key are one."""
    for outcome in outcomes:
        check = outcome.check
        for key in dict.fromkeys(keys[check.name]):
            yield {"table_name": check.table, "row_key_json": key, "check": check.name, "severity": check.severity.value}
