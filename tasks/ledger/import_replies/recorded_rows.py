"""A row of replies recorded elsewhere as a reply: its names, what it need not say, its text. Matching: matching.py."""

from collections.abc import Callable, Mapping
from typing import Any

from schemas.benchmark import Benchmark
from schemas.benchmark_ratings import Recorded
from schemas.errors import InputError
from schemas.pointers import MISSING, look_up
from schemas.records import JudgeReply
from schemas.statuses import ReplyOrigin, ReplyStatus
from tasks.ledger.import_replies.files import CannotRebuildError, as_json, check_template, rebuild

NAMES = (
    "request_key", "sample_id", "item_id", "image", "model", "checkpoint", "seed", "prompt", "rubric", "judge_model", "reply",
    "finish_reason", "refusal", "answered_model", "n_input_tokens", "n_output_tokens", "cost_usd", "latency_s",
)  # fmt: skip
"""What `recorded.columns` may map; by default each is the column of the same name. `model` is the image model, not the judge."""


def check_settings(recorded: Recorded) -> None:
    """Raise InputError where [recorded] maps a name there is not, or its template holds no column."""
    for name in recorded.columns:
        if name not in NAMES and recorded.template is None:
            raise InputError(f"recorded.columns: {name} is not a name Salon knows; allowed: {', '.join(NAMES)}")
    if recorded.template is not None:
        check_template(recorded.template)


def defaults_of(benchmark: Benchmark) -> dict[str, str]:
    """What a row need not say: the judge where one is recorded, the rubric where there is one. Raises InputError."""
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


def named(raw: Mapping[str, Any], recorded: Recorded, defaults: Mapping[str, str]) -> dict[str, Any]:
    """What a row says, by NAMES."""
    found = ((name, look_up(raw, recorded.columns.get(name, name))) for name in NAMES)
    said = {name: value for name, value in found if value is not MISSING and value is not None}
    return {**defaults, **{name: value for name, value in said.items() if value != "" or name == "reply"}}


def reply_of(request_key: str, row: Mapping[str, Any], said: tuple[str | None, ReplyOrigin]) -> JudgeReply:
    """The reply that a row (by NAMES) records; `said` is reply_text()."""
    text, origin = said
    finish_reason = _word(row.get("finish_reason"))
    return JudgeReply(
        request_key=request_key,
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


def reply_text(row: Mapping[str, Any], raw: Mapping[str, Any], recorded: Recorded) -> tuple[str | None, ReplyOrigin]:
    """The reply's text, and whether it stood there or was written anew. Raises CannotRebuildError."""
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


def _word(value: object) -> str | None:
    return None if value is None else str(value)


def _number(row: Mapping[str, Any], name: str, kind: Callable[[Any], Any]) -> Any:
    """A count or an amount, not negative; null where the row says something else."""
    try:
        value = kind(row[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return value if 0 <= value < 2**53 else None
