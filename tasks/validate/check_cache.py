"""Checks that passed are not run anew over the very same bytes. What is checked is in gate_and_quarantine.py.

A verdict is named by the partitions, the rubrics, the code with its libraries, and a digest of every byte the checks read. Only
pictures are left out, which no check looks at: a file that was changed on the disk since has another name, and is checked.
"""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import polars as pl

from schemas.tables.stored import CHECKS, QUARANTINE, SAMPLES
from schemas.tables.table import Table
from tasks.context import StageContext
from tasks.lake.atomic_files import sha256_of_file, sha256_without_pictures, write_bytes
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.regular_files import content_of
from tasks.stopping import check_not_stopped
from tasks.validate.buckets import PARTITIONS
from tasks.validate.data_docs import make_self_contained
from tasks.validate.gate_and_quarantine import ValidationResult, validate
from tasks.validate.great_expectations import put_in_place, share_static

_LIBRARIES = ("great-expectations", "pandas", "polars", "pyarrow")


def docs_folder(context: StageContext) -> Path:
    """Where the Data Docs of a publication's checks stand."""
    return context.lake.root / "data_docs" / context.ids.publication_id


def checked(context: StageContext) -> ValidationResult:
    """validate(), or what it found of the same bytes for another run; checks and quarantine are kept in the lake either way.

    Data Docs are written where the checks run. Only a verdict that lets a run publish is found again.
    """
    lake, docs = context.lake, docs_folder(context)
    note = lake.root / "verdicts" / f"{_verdict_id(context)}.json"
    result = _found(lake, note, context.ids.publication_id)
    if result is None:
        with put_in_place(docs, lake.root) as written:
            result = validate(context, written)
            make_self_contained(written)
            share_static(written, docs.parent / "static")
    check_id = _kept(lake, result)
    if not result.is_blocked:
        said = {"check_id": check_id, "sentences": result.sentences}
        write_bytes(json.dumps(said).encode(), note, lake.root / "staging")
    return result


def _found(lake: Lake, note: Path, publication_id: str) -> ValidationResult | None:
    """The verdict noted, as this run's. A note that cannot be read is no note."""
    try:
        said = json.loads(content_of(note))
        check_id, sentences = str(said["check_id"]), [str(one) for one in said["sentences"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not all(lake.is_complete(table, check_id) for table in (CHECKS, QUARANTINE)):
        return None
    checks, quarantine = (
        lake.scan(table, check_id).with_columns(publication_id=pl.lit(publication_id)).collect() for table in (CHECKS, QUARANTINE)
    )
    return ValidationResult(checks, quarantine, is_blocked=False, sentences=sentences)


def _kept(lake: Lake, result: ValidationResult) -> str:
    """Store checks and quarantine in the lake, also of a run that publishes nothing; their check_id."""
    content = result.checks.write_json() + result.quarantine.write_json()
    key = hashlib.sha256(content.encode()).hexdigest()
    for table, frame in ((CHECKS, result.checks), (QUARANTINE, result.quarantine)):
        staging = stage(lake, table)
        staging.write_part(0, frame)
        staging.commit(key, [0])
    return key


def _verdict_id(context: StageContext) -> str:
    keys = {name: getattr(context.ids, name) for name in PARTITIONS.values()}
    named = {
        **keys,
        "code_version": context.ids.code_version,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "rubrics": {rubric.id: rubric.digest for rubric in context.rubrics.values()},
        "same_models": context.same_models,
        "max_missing_input": context.benchmark.gate.max_missing_input,
        "files": {table.name: _content(context.lake, table, keys[name]) for table, name in PARTITIONS.items()},
    }
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()


def _content(lake: Lake, table: Table, key: str) -> str:
    """sha256 over the parts as they are on the disk now: 0.6 s for each GB."""
    digest_of = sha256_without_pictures if table is SAMPLES else sha256_of_file
    digest = hashlib.sha256()
    for path in lake.parts_without_pictures(table, key):
        check_not_stopped()
        digest.update(f"{path.name} {digest_of(path)}\n".encode())
    return digest.hexdigest()
