"""kill -9 in the middle of a shard, then the same command: nothing acknowledged is bought again."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from schemas.benchmark.judges import Judge
from tasks.judge.session import SPARE
from tasks.lake.reading import Lake
from tasks.ledger.ledger import Ledger
from tests.support.contexts import plan_part

pytestmark = pytest.mark.slow

N_REQUESTS, N_IN_FLIGHT = 1000, 100

SHARD = """
import sys
from pathlib import Path
from rubrics.loading import find_rubrics, SHIPPED
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from tests.support.contexts import plan_part
from tasks.lake.reading import Lake
from tests.support.asking import ask_shard
from schemas.tables.stored import SAMPLES

lake, url, ledger, concurrency = Lake(Path(sys.argv[1])), sys.argv[2], sys.argv[3], int(sys.argv[4])
rubric = find_rubrics(["alignment"], [SHIPPED])["alignment"]
judge = Judge(model="judge", base_url=url)
requests = plan_part(lake.read_part(SAMPLES, "1" * 64, 0), rubric, judge)[1]
ask_shard(lake, requests, rubric, judge, ledger, Limits(concurrency=concurrency, deadline_s=10),
          on_reply=lambda reply: print(reply.request_key, flush=True))
"""


def test_a_killed_shard_goes_on_where_it_was(
    provider: Any, tmp_path: Path, make_samples: Callable[..., pl.DataFrame], store_samples: Callable[..., tuple[Lake, str]]
) -> None:
    lake, _ = store_samples(make_samples(N_REQUESTS))
    provider.then = provider.play(body=provider.complete("Reasoning: fine\nScore: 4"), delay_s=0.2)
    ledger_url = f"sqlite:///{tmp_path}/ledger.db"
    command = [sys.executable, "-c", SHARD, str(lake.root), provider.url, ledger_url, str(N_IN_FLIGHT)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    while provider.n < N_REQUESTS // 2:
        time.sleep(0.005)
        assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    told = set((first.communicate()[0] or b"").decode().split("\n")[:-1])
    time.sleep(0.2)
    n_at_kill = provider.n
    with Ledger(ledger_url) as ledger:
        requests = _requests(lake, provider.url)
        acknowledged = ledger.known(requests["request_key"])
        n_attempts = sum(ledger.n_attempts(requests["request_key"]).values())
    assert told <= acknowledged  # what anyone was told of is stored
    assert n_at_kill <= n_attempts  # each attempt was recorded before it was sent
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL)
    asked = Counter(body["messages"][0]["content"][0]["text"] for body in provider.bodies)
    assert len(asked) == N_REQUESTS
    n_paid_again = provider.n - N_REQUESTS
    assert n_paid_again == n_at_kill - len(acknowledged) <= N_IN_FLIGHT + N_IN_FLIGHT // SPARE  # those, and what stood ready
    n_before = provider.n
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL)
    assert provider.n == n_before


def _requests(lake: Lake, url: str) -> pl.DataFrame:
    from rubrics.loading import SHIPPED, find_rubrics
    from schemas.tables.stored import SAMPLES

    rubric = find_rubrics(["alignment"], [SHIPPED])["alignment"]
    return plan_part(lake.read_part(SAMPLES, "1" * 64, 0), rubric, Judge(model="judge", base_url=url))[1]
