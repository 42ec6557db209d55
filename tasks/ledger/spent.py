"""What was sent and what was billed from a moment on, as attempts and replies tell it. Budgets are shared_counter.py."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, LargeBinary, and_, bindparam, exists, func, literal, or_, select
from sqlalchemy.engine import Connection

from schemas.statuses.rows import LOST_ON_THE_WAY, ReplyStatus
from tasks.ledger.queries import KEYS_LISTED, chunks_of
from tasks.ledger.tables import ATTEMPTS, BATCH_LINES, BATCHES, REPLIES

_R, _A = REPLIES.c, ATTEMPTS.c
_SINCE = bindparam("since_us", type_=BigInteger)
_LOST = LOST_ON_THE_WAY.encode()
_WAS_LOST = and_(_A.status == ReplyStatus.UNREACHABLE.value, func.substr(_A.detail, 1, len(_LOST)) == literal(_LOST, LargeBinary))
_IS_IN_DOUBT = or_(_A.status.is_(None), _A.status.in_([ReplyStatus.TIMED_OUT.value, ReplyStatus.BAD_RESPONSE.value]), _WAS_LOST)
_IS_OF_LINE = and_(BATCH_LINES.c.request_key == _A.request_key, BATCH_LINES.c.attempt_id == _A.attempt_id)
_IS_NOT_CREATED = (  # a line of a batch that was declared, and never created or refused
    exists().where(_IS_OF_LINE, BATCHES.c.token == BATCH_LINES.c.token, BATCHES.c.create_sent_at_us.is_(None)).correlate(ATTEMPTS)
)
IS_SENT = or_(_IS_IN_DOUBT, _A.status.not_in([ReplyStatus.NOT_ASKED.value, ReplyStatus.UNREACHABLE.value]))
"""Whether an attempt left this machine, or may have: one that stood in a queue, or found nobody, says nothing of its request."""
_SENT = select(func.count(), func.count().filter(_IS_IN_DOUBT)).where(
    _A.request_key.in_(KEYS_LISTED), _A.started_at_us >= _SINCE, IS_SENT, ~_IS_NOT_CREATED
)
_BOUGHT = select(
    func.count(_R.request_key.distinct()),
    func.sum(_R.n_input_tokens),
    func.sum(_R.n_output_tokens),
    func.sum(_R.cost_usd),
    func.count().filter(_R.status == ReplyStatus.ANSWERED.value, _R.cost_usd.is_(None)),
    func.max(_R.received_at_us),
).where(_R.request_key.in_(KEYS_LISTED), _R.received_at_us >= _SINCE)


def sent_since(connection: Connection, keys: Sequence[str], since_us: int) -> tuple[int, int]:
    """Attempts at these keys that began then or later and left the machine; those that may be billed and have no reply."""
    counted = [connection.execute(_SENT, chunk | {"since_us": since_us}).one() for chunk in chunks_of(keys)]
    return sum(row[0] for row in counted), sum(row[1] for row in counted)


def bought_since(connection: Connection, keys: Sequence[str], since_us: int) -> list[tuple[Any, ...]]:
    """Of replies to these keys since a moment, some keys a row: requests, tokens in and out, USD, those without, when last."""
    return [tuple(connection.execute(_BOUGHT, chunk | {"since_us": since_us}).one()) for chunk in chunks_of(keys)]
