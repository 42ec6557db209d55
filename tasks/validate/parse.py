"""Replies to scores: one row per request and dimension, always. How one reply text is read is rubrics/replies/read.py."""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import orjson
import polars as pl

from rubrics.model import Rubric, Variant
from rubrics.replies.read import parse_reply
from schemas.benchmark.judges import Judge
from schemas.errors import CorruptLakeError, RubricError
from schemas.records import ReadScores
from schemas.statuses.rows import ParseReason, ReplyStatus, ScoreStatus
from schemas.tables.stored import SCORES
from tasks.validate.derived_scores import figures_of_requests
from tasks.validate.scales import STEP_TOLERANCE, read_facts, with_scales

_log = logging.getLogger("salon.parse")

REQUEST_COLUMNS = ["request_key", "rubric_id", "rubric_version", "judge_model", "variant", "facts_json"]
REPLY_COLUMNS = ["request_key", "ask_index", "status", "reply_text", "finish_reason", "refusal_text", "logprobs_json"]

_READ_SCHEMA = {
    "request_key": pl.String, "rubric_id": pl.String, "rubric_version": pl.String, "judge_model": pl.String,
    "variant": pl.String, "facts_json": pl.String, "dimension": pl.String, "score": pl.Float64, "status": pl.String,
    "reason": pl.String, "note": pl.String, "ask_index": pl.Int64,
    "score_span": pl.String, "item": pl.String,
}  # fmt: skip


class _Ask(NamedTuple):
    """A request beside one of its asks; ask_index and status are None where the snapshot holds no reply."""

    request_key: str
    rubric_id: str
    rubric_version: str
    judge_model: str
    variant: str | None
    facts_json: str
    ask_index: int | None
    status: str | None
    reply_text: str | None
    finish_reason: str | None
    refusal_text: str | None
    logprobs_json: str | None


class _Reading(NamedTuple):
    """A reply that was read, and from which ask."""

    ask_index: int
    read: ReadScores


class _Failure(NamedTuple):
    """What became of an ask that gives no score."""

    status: ScoreStatus
    reason: str


def parse_part(requests: pl.DataFrame, replies: pl.DataFrame, rubrics: Mapping[str, Rubric]) -> pl.DataFrame:
    """The scores of a part's requests: one row per request × dimension of its variant (× item), by the table's key.

    `replies` may hold more than this part's. Raises RubricError where a request's rubric or variant is not in `rubrics`.
    """
    asks = (
        requests.select(REQUEST_COLUMNS)
        .join(replies.select(REPLY_COLUMNS), on="request_key", how="left")
        .sort("request_key", "ask_index", nulls_last=True)
    )
    read = pl.DataFrame(_columns(_rows(asks, rubrics)), schema=_READ_SCHEMA)
    scaled = with_scales(read, rubrics).with_columns(_bounds()).with_columns(_verdicts())
    read_rows = scaled.select(SCORES.columns)
    return pl.concat([read_rows, figures_of_requests(read_rows, rubrics)]).sort(*SCORES.key)


def reading_id(snapshot_id: str, rubrics: Mapping[str, Rubric], code_version: str, judges: Iterable[Judge] = ()) -> str:
    """sha256 hex of what a reading depends on: the replies, the rubrics' digests, the code and judges' names of their own."""
    digests = {rubric.id: rubric.digest for rubric in rubrics.values()}
    named: dict[str, object] = {"code_version": code_version, "rubrics": digests, "snapshot_id": snapshot_id}
    if renamed := {judge.id: judge.model for judge in judges if judge.id != judge.model}:
        named["judges"] = renamed
    return hashlib.sha256(orjson.dumps(named, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _rows(asks: pl.DataFrame, rubrics: Mapping[str, Rubric]) -> Iterator[tuple[object, ...]]:
    """A row of _READ_SCHEMA per request and dimension."""
    for _, group in groupby(asks.iter_rows(), key=itemgetter(0)):
        request_asks = [_Ask(*row) for row in group]
        request = request_asks[0]
        rubric, variant = _instrument(request, rubrics)
        outcome = _first_readable(request_asks, rubric)
        for key, item in _said(rubric, variant, request):
            yield (*request[:6], key, *_cell(outcome, item or key), item)


def _said(rubric: Rubric, variant: Variant, request: _Ask) -> list[tuple[str, str]]:
    """(dimension, item) of each score its replies should say; an empty item where there is one question."""
    items = (read_facts(request.facts_json) or {}).get("items") if rubric.items else None
    ids = [str(item.get("id", "")) for item in items] if isinstance(items, list) else [""]
    return [(key, item) for key in variant.read_keys for item in ids]


def _cell(outcome: _Reading | _Failure, key: str) -> tuple[float | None, str, str | None, str | None, int | None, str | None]:
    """Score, status, reason, note, ask_index and score_span of one dimension."""
    if isinstance(outcome, _Failure):
        return None, outcome.status.value, outcome.reason, None, None, None
    read = outcome.read
    if key in read.unreadable:
        return None, ScoreStatus.UNREADABLE.value, read.unreadable[key].value, None, None, None
    if key in read.not_applicable:
        word = ScoreStatus.NOT_APPLICABLE.value
        return None, word, ParseReason.NOT_APPLICABLE.value, None, None, None
    score, note, span = float(read.scores[key]), read.notes.get(key), read.spans.get(key)
    place = f"[{span[0]}, {span[1]}]" if span else None
    if key in read.violated:
        return score, ScoreStatus.RULE_VIOLATION.value, ParseReason.RULE_VIOLATION.value, note, outcome.ask_index, place
    return score, ScoreStatus.SCORED.value, None, note, outcome.ask_index, place


def _columns(rows: Iterable[tuple[object, ...]]) -> dict[str, list[object]]:
    """Rows turned into columns: polars takes those without looking at each value's type."""
    columns = list(zip(*rows, strict=True)) or [()] * len(_READ_SCHEMA)
    return {name: list(values) for name, values in zip(_READ_SCHEMA, columns, strict=True)}


def _instrument(ask: _Ask, rubrics: Mapping[str, Rubric]) -> tuple[Rubric, Variant]:
    rubric = rubrics.get(ask.rubric_id)
    variant = rubric.variant(ask.variant) if rubric else None
    if rubric is None or variant is None:
        wanted = ask.rubric_id if rubric is None else f"{ask.rubric_id}, category {ask.variant!r},"
        raise RubricError(
            f"request {ask.request_key[:12]} was asked under rubric {wanted} which is not one of those given "
            f"({', '.join(sorted(rubrics))}); name it in the benchmark file, with its folder"
        )
    return rubric, variant


def _first_readable(asks: list[_Ask], rubric: Rubric) -> _Reading | _Failure:
    """The first ask that can be read whole, else the first that leaves items out; else what became of the first ask."""
    outcomes: list[_Reading | _Failure] = []
    for ask in asks:
        outcomes.append(outcome := _read(ask, rubric))
        if isinstance(outcome, _Reading) and outcome.read.is_whole:
            return outcome
    return next((outcome for outcome in outcomes if isinstance(outcome, _Reading)), outcomes[0])


def _read(ask: _Ask, rubric: Rubric) -> _Reading | _Failure:
    if ask.status is None or ask.ask_index is None:
        return _Failure(ScoreStatus.NO_REPLY, ReplyStatus.NOT_ASKED.value)
    if ask.status == ReplyStatus.FILTERED:
        return _Failure(ScoreStatus.UNREADABLE, ParseReason.REFUSAL.value)
    if ask.status != ReplyStatus.ANSWERED:
        return _Failure(ScoreStatus.NO_REPLY, ask.status)
    parsed = parse_reply(rubric, ask.reply_text, _context(ask))
    if isinstance(parsed, ReadScores):
        return _Reading(ask.ask_index, parsed)
    if parsed.fault:
        _tell_fault(ask.request_key, ask.ask_index, parsed.fault)
    return _Failure(ScoreStatus.UNREADABLE, parsed.reason.value)


@lru_cache(maxsize=4096)
def _tell_fault(request_key: str, ask_index: int, fault: str) -> None:
    """Say which reply broke the reader, once: what is asked in rounds is read after each."""
    _log.error("ask %d of request %s broke the reader and is malformed; a fault of Salon: %s", ask_index, request_key, fault)


def _context(ask: _Ask) -> dict[str, object]:
    facts = read_facts(ask.facts_json)
    if facts is None:
        raise CorruptLakeError(
            f"request {ask.request_key[:12]}: its facts_json is not a JSON object; delete the marker of its plan in the lake's "
            "complete/requests/ and run again"
        )
    said = {"finish_reason": ask.finish_reason, "refusal": ask.refusal_text, "logprobs_json": ask.logprobs_json}
    return facts | said | {"category": ask.variant}


def _bounds() -> list[pl.Expr]:
    """bound_low and bound_high: the score where it counts, else what the scale and the rules leave."""
    is_scored = pl.col("status") == ScoreStatus.SCORED
    return [
        pl.when(is_scored).then("score").otherwise(pl.coalesce("rule_low", "scale_low")).alias("bound_low"),
        pl.when(is_scored).then("score").otherwise(pl.coalesce("rule_high", "scale_high")).alias("bound_high"),
    ]


def _verdicts() -> list[pl.Expr]:
    """The row verdicts, from the numbers alone: a second opinion beside the reader's. Null without a score."""
    score, n_steps = pl.col("score"), (pl.col("score") - pl.col("scale_low")) / pl.col("step")
    is_on_step = (n_steps - n_steps.round()).abs() <= STEP_TOLERANCE
    is_rule_kept = pl.all_horizontal(score >= pl.col("rule_low"), score <= pl.col("rule_high"))  # null: that end is open
    verdicts = {
        "is_in_range": score.is_between("scale_low", "scale_high"),
        "is_on_step": is_on_step.fill_null(value=True),
        "is_rule_kept": is_rule_kept.fill_null(value=True),
    }
    return [pl.when(score.is_not_null()).then(verdict).alias(name) for name, verdict in verdicts.items()]
