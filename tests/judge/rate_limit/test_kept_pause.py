"""A pause that the ledger keeps is said: a run that waits for it hears no answer that could tell of it."""

import asyncio
import logging

import pytest

from tasks.judge.rate_limit.limiter import RateLimiter
from tasks.judge.rate_limit.reported_limits import KeptPause
from tasks.ledger.ledger import Ledger

NOON_US = 12 * 3600 * 1_000_000
S = 1_000_000
CASES: dict[str, tuple[int, float, str | None]] = {
    "five minutes": (300 * S, 0.0, "sent for 300 s, until 12:05:00 UTC: an earlier run, another process or another judge with"),
    "beyond what was heard here": (300 * S, 60.0, "until 12:05:00 UTC"),
    "heard here": (300 * S, 299.0, None),
    "soon over": (4 * S, 0.0, None),
}


@pytest.mark.parametrize(("left_us", "known_s", "told"), CASES.values(), ids=CASES.keys())
def test_a_pause_of_another_run_is_said_once(
    caplog: pytest.LogCaptureFixture, left_us: int, known_s: float, told: str | None
) -> None:
    kept = KeptPause()
    with caplog.at_level(logging.WARNING, "salon.judge"):
        for later_us in (0, S):
            kept.tell(NOON_US + later_us, NOON_US + left_us, known_s)
    assert [told is not None and told in message for message in caplog.messages] == [True] * (told is not None)


def test_who_waits_for_a_pause_of_another_process_says_so(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    async def wait() -> None:
        await RateLimiter(ledger, "key").pause(200)
        stopping, own = asyncio.Event(), RateLimiter(ledger, "key")
        waiting = asyncio.create_task(own.wait(10, stopping))
        while own.paused_s == 0:
            await asyncio.sleep(0.01)
        waiting.cancel()

    with caplog.at_level(logging.WARNING, "salon.judge"):
        asyncio.run(wait())
    (message,) = caplog.messages
    assert message.startswith(("no requests are sent for 200 s", "no requests are sent for 199 s"))
