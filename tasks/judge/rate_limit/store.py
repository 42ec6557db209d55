"""The allowances in the ledger: one row a key, read, used and written back in one short transaction. Works out nothing itself."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from sqlalchemy import bindparam, select, update
from sqlalchemy.engine import Connection, RowMapping

from tasks.judge.rate_limit.gcra import (
    HORIZON_US,
    TENTATIVE_HORIZON_US,
    TENTATIVE_PER_MINUTE,
    YIELDING_HORIZON_US,
    Heard,
    Limit,
    Pace,
    Slot,
    grant,
)
from tasks.ledger.pipelining import later
from tasks.ledger.statements import insert_where_absent, now_us, upsert
from tasks.ledger.tables import ALLOWANCES, LEDGER_META

Clock: TypeAlias = Callable[[Connection], int]
_IS_IT = ALLOWANCES.c.allowance_id == bindparam("id")
_FOUND = select(ALLOWANCES).where(_IS_IT)
_CHANGE = update(ALLOWANCES).where(_IS_IT)
_SEEN = select(LEDGER_META.c.value).where(LEDGER_META.c.name == bindparam("of"))
LONGEST_PAUSE_US = 300 * 1_000_000
"""No pause is kept longer, whatever a provider asks for or a clock that was set back makes of it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a holder tells and asks for. `sizes`: tokens of those that wait; `ahead`: of those expected; `owed`: see settle.

    `late_us`: how old an answer is when this holder has it, where its ledger is far away. It is granted what comes after.
    """

    sizes: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()
    n_owed_tokens: int = 0
    has_heard: bool = False
    requests: Heard | None = None
    tokens: Heard | None = None
    late_us: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """What a holder is told: the database's time, the pause, the limits, and the requests it may send.

    `rates`: requests and tokens a minute it is paced at. `is_open`: there is no limit, nothing need be granted.
    """

    now_us: int
    paused_until_us: int
    limits: tuple[Limit, Limit]
    rates: tuple[int | None, int | None]
    is_open: bool
    slots: tuple[Slot, ...]
    next_us: int  # when asking again may bring more


def limiter_id(endpoint: str, api_key_digest: str, judge_model: str) -> str:
    """The name of what a provider counts together: a model, asked at an endpoint with a key (given as its digest)."""
    return sha256(f"{endpoint}\n{api_key_digest}\n{judge_model}".encode()).hexdigest()


def exchange(
    connection: Connection,
    allowance_id: str,
    given: tuple[int | None, int | None],
    report: Report,
    clock: Clock = now_us,
    *,
    gives_way: bool = False,
) -> Lease:
    """Take over what a holder heard and owes, and grant it what may be sent. To be run as the ledger's only writer.

    One that gives way is granted only what nobody else waits for.
    """
    row = _row(connection, allowance_id)
    now = clock(connection)
    paused_us = _paused_until_us(row, now)
    limits = [_limit(row, "requests"), _limit(row, "tokens")]
    if report.has_heard:
        limits = [limit.after(heard, now) for limit, heard in zip(limits, (report.requests, report.tokens), strict=True)]
    is_unheard = given[0] is None and limits[0].heard_us is None
    requests = limits[0].pace(TENTATIVE_PER_MINUTE if is_unheard else given[0], now)
    tokens = limits[1].pace(given[1], now)
    if tokens is not None and report.n_owed_tokens:
        tokens.settle(report.n_owed_tokens, now)
    is_open = requests is None and tokens is None
    slots: list[Slot] = []
    next_us = paused_us
    if not is_open and paused_us <= now:
        horizon_us = TENTATIVE_HORIZON_US if is_unheard else HORIZON_US
        horizon_us = min(horizon_us, YIELDING_HORIZON_US) if gives_way else horizon_us
        slots, next_us = _grant(requests, tokens, now, report, horizon_us, gives_way=gives_way)
    _write(connection, allowance_id, row, limits, (requests, tokens))
    rates = (requests.per_minute if requests else None, tokens.per_minute if tokens else None)
    return Lease(now, paused_us, (limits[0], limits[1]), rates, is_open, tuple(slots), next_us)


def _grant(
    requests: Pace | None, tokens: Pace | None, now: int, report: Report, horizon_us: int, *, gives_way: bool
) -> tuple[list[Slot], int]:
    """Slots that are still good when the holder hears of them, and when it has to ask again.

    One that gives way and is far away reserves a time that others might ask for next: it does so only where nobody waits now.
    """
    paces = [pace.next_us(1, now) for pace in (requests, tokens) if pace]
    if gives_way and report.late_us and max(paces, default=now) > now + horizon_us:
        return [], max(paces) - horizon_us // 2
    slots, next_us = grant(requests, tokens, now + report.late_us, report.sizes, report.ahead, horizon_us)
    return slots, max(now, next_us - report.late_us)


def look(connection: Connection, allowance_id: str, given: tuple[int | None, int | None], clock: Clock = now_us) -> Lease | None:
    """What a key without limits is told, who need not be alone for it; None where a limit is known, or none was heard of yet."""
    row = connection.execute(_FOUND, {"id": allowance_id}).mappings().first()
    if row is None:
        return None
    requests, tokens = _limit(row, "requests"), _limit(row, "tokens")
    if requests.heard_us is None or any(rate is not None for rate in (*given, requests.per_minute, tokens.per_minute)):
        return None
    now = clock(connection)
    paused_us = _paused_until_us(row, now)
    return Lease(now, paused_us, (requests, tokens), (None, None), is_open=True, slots=(), next_us=paused_us)


def _paused_until_us(row: RowMapping, now: int) -> int:
    """Until when nobody sends. What lies beyond any pause is of a clock that was set back since, and is not believed.

    Cut to the longest pause it would be that long from every look on, until the clock is where it was.
    """
    until_us = int(row["paused_until_us"])
    return until_us if until_us <= now + LONGEST_PAUSE_US else 0


def pause(connection: Connection, allowance_id: str, seconds: float, clock: Clock = now_us) -> None:
    """Nobody sends before these seconds are over; a longer pause stays."""
    row = _row(connection, allowance_id)
    now = clock(connection)
    until_us = now + min(int(seconds * 1_000_000), LONGEST_PAUSE_US)
    if until_us > row["paused_until_us"] or row["paused_until_us"] > now + LONGEST_PAUSE_US:
        later(connection, _CHANGE, {"id": allowance_id, "paused_until_us": until_us})


def reached(connection: Connection, allowance_id: str) -> int | None:
    """How many requests were in flight when the key's last session ended, as far as it learned that; None before the first."""
    kept = connection.execute(_SEEN, {"of": _reached_name(allowance_id)}).scalar()
    return int(kept) if kept and kept.isdecimal() else None


def latency_seen(connection: Connection, judge_model: str) -> float | None:
    """Seconds a reply of a judge took in the last session that had some; None before the first."""
    kept = connection.execute(_SEEN, {"of": _latency_name(judge_model)}).scalar()
    return float(kept) if kept else None


def keep_seen(
    connection: Connection, allowance_id: str, judge_model: str, n_in_flight: int | None, latency_s: float | None
) -> None:
    """Keep both for the next run; None: nothing was learned, and what was kept stays."""
    seen = {_reached_name(allowance_id): n_in_flight, _latency_name(judge_model): latency_s}
    for name, value in seen.items():
        if value is not None:
            later(connection, upsert(connection.engine, LEDGER_META), {"name": name, "value": f"{value:.6g}"})


def _latency_name(judge_model: str) -> str:
    return f"latency {sha256(judge_model.encode()).hexdigest()[:48]}"


def _reached_name(allowance_id: str) -> str:
    return f"in flight {allowance_id[:48]}"


def _row(connection: Connection, allowance_id: str) -> RowMapping:
    """The key's row, made where there is none. Who reads it is alone: to lock it too would count as writing."""
    is_it = {"id": allowance_id}
    row = connection.execute(_FOUND, is_it).mappings().first()
    if row is None:
        values = {"allowance_id": allowance_id, "paused_until_us": 0, "requests_used_until_us": 0, "tokens_used_until_us": 0}
        connection.execute(insert_where_absent(connection.engine, ALLOWANCES), [values])
        row = connection.execute(_FOUND, is_it).mappings().one()
    return row


def _limit(row: RowMapping, kind: str) -> Limit:
    return Limit(row[f"{kind}_per_minute"], row[f"{kind}_burst"], row[f"{kind}_heard_us"], int(row[f"{kind}_used_until_us"]))


def _write(
    connection: Connection, allowance_id: str, row: RowMapping, limits: list[Limit], paces: tuple[Pace | None, Pace | None]
) -> None:
    """Write what changed; where nothing did, nothing is written and nothing synced."""
    values: dict[str, int | None] = {}
    for kind, limit, pace in zip(("requests", "tokens"), limits, paces, strict=True):
        values[f"{kind}_per_minute"], values[f"{kind}_burst"] = limit.per_minute, limit.burst
        values[f"{kind}_heard_us"] = limit.heard_us
        values[f"{kind}_used_until_us"] = pace.used_until_us if pace else limit.used_until_us
    changed = {name: value for name, value in values.items() if value != row[name]}
    if changed:
        later(connection, _CHANGE, {"id": allowance_id, **changed})
