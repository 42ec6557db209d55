"""Replies recorded elsewhere, and those of a lost ledger, into the ledger. Formats and matching are in the files beside it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark
from schemas.errors import SourceError
from schemas.pointers import look_up
from schemas.statuses.rows import FINAL_REPLY_STATUSES, ReplyOrigin
from schemas.tables.field import DIGEST_LENGTH
from tasks.context import StageContext
from tasks.delimited import columns_told
from tasks.ledger.import_replies.files import CannotRebuildError, parquet_columns, read_rows
from tasks.ledger.import_replies.matching import IDENTIFIERS, NoMatchError, PlanIndex, name_of, plan_index
from tasks.ledger.import_replies.recorded_rows import (
    Said,
    check_settings,
    defaults_of,
    named,
    replies_in,
    reply_of,
    unusable_numbers,
)
from tasks.ledger.ledger import Ledger
from tasks.ledger.queries import row_of, stored_row

N_EXAMPLES = 5
_OF_A_LAKE = {"request_key", "ask_index", "status", "reply_text", "n_attempts"}
_ROWS_PER_COMMIT = 2_000
_ANOTHER_TEMPLATE = (
    '; if it was rebuilt with a template that you have since corrected, set deployment = "template 2" for the judge and import '
    "again: its requests then have new keys"
)


@dataclass(slots=True)
class ImportResult:
    """What became of the rows; n_rows counts the replies of those `where` lets through, and is the sum of the next five.

    Contradicting are rows whose request has another reply, in another row or in the ledger: none is chosen among rows, and
    what the ledger has stays.
    """

    n_rows: int = 0
    n_stored: int = 0
    n_already_there: int = 0
    n_unmatched: int = 0
    n_contradicting: int = 0
    n_failed: int = 0  # lines of batch results that say why there is no reply
    n_reasked: int = 0  # of the stored, those that cannot be read and are to be asked once more
    unmatched_examples: list[str] = field(default_factory=list)
    contradicting_examples: list[str] = field(default_factory=list)
    n_without_number: int = 0  # of the taken, those of which a count or an amount is no number; it is null
    without_number_examples: list[str] = field(default_factory=list)
    has_unmatched: bool = False  # of those left out, whether one names no sample of the plan; else all lack what they should say
    columns: Sequence[str] = ()  # of the first row that can be read

    def leave_out(self, place: str, why: object) -> None:
        """Count a row that cannot be taken, and keep the first few for people."""
        self.n_unmatched += 1
        self.has_unmatched |= isinstance(why, NoMatchError)
        if len(self.unmatched_examples) < N_EXAMPLES:
            self.unmatched_examples.append(f"{place}: {why}")

    def lacks_number(self, place: str, said: Sequence[str]) -> None:
        """Count a row that is taken without what it says there."""
        self.n_without_number += 1
        if len(self.without_number_examples) < N_EXAMPLES:
            self.without_number_examples.append(f"{place}: {', '.join(said)}")

    def contradict(self, why: str, n_rows: int = 1) -> None:
        """Count rows that say something else than others do."""
        self.n_contradicting += n_rows
        if len(self.contradicting_examples) < N_EXAMPLES:
            self.contradicting_examples.append(why)


_Rows = Iterator[tuple[str, dict[str, Any]]]
"""(where it stands, the row of the ledger's `replies`)."""


def check_importable(benchmark: Benchmark, rubrics: Mapping[str, Rubric], path: Path) -> None:
    """Raise what can be said of recorded replies before anything is ingested or planned: the file is read once, whole.

    Raises InputError for settings under [recorded], SourceError for a file that cannot be read or in which nothing can be used.
    """
    if _is_of_a_lake(path):
        return
    check_settings(benchmark.recorded, rubrics)
    result, n_usable = ImportResult(), 0
    for _ in _wanted(benchmark, rubrics, path, result):
        n_usable += 1
    _refuse_nothing(path, result, n_usable)


def import_replies(context: StageContext, ledger: Ledger, path: Path) -> ImportResult:
    """Store every recorded reply that answers a planned request. A reply the ledger has already stays and is counted.

    Where two rows give one request different replies, neither is taken. A Parquet file of the lake's own `replies` is taken
    over as it is. Raises SourceError where no row can be taken. The file is read twice.
    """
    result = ImportResult()
    rows: Callable[[ImportResult], _Rows] = partial(_taken_over, path)
    if not _is_of_a_lake(path):
        rows = partial(_recorded, context, plan_index(context), path)
    _store(ledger, result, rows(result), _contradicted(rows(ImportResult())))
    _refuse_nothing(path, result, result.n_rows - result.n_unmatched)
    return result


def _is_of_a_lake(path: Path) -> bool:
    return set(parquet_columns(path)) >= _OF_A_LAKE


def _refuse_nothing(path: Path, result: ImportResult, n_usable: int) -> None:
    if result.n_rows == 0:
        raise SourceError(f"{path} contains no recorded replies; check the file, and `where` under [recorded]")
    if n_usable == 0:
        examples = "; ".join(result.unmatched_examples[:3])
        to_map = f"; under [recorded] columns, map the column that names the sample to one of {', '.join(IDENTIFIERS)}"
        there = f"; its columns: {columns_told(result.columns, [*IDENTIFIERS, 'reply'])}" if result.columns else ""
        raise SourceError(
            f"{path}: none of its {result.n_rows} rows answers a planned request ({examples})"
            f"{to_map if result.has_unmatched else ''}{there}"
        )


def _contradicted(rows: _Rows) -> dict[tuple[str, int], list[str]]:
    """The asks to which two rows give different replies; each with an empty list, for the places of its rows."""
    said: dict[tuple[str, int], bytes] = {}
    found: dict[tuple[str, int], list[str]] = {}
    for _, row in rows:
        digest = _said(row)
        if said.setdefault(_ask(row), digest) != digest:
            found[_ask(row)] = []
    return found


def _ask(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["request_key"], row["ask_index"]


def _said(row: Mapping[str, Any]) -> bytes:
    """A short digest of what was said; of a lake from before replies had digests, of the text alone."""
    return str(row["reply_sha256"] or sha256(row["reply_text"] or b"").hexdigest()).encode()[:32]


def _store(ledger: Ledger, result: ImportResult, rows: _Rows, contradicted: Mapping[tuple[str, int], list[str]]) -> None:
    while some := list(islice(rows, _ROWS_PER_COMMIT)):
        held = ledger.digests(row["request_key"] for _, row in some)
        new = []
        for place, row in some:
            if (places := contradicted.get(_ask(row))) is not None:
                places.append(place)
            elif (digest := held.get(_ask(row))) is not None and row["reply_sha256"] not in {None, digest}:
                is_first_rebuilt = row["origin"] == ReplyOrigin.REBUILT and not result.contradicting_examples
                result.contradict(
                    f"{place}: the ledger already has a different reply to request {row['request_key'][:12]}, which is kept"
                    f"{_ANOTHER_TEMPLATE if is_first_rebuilt else ''}"
                )
            else:
                new.append(row)
        n_new = ledger.store_rows(new)
        result.n_stored += n_new
        result.n_already_there += len(new) - n_new
    for (key, _), places in contradicted.items():
        more = f" and {len(places) - N_EXAMPLES} more" if len(places) > N_EXAMPLES else ""
        result.contradict(
            f"{'; '.join(places[:N_EXAMPLES])}{more}: different replies to request {key[:12]}, none of which was imported; if "
            "they are repeats of one question, set repeats of the judge to as many, else keep the row you want",
            len(places),
        )


def _wanted(
    benchmark: Benchmark, rubrics: Mapping[str, Rubric], path: Path, result: ImportResult
) -> Iterator[tuple[str, dict[str, Any], Said]]:
    """(where it stands, what it says by Salon's names, its reply) of each reply of the rows that `where` lets through."""
    recorded, defaults = benchmark.recorded, defaults_of(benchmark, rubrics)
    for place, raw in read_rows(path):
        if isinstance(raw, str):
            result.n_rows += 1
            result.leave_out(place, raw)
            continue
        result.columns = result.columns or list(raw)
        if any(look_up(raw, name) != value for name, value in recorded.where.items()):
            continue
        try:
            row = named(raw, recorded)
            name_of(row)
            found = list(replies_in(row, raw, benchmark, rubrics, defaults))
        except (NoMatchError, CannotRebuildError) as error:
            result.n_rows += 1
            result.leave_out(place, error)
        else:
            result.n_rows += len(found)
            yield from ((place, *one) for one in found)


def _recorded(context: StageContext, planned: PlanIndex, path: Path, result: ImportResult) -> _Rows:
    planned.start_over()
    for place, row, said in _wanted(context.benchmark, context.rubrics, path, result):
        try:
            reply = reply_of(planned.match(row), row, said)
        except NoMatchError as error:
            result.leave_out(place, error)
        else:
            if unusable := unusable_numbers(row):
                result.lacks_number(place, unusable)
            yield place, row_of(reply)  # nobody said when it was received; null keeps the snapshot the same on every machine


def _taken_over(path: Path, result: ImportResult) -> _Rows:
    """Rows of the lake's `replies`, whatever benchmark they are of; requests that were never answered have nothing to keep."""
    final = {status.value for status in FINAL_REPLY_STATUSES}
    for place, raw in read_rows(path):
        if isinstance(raw, str) or not raw.keys() >= _OF_A_LAKE:
            result.n_rows += 1
            result.leave_out(place, raw if isinstance(raw, str) else "holds a value that cannot be read")
            continue
        if raw["status"] not in final:
            continue
        result.n_rows += 1
        if len(str(raw["request_key"])) != DIGEST_LENGTH:
            result.leave_out(place, "request_key is not a sha256")
            continue
        yield place, stored_row(raw)
