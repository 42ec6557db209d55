"""A row of replies, or of a program's numbers, recorded elsewhere as replies: names, what need not be said, texts.

Matching: matching.py.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rubrics.model import Rubric
from rubrics.replies.program_numbers import said_by_program
from schemas.benchmark.file import Benchmark
from schemas.benchmark.ratings import Recorded
from schemas.errors import InputError
from schemas.pointers import MISSING, look_up
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.ledger.import_replies.files import CannotRebuildError, as_json, check_template, rebuild

NAMES = (
    "request_key", "sample_id", "item_id", "image", "model", "checkpoint", "seed", "prompt", "rubric", "judge_model", "item",
    "reply",
    "finish_reason", "refusal", "answered_model", "n_input_tokens", "n_output_tokens", "cost_usd", "latency_s",
)  # fmt: skip
"""What `recorded.columns` may map; by default each is the column of the same name. `model` is the image model, not the judge."""


Said = tuple[str | None, ReplyOrigin]
"""The text of a reply, and whether it stood there or was written anew."""


def check_settings(recorded: Recorded, rubrics: Mapping[str, Rubric]) -> None:
    """Raise InputError where [recorded] maps a name there is not, or its template holds no column."""
    measured = [one.key for rubric in rubrics.values() if rubric.program for one in rubric.variants[None].dimensions]
    for name in recorded.columns:
        if name not in (*NAMES, *measured) and recorded.template is None:
            raise InputError(f"recorded.columns: {name} is not a name Salon knows; allowed: {', '.join((*NAMES, *measured))}")
    if recorded.template is not None:
        check_template(recorded.template)


def defaults_of(benchmark: Benchmark, rubrics: Mapping[str, Rubric]) -> dict[str, str]:
    """What a row of a reply need not say: the judge where one is recorded, the rubric where there is one. Raises InputError."""
    programs = {rubric.program for rubric in rubrics.values() if rubric.program}
    recorded = [judge.id for judge in benchmark.judges if judge.recorded and judge.id not in programs]
    defaults = {"judge_model": recorded[0]} if len(recorded) == 1 else {}
    if not recorded and not programs and "judge_model" not in benchmark.recorded.columns:
        raise InputError(
            "the benchmark has no judge with recorded = true; a row must say whose reply it is: "
            'mark the one judge recorded = true, or map judge_model = "…" under [recorded] columns'
        )
    asked = [one.id for one in benchmark.rubrics if not (one.id in rubrics and rubrics[one.id].program)]
    if len(asked) == 1:
        defaults["rubric"] = asked[0]
    return defaults


def named(raw: Mapping[str, Any], recorded: Recorded) -> dict[str, Any]:
    """What a row says, by NAMES."""
    found = ((name, look_up(raw, recorded.columns.get(name, name))) for name in NAMES)
    said = {name: value for name, value in found if value is not MISSING and value is not None}
    return {name: value for name, value in said.items() if value != "" or name == "reply"}


def replies_in(
    row: Mapping[str, Any],
    raw: Mapping[str, Any],
    benchmark: Benchmark,
    rubrics: Mapping[str, Rubric],
    defaults: Mapping[str, str],
) -> Iterator[tuple[dict[str, Any], Said]]:
    """(row by NAMES, what it says) of each reply that a row holds: one, or one for each program it has numbers of.

    Raises CannotRebuildError.
    """
    measured = {} if "reply" in row else _measured(row, raw, benchmark.recorded, rubrics)
    for rubric_id, values in measured.items():
        program = rubrics[rubric_id].program
        if row.get("judge_model", program) != program:
            raise CannotRebuildError(f"is of {row['judge_model']!r}, but rubric {rubric_id} takes the numbers of {program}")
        yield {**row, "rubric": rubric_id, "judge_model": program}, (said_by_program(values), ReplyOrigin.REBUILT)
    if not measured and "reply" not in row and rubrics and all(rubric.program for rubric in rubrics.values()):
        numbers = " or ".join(f"{rubric.id} ({_keys(rubric)})" for rubric in rubrics.values())
        raise CannotRebuildError(f"holds none of the numbers of {numbers}; {_MAP}; the row has {', '.join(map(str, raw))}"[:600])
    if not measured:
        whole = {**defaults, **row}
        if "judge_model" not in whole and sum(judge.recorded for judge in benchmark.judges) > 1:
            raise CannotRebuildError("does not say which of several recorded judges replied: it lacks judge_model")
        yield whole, reply_text(whole, raw, benchmark.recorded)


def _measured(
    row: Mapping[str, Any], raw: Mapping[str, Any], recorded: Recorded, rubrics: Mapping[str, Rubric]
) -> dict[str, dict[str, Any]]:
    """The numbers of a row by the rubric of the program they are of. Raises CannotRebuildError where that is not clear."""
    found: dict[str, dict[str, Any]] = {}
    taken: dict[str, str] = {}
    for rubric in rubrics.values():
        is_named = row.get("rubric") == rubric.id
        if not rubric.program or not (is_named or ("rubric" not in row and recorded.template is None)):
            continue
        for one in rubric.variants[None].dimensions:
            places = [recorded.columns[one.key]] if one.key in recorded.columns else [
                *([one.at] if one.at else []), *one.or_at, f"scores.{one.key}", one.key,
            ]  # fmt: skip
            place = next((place for place in places if look_up(raw, place) is not MISSING), None)
            if place is not None:
                other = taken.setdefault(place, rubric.id)
                if other != rubric.id:
                    raise CannotRebuildError(
                        f"holds {place}, which may be of {other} or of {rubric.id}; name the rubric in the row"
                    )
                found.setdefault(rubric.id, {})[one.key] = look_up(raw, place)
        if is_named and rubric.id not in found:
            raise CannotRebuildError(f"holds none of the numbers of {rubric.id} ({_keys(rubric)}); {_MAP}")
    return found


_MAP = "map its columns under [recorded] columns"


def _keys(rubric: Rubric) -> str:
    return ", ".join(one.key for one in rubric.variants[None].dimensions)


def reply_of(request_key: str, row: Mapping[str, Any], said: Said) -> JudgeReply:
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
        n_attempts=1,
        **{name: _number(row, name) for name in _NUMBERS},
    )


def unusable_numbers(row: Mapping[str, Any]) -> list[str]:
    """The counts and amounts of a row that say something, and nothing that can be one: they are stored as null."""
    return [f"{name} {str(row[name])[:40]!r}" for name in _NUMBERS if row.get(name) is not None and _number(row, name) is None]


def reply_text(row: Mapping[str, Any], raw: Mapping[str, Any], recorded: Recorded) -> Said:
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


_NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "n_input_tokens": int, "n_output_tokens": int, "cost_usd": float, "latency_s": float,
}  # fmt: skip


def _number(row: Mapping[str, Any], name: str) -> Any:
    """A count or an amount, not negative; null where the row says something else."""
    try:
        value = _NUMBERS[name](row[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return value if 0 <= value < 2**53 else None
