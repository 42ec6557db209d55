"""Whether a shard's run ends in an error, by its breaker and its outcome. What the errors say is outcome.py."""

from schemas.statuses.rows import PROVIDER_FAILURES, ReplyStatus
from tasks.judge.outcome import Outcome, absent, outage, unreadable, unseen
from tasks.judge.provider.base import Provider
from tasks.judge.retries import (
    ENDPOINT_FAILURES,
    Breaker,
)
from tasks.ledger.ledger import Ledger


async def raise_outage(provider: Provider, ledger: Ledger, breaker: Breaker, outcome: Outcome, rubric_id: str) -> None:
    """Raise where the breaker opened, a request could not be sent, or none got past. Requests rejected alike are forgotten."""
    sight, first = breaker.readings.sight, breaker.readings.first
    if sight.is_blind:
        raise unseen(provider.judge, provider.endpoint, sight.n_unseen, sight.n_read)
    if first.is_open and outcome.n_left:  # else all is bought, and what there is of it is published
        raise unreadable(provider.judge, provider.endpoint, rubric_id, first)
    if breaker.is_rejecting:  # what it would have said of each of them is not known: they are asked when the cause is mended
        await ledger.forget_rejected(breaker.rejected)
    is_over = _is_all_failed(outcome, breaker) or breaker.is_left_alone or breaker.is_down
    is_out = breaker.is_open or (is_over and not outcome.is_stopped)
    if is_out and breaker.last == ReplyStatus.UNREACHABLE and not breaker.presence.is_met:
        raise absent(provider.judge, provider.endpoint, breaker.detail)
    if breaker.last is not None and is_out:
        n_others = outcome.n_cached + outcome.n_answered
        said = breaker.last, breaker.detail, breaker.silent_s, breaker.pause_s
        raise outage(provider.judge, provider.endpoint, *said, n_others=n_others)


def _is_all_failed(outcome: Outcome, breaker: Breaker) -> bool:
    """Whether all that was asked failed of the endpoint or the provider.

    A few requests that are left of a shard may be those that the provider cannot bear: its own failures of them are theirs.
    """
    statuses = {ReplyStatus(status) for status in outcome.n_by_status}
    if not statuses or statuses <= ENDPOINT_FAILURES:
        return bool(statuses)
    is_telling = outcome.n_cached == 0 or len(breaker.failing.telling) >= breaker.n_to_stop
    return is_telling and not breaker.has_heard and statuses <= ENDPOINT_FAILURES | PROVIDER_FAILURES
