"""A judge that goes down in mid-night and stays away: an outage for all tries, never a table whose cells are blocked."""

from collections import deque
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.nightly import nightly
from flows.nights import finishing
from flows.nights.record import notes
from flows.observability.alerting import NIGHT_FAILED
from schemas.errors import ProviderDownError
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

pytestmark = pytest.mark.filterwarnings("error")
GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
DOWN = Play(503, b"upstream connect error")
N_ANSWERED = 10


@pytest.fixture
def file(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A night whose judge answers ten of 24 requests, and then nothing; one attempt a request makes tries quick."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(1)
    provider.script, provider.then = deque([GOOD] * N_ANSWERED), DOWN
    return write_benchmark(tmp_path, provider.url, limits="attempts_per_request = 1\nrequests_per_minute = 60000")


def test_each_start_at_the_night_is_an_outage_and_publishes_nothing(file: Path, provider: Provider, sent: list[str]) -> None:
    """Also after more tries than those of which one request may be the cause."""
    n_starts = 22
    for _ in range(n_starts):
        with pytest.raises(ProviderDownError, match=r"is down: .*upstream connect error"):
            nightly(file)
    assert sent == [NIGHT_FAILED] * n_starts
    assert notes(file.parent / "lake", "nights") == {}
    provider.then = GOOD
    found = nightly(file)
    assert found.run is not None
    assert (found.run.n_blocked, found.run.asked.n_cached) == (0, N_ANSWERED)


@pytest.mark.slow
def test_a_night_that_tries_until_finish_by_fails_once(
    file: Path, provider: Provider, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finishing, "LONGEST_WAIT_S", 2.0)
    now = datetime.now(UTC)
    due, until = now - timedelta(minutes=1), now + timedelta(minutes=2 if now.second > 30 else 1)
    calendar = f'schedule = "{due.minute} {due.hour} * * *"\nfinish_by = "{until:%H:%M}"'
    file.write_text(file.read_text().replace('schedule = "0 2 * * *"', calendar))
    with pytest.raises(ProviderDownError, match="is down"):
        nightly(file)
    assert sent == [NIGHT_FAILED]
    assert provider.n > 8 * (N_SAMPLES - N_ANSWERED)
    assert notes(file.parent / "lake", "nights") == {}
