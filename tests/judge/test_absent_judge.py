"""A judge at whose address nobody is: each request is tried as often as the table says, by one try of the shard, and it ends."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import func, select

from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import NotThereError
from schemas.statuses.rows import ReplyStatus as S
from tasks.judge.poison_requests import Tried
from tasks.judge.provider.exchange import Answer
from tasks.judge.retries import FIRST_PATIENCE_S, RETRIES, Breaker, Presence
from tasks.lake.reading import Lake
from tasks.ledger.open_ledgers import opened
from tasks.ledger.tables import ATTEMPTS
from tests.support.asking import ask_shard
from tests.support.contexts import plan_part

NOBODYS = "http://127.0.0.1:9/v1"
NOBODY = Answer(S.UNREACHABLE, "no connection: refused", is_sent=False)
LOST = Answer(S.UNREACHABLE, "the connection was lost; the request may have been billed")
N_ATTEMPTS = RETRIES[S.UNREACHABLE].n_attempts


def test_nobody_at_the_address_is_told_after_the_attempts_of_the_table(
    make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]],
    rubric: Rubric,
    judge: Judge,
    tmp_path: Path,
) -> None:
    """It is no sign of a server that starts anew: the shard is not tried again, the next command or try of a night is another."""
    judge = judge.model_copy(update={"base_url": NOBODYS})
    lake, _ = store_samples(make_samples(60))
    requests, url = plan_part(make_samples(60), rubric, judge)[1], f"sqlite:///{tmp_path}/ledger.db"
    limits = Limits(concurrency=16, deadline_s=2, requests_per_minute=60_000)
    with pytest.raises(NotThereError, match="nothing has answered there in this run; start it, or check base_url") as raised:
        ask_shard(lake, requests, rubric, judge, url, limits)
    assert not raised.value.may_pass
    with opened(url) as ledger:
        of_each = select(func.count()).select_from(ATTEMPTS).group_by(ATTEMPTS.c.request_key)
        n_of_each = ledger.read(lambda connection: list(connection.execute(of_each).scalars()))
    assert max(n_of_each) == N_ATTEMPTS
    assert sum(n_of_each) < 60 * N_ATTEMPTS, "not all of them were asked"


class Clock:
    """Seconds that pass when told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def _fail(breaker: Breaker, n: int, answer: Answer = NOBODY) -> None:
    """First attempts, of as many requests: none of them has ended its ask."""
    breaker.begin()
    for number in range(n):
        breaker.record_attempt(str(number), answer, Tried())


def test_at_a_low_limit_first_attempts_tell_it(clock: Clock) -> None:
    breaker = Breaker(8, clock_s=clock)
    _fail(breaker, 8 * N_ATTEMPTS)
    assert not breaker.is_open, "a server that is just being started has some seconds"
    clock.now_s = FIRST_PATIENCE_S
    _fail(breaker, 1)
    assert (breaker.is_open, breaker.last, breaker.detail) == (True, S.UNREACHABLE, NOBODY.detail)


def test_few_attempts_do_not_tell_it_however_long_they_take(clock: Clock) -> None:
    breaker = Breaker(8, clock_s=clock)
    _fail(breaker, 1)
    clock.now_s = 10 * FIRST_PATIENCE_S
    _fail(breaker, 8 * N_ATTEMPTS - 2)
    assert not breaker.is_open
    _fail(breaker, 1)
    assert breaker.is_open


@pytest.mark.parametrize("met", [LOST, Answer(S.TIMED_OUT), Answer(S.RATE_LIMITED), Answer(S.ANSWERED)], ids=lambda a: a.status)
def test_somebody_who_was_met_once_by_any_shard_may_come_back(clock: Clock, met: Answer) -> None:
    presence = Presence()
    breakers = [Breaker(8, clock_s=clock, presence=presence) for _ in range(2)]
    _fail(breakers[0], 1, met)
    _fail(breakers[1], 1)
    clock.now_s = 10 * FIRST_PATIENCE_S
    _fail(breakers[1], 100)
    assert not breakers[1].is_open


def test_shards_that_begin_later_know_it_at_once(clock: Clock) -> None:
    presence = Presence()
    _fail(Breaker(8, clock_s=clock, presence=presence), 8 * N_ATTEMPTS)
    clock.now_s = FIRST_PATIENCE_S
    later = Breaker(8, clock_s=clock, presence=presence)
    _fail(later, 1)
    assert later.is_open
