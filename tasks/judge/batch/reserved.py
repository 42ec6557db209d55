"""What the lines of a batch hold of a budget, and how much of it they give back when they end. What is set aside is usage.py's.

Told from the ledger alone, in the transaction that lets go of the lines: whoever was killed meanwhile, nothing is given back
twice.
"""

from collections.abc import Sequence

from sqlalchemy import BindParameter, bindparam, select
from sqlalchemy.engine import Connection

from schemas.statuses.rows import ReplyStatus
from tasks.judge.budget.budget import in_nusd
from tasks.judge.budget.cost import MAY_BE_BILLED
from tasks.ledger.shared_counter import give_back
from tasks.ledger.tables import ATTEMPTS, BATCH_LINES, BATCHES, REPLIES

_KEYS: BindParameter[list[str]] = bindparam("keys", expanding=True)
_REPLY = (REPLIES.c.request_key == BATCH_LINES.c.request_key) & (REPLIES.c.ask_index == BATCH_LINES.c.ask_index)
_RESERVED = (
    select(
        BATCHES.c.budget_id, BATCH_LINES.c.reserved, ATTEMPTS.c.status, REPLIES.c.cost_usd,
        REPLIES.c.status.label("reply_status"), REPLIES.c.finish_reason,
    )
    .join_from(BATCH_LINES, BATCHES, BATCHES.c.token == BATCH_LINES.c.token)
    .outerjoin(ATTEMPTS, ATTEMPTS.c.attempt_id == BATCH_LINES.c.attempt_id)
    .outerjoin(REPLIES, _REPLY)
    .where(BATCH_LINES.c.token == bindparam("of"), BATCH_LINES.c.request_key.in_(_KEYS), BATCH_LINES.c.reserved.is_not(None))
)  # fmt: skip


def give_back_reserved(connection: Connection, token: str, keys: Sequence[str]) -> None:
    """Give back what these lines hold, less what each cost. Their attempts have ended, and replies are stored."""
    for budget_id, reserved, status, cost_usd, reply_status, finish_reason in connection.execute(
        _RESERVED, {"of": token, "keys": keys}
    ).all():
        if cost_usd is not None:
            spent = in_nusd(cost_usd)
        elif reply_status is not None:  # as cost.py charges a reply that does not say what it cost
            spent = reserved if reply_status == ReplyStatus.ANSWERED or finish_reason is not None else 0
        else:
            spent = reserved if status is None or status in MAY_BE_BILLED else 0
        if spent != reserved:
            give_back(connection, budget_id, reserved - spent)
