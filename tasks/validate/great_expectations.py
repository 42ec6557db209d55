"""Great Expectations at work: checks run on frames, failing rows by number, Data Docs. It is imported here alone (5 CPU s)."""

import filecmp
import logging
import os
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from schemas.statuses.rows import CheckSeverity
from tasks.lake.atomic_files import locked, place_folder, scratch, store_error
from tasks.stopping import check_not_stopped, import_heeding
from tasks.validate.buckets import ROW
from tasks.validate.data_docs import build_pages
from tasks.validate.expectations import Check
from tasks.validate.frames import Batch

MAX_FAILING_ROWS = 1_000  # rows of one check that are reported by key; all are counted

_MARKUP = {ord(character): f"%{ord(character):02X}" for character in "%&<>\"'$`"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one check ended on a whole table, or on a batch of it.

    `failing` are numbers and keys of failing rows in the table's order, none where it passed although `n_failing` did fail;
    `error` is set where the check itself broke.
    """

    check: Check
    is_passed: bool
    n_checked: int
    n_failing: int
    failing: tuple[tuple[int, str], ...] = ()
    error: str | None = None


def evaluate(batches: Iterable[Batch], checks: Sequence[Check], docs_folder: Path | None) -> list[Outcome]:
    """Run every check on its table's batches: one outcome for each, in order. Writes Data Docs where a folder is given.

    Raises StoppedError, and OSError where a page cannot be written.
    """
    found: dict[str, list[Outcome]] = {check.name: [] for check in checks}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns of what it imports itself
        context = _context(docs_folder)
        definitions: dict[str, Any] = {}
        for batch in batches:
            check_not_stopped()
            table = batch.table.name
            mine = [check for check in checks if check.table == table]
            if table not in definitions:
                definitions[table] = _definition(context, table, mine)
            for outcome in _run(context, definitions[table], batch, mine):
                found[outcome.check.name].append(outcome)
        check_not_stopped()
        if docs_folder is not None:
            build_pages(context)
            check_not_stopped()
    return [_merged(check, found[check.name]) for check in checks]


def _context(docs_folder: Path | None) -> Any:
    """An ephemeral context: nothing on disk, no telemetry, no progress bars. Great Expectations is imported here."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import_heeding("great_expectations")
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(enable=False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    context.data_sources.add_pandas("lake")
    if docs_folder is not None:
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs_folder.resolve())}
        site = {
            "class_name": "SiteBuilder",
            "store_backend": store,
            "show_how_to_buttons": False,
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        }
        for name in list(context.get_site_names()):
            context.delete_data_docs_site(name)
        context.add_data_docs_site("data_docs", site)
    return context


def _definition(context: Any, table: str, checks: Sequence[Check]) -> Any:
    """One suite for the table, to be run on each of its batches."""
    import great_expectations as gx

    suite = context.suites.add(gx.ExpectationSuite(name=table, expectations=[_expectation(check) for check in checks]))
    asset = context.data_sources.get("lake").add_dataframe_asset(table)
    data = asset.add_batch_definition_whole_dataframe("rows")
    return context.validation_definitions.add(gx.ValidationDefinition(name=table, data=data, suite=suite))


def _run(context: Any, definition: Any, batch: Batch, checks: Sequence[Check]) -> Iterator[Outcome]:
    by_name = {check.name: check for check in checks}
    # Integers and flags with nulls stay exact as objects; plain pandas would make floats of them.
    shown = _presented(batch.frame, checks).to_arrow()
    rows = shown.to_pandas(integer_object_nulls=True, self_destruct=True).set_index(ROW).rename_axis(None)
    del shown
    result = _result(context, definition, {"dataframe": rows})
    for one in result.results:
        yield _outcome(by_name[one.expectation_config.meta["check"]], one, batch)


def _result(context: Any, definition: Any, rows: Mapping[str, Any]) -> Any:
    """Counts alone where all pass, at half the price; where one fails, its rows too, and that result alone is kept."""
    before = set(context.validation_results_store.list_keys())
    counted = definition.run(batch_parameters=rows, result_format={"result_format": "BASIC", "partial_unexpected_count": 0})
    if counted.success:
        return counted
    for key in set(context.validation_results_store.list_keys()) - before:
        context.validation_results_store.remove_key(key)
    # Failing rows come by the frame's unnamed index: a named one costs 20 µs a failing row, half a minute where all of 1M fail.
    return definition.run(
        batch_parameters=rows, result_format={"result_format": "SUMMARY", "partial_unexpected_count": MAX_FAILING_ROWS}
    )


def _expectation(check: Check) -> Any:
    import great_expectations.expectations as gxe

    arguments: dict[str, Any] = dict(check.arguments)
    if "value_set" in arguments:
        arguments["value_set"] = [plain(value) if isinstance(value, str) else value for value in arguments["value_set"]]
    if "column_list" in arguments:
        arguments["column_list"] = list(arguments["column_list"])
    severity = "critical" if check.severity is CheckSeverity.BLOCKING else "warning"
    kind = getattr(gxe, check.expectation)
    return kind(**arguments, severity=severity, notes=plain(check.about), meta={"check": plain(check.name)})


def plain(text: str) -> str:
    """The text with markup percent-encoded: Data Docs (1.24) show failing values unescaped. Different texts stay different."""
    return text.translate(_MARKUP)


def _presented(frame: pl.DataFrame, checks: Sequence[Check]) -> pl.DataFrame:
    """The columns the checks read, and the row's number. A column only asked for nulls goes as 1 or null: its texts stay here."""
    nulls_only = {column for check in checks if check.expectation == "ExpectColumnValuesToNotBeNull" for column in check.columns}
    read = {column for check in checks if check.expectation != "ExpectColumnValuesToNotBeNull" for column in check.columns}
    columns = [_shown(frame, name) for name in sorted(read)]
    columns += [pl.when(pl.col(name).is_not_null()).then(1).alias(name) for name in sorted(nulls_only - read)]
    return frame.select(ROW, *columns)


def _shown(frame: pl.DataFrame, name: str) -> pl.Expr:
    column = pl.col(name)
    if frame.schema[name] != pl.String:
        return column
    return column.str.replace_many([chr(code) for code in _MARKUP], list(_MARKUP.values()))


def _outcome(check: Check, one: Any, batch: Batch) -> Outcome:
    result, n_rows = one.result, batch.frame.height
    error = _error(one.exception_info)
    if error is not None:
        return Outcome(check, is_passed=False, n_checked=n_rows, n_failing=0, error=error)
    rows = [int(row) for row in result.get("partial_unexpected_index_list") or ()]
    n_checked = n_rows - int(result.get("missing_count") or 0)
    n_failing = int(result.get("unexpected_count") or 0)
    return Outcome(check, is_passed=bool(one.success), n_checked=n_checked, n_failing=n_failing, failing=_keys(batch, rows))


def _keys(batch: Batch, rows: Sequence[int]) -> tuple[tuple[int, str], ...]:
    """The rows' numbers and keys, canonical JSON, in the table's order."""
    if not rows:
        return ()
    found = batch.frame.filter(pl.col(ROW).is_in(rows)).select(ROW, *batch.table.key)
    keys = (orjson.dumps(row, option=orjson.OPT_SORT_KEYS).decode() for row in found.drop(ROW).iter_rows(named=True))
    return tuple(zip(found[ROW], keys, strict=True))


def _error(info: Mapping[str, Any]) -> str | None:
    """The exception an expectation ended with, in one line. Its details stand at the top, or under each metric that raised."""
    for details in (info, *info.values()):
        if isinstance(details, Mapping) and details.get("raised_exception"):
            return " ".join(str(details.get("exception_message")).split())
    return None


def _merged(check: Check, outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome of a table's batches. A check that did not run did not pass."""
    if not outcomes:
        return Outcome(check, is_passed=False, n_checked=0, n_failing=0, error="Great Expectations gave no result for it")
    together = any if check.is_of_table else all
    error = next((outcome.error for outcome in outcomes if outcome.error), None)
    n_checked, n_failing = sum(outcome.n_checked for outcome in outcomes), sum(outcome.n_failing for outcome in outcomes)
    is_rare = n_failing <= max(check.n_allowed, check.share_allowed * n_checked) and (check.n_allowed or check.share_allowed)
    is_passed = error is None and (bool(is_rare) or together(outcome.is_passed for outcome in outcomes))
    failing = sorted(row for outcome in outcomes for row in outcome.failing)[:MAX_FAILING_ROWS]
    return Outcome(
        check,
        is_passed=is_passed,
        n_checked=n_checked,
        n_failing=n_failing,
        failing=() if is_passed else tuple(failing),
        error=error,
    )


@contextmanager
def put_in_place(folder: Path, lake_root: Path) -> Iterator[Path]:
    """Where to write pages that take the place of `folder` when the block ends.

    The library empties a folder before it writes there, and runs of the same replies may write the same one at once.
    Raises StoreError.
    """
    with scratch(lake_root, "data_docs") as written, store_error(f"writing {folder}"):
        yield written
        with locked(lake_root, f"data_docs-{folder.name}"):
            place_folder(written, folder)


def share_static(folder: Path, shared: Path) -> None:
    """Make the fonts and pictures below `folder/static` links to those below `shared`, where they are the same.

    They are 20 of a run's 31 files and 4 of its 4.5 MB. The first run's become the shared ones; on a file system without links,
    or where another version of the library wrote others, each folder keeps its own.
    """
    for path in sorted((folder / "static").rglob("*")):
        if path.is_file():
            with suppress(OSError):  # whatever fails, the file that is there is as good
                _share(path, shared / path.relative_to(folder / "static"))


def _share(path: Path, same: Path) -> None:
    if not same.exists():
        same.parent.mkdir(parents=True, exist_ok=True)
        same.hardlink_to(path)
    elif not path.samefile(same) and filecmp.cmp(path, same, shallow=False):
        linked = path.with_name(f"{uuid.uuid4().hex}.tmp")
        linked.hardlink_to(same)
        linked.replace(path)
