"""Replies recorded elsewhere, and those of a lost ledger, into the ledger. Formats and matching are in the files beside it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from schemas.benchmark import Benchmark
from schemas.benchmark_ratings import Recorded
from schemas.errors import InputError, SourceError
from schemas.fields import DIGEST_LENGTH
from schemas.pointers import MISSING, look_up
from schemas.records import JudgeReply
from schemas.statuses import FINAL_REPLY_STATUSES, ReplyOrigin, ReplyStatus
from tasks.context import StageContext
from tasks.ledger.import_replies.files import CannotRebuildError, as_json, check_template, parquet_columns, read_rows, rebuild
from tasks.ledger.import_replies.matching import IDENTIFIERS, NoMatchError, PlanIndex, plan_index
from tasks.ledger.ledger import Ledger
from tasks.ledger.queries import row_of, stored_row

NAMES = (
    "request_key", "sample_id", "item_id", "image", "model", "checkpoint", "seed", "prompt", "rubric", "judge_model", "reply",
    "finish_reason", "refusal", "answered_model", "n_input_tokens", "n_output_tokens", "cost_usd", "latency_s",
)  # fmt: skip
"""What `recorded.columns` may map; by default each is the column of the same name. `model` is the image model, not the judge."""

N_EXAMPLES = 5
_ROWS_PER_COMMIT = 2_000


@dataclass(slots=True)
class ImportResult:
    """What became of the rows; n_rows counts those `where` lets through, and is the sum of the other three."""

    n_rows: int = 0
    n_stored: int = 0
    n_already_there: int = 0
    n_unmatched: int = 0
    unmatched_examples: list[str] = field(default_factory=list)

    def leave_out(self, place: str, why: object) -> None:
        """Count a row that cannot be taken, and keep the first few for people."""
        self.n_unmatched += 1
        if len(self.unmatched_examples) < N_EXAMPLES:
            self.unmatched_examples.append(f"{place}: {why}")


def import_replies(context: StageContext, ledger: Ledger, path: Path) -> ImportResult:
    """Store every recorded reply that answers a planned request. A reply the ledger has already stays and is counted.

    A Parquet file of the lake's own `replies` is taken over as it is. Raises InputError where no row can be taken.
    """
    result = ImportResult()
    if {"request_key", "ask_index", "status", "reply_text", "n_attempts"} <= set(parquet_columns(path)):
        _store(ledger, result, _taken_over(path, result))
    else:
        defaults = _defaults(context.benchmark)
        _check(context.benchmark.recorded)
        planned = plan_index(context)
        _store(ledger, result, _recorded(context.benchmark.recorded, defaults, planned, path, result))
    if result.n_rows == 0:
        raise SourceError(f"{path}: no recorded reply in it; check the file, and `where` under [recorded]")
    if result.n_unmatched == result.n_rows:
        examples = "; ".join(result.unmatched_examples[:3])
        raise SourceError(
            f"{path}: none of its {result.n_rows} rows answers a planned request ({examples}); under [recorded] columns, map "
            f"the column that names the sample to one of {', '.join(IDENTIFIERS)}"
        )
    return result


def _check(recorded: Recorded) -> None:
    for name in recorded.columns:
        if name not in NAMES and recorded.template is None:
            raise InputError(f"recorded.columns: {name} is not a name Salon knows; allowed: {', '.join(NAMES)}")
    if recorded.template is not None:
        check_template(recorded.template)


def _defaults(benchmark: Benchmark) -> dict[str, str]:
    """What a row need not say: the judge where one is recorded, the rubric where there is one."""
    recorded = [judge.id for judge in benchmark.judges if judge.recorded]
    defaults = {"judge_model": recorded[0]} if len(recorded) == 1 else {}
    if not defaults and "judge_model" not in benchmark.recorded.columns:
        raise InputError(
            f"the benchmark has {len(recorded)} judges with recorded = true; a row must say whose reply it is: "
            'mark the one judge recorded = true, or map judge_model = "…" under [recorded] columns'
        )
    if len(benchmark.rubrics) == 1:
        defaults["rubric"] = benchmark.rubrics[0].id
    return defaults


def _store(ledger: Ledger, result: ImportResult, rows: Iterator[dict[str, Any]]) -> None:
    while some := list(islice(rows, _ROWS_PER_COMMIT)):
        n_new = ledger.store_rows(some)
        result.n_stored += n_new
        result.n_already_there += len(some) - n_new


def _recorded(
    recorded: Recorded, defaults: Mapping[str, str], planned: PlanIndex, path: Path, result: ImportResult
) -> Iterator[dict[str, Any]]:
    for place, raw in read_rows(path):
        if any(look_up(raw, name) != value for name, value in recorded.where.items()):
            continue
        result.n_rows += 1
        try:
            row = dict(defaults) | {name: value for name in NAMES if (value := _value(raw, recorded, name)) is not None}
            reply = _reply(row, raw, recorded, planned)
        except (NoMatchError, CannotRebuildError) as error:
            result.leave_out(place, error)
        else:
            yield row_of(reply)  # nobody said when it was received; null keeps the snapshot the same on every machine


def _value(raw: Mapping[str, Any], recorded: Recorded, name: str) -> Any:
    value = look_up(raw, recorded.columns.get(name, name))
    return None if value is MISSING or (value == "" and name != "reply") else value


def _reply(row: Mapping[str, Any], raw: Mapping[str, Any], recorded: Recorded, planned: PlanIndex) -> JudgeReply:
    text, origin = _reply_text(row, raw, recorded)
    finish_reason = _word(row.get("finish_reason"))
    return JudgeReply(
        request_key=planned.match(row),
        ask_index=0,
        status=ReplyStatus.FILTERED if finish_reason == "content_filter" else ReplyStatus.ANSWERED,
        judge_model=str(row["judge_model"]) if "judge_model" in row else "",
        origin=origin,
        text=text,
        finish_reason=finish_reason,
        refusal_text=_word(row.get("refusal")),
        answered_model=_word(row.get("answered_model")),
        n_input_tokens=_number(row, "n_input_tokens", int),
        n_output_tokens=_number(row, "n_output_tokens", int),
        cost_usd=_number(row, "cost_usd", float),
        latency_s=_number(row, "latency_s", float),
        n_attempts=1,
    )


def _reply_text(row: Mapping[str, Any], raw: Mapping[str, Any], recorded: Recorded) -> tuple[str | None, ReplyOrigin]:
    if recorded.template is not None:
        return rebuild(recorded.template, raw, recorded.columns), ReplyOrigin.REBUILT
    reply = row.get("reply")
    if isinstance(reply, str):
        return reply, ReplyOrigin.RECORDED
    if reply is not None:  # a reply kept as parsed JSON: its text is written anew, and the row says so
        return as_json(reply, "reply"), ReplyOrigin.REBUILT
    if row.get("refusal") is None and row.get("finish_reason") is None:
        raise CannotRebuildError('holds no reply text; map reply = "…" under [recorded] columns, or give a template')
    return None, ReplyOrigin.RECORDED


def _taken_over(path: Path, result: ImportResult) -> Iterator[dict[str, Any]]:
    """Rows of the lake's `replies`, whatever benchmark they are of; requests that were never answered have nothing to keep."""
    final = {status.value for status in FINAL_REPLY_STATUSES}
    for place, raw in read_rows(path):
        if raw["status"] not in final:
            continue
        result.n_rows += 1
        if len(str(raw["request_key"])) != DIGEST_LENGTH:
            result.leave_out(place, "request_key is not a sha256")
            continue
        yield stored_row(raw)


def _word(value: object) -> str | None:
    return None if value is None else str(value)


def _number(row: Mapping[str, Any], name: str, kind: Callable[[Any], Any]) -> Any:
    """A count or an amount, not negative; null where the row says something else."""
    try:
        value = kind(row[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return value if 0 <= value < 2**53 else None
