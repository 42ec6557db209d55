"""`salon nightly --dry-run`: what the night would ask and cost, before it is asked; and that it then asks that."""

import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion


def _to_ask(said: Said) -> int:
    found = re.search(r"to ask +([\d,]+) requests", said.out)
    return int(found[1].replace(",", "")) if found else 0


def test_a_night_asks_what_its_preview_says(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    world, file = World(tmp_path), write_benchmark(tmp_path, provider.url)
    earlier = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    for number in range(3):
        world.make(number)
    for made in (tmp_path / "made").rglob("*"):
        os.utime(made, (time.time() - 7 * 86_400,) * 2)
    said = salon("nightly", file, "--dry-run", "--run-date", earlier)
    assert said.code == 0, said.err
    assert said.out.startswith(f"the night of {earlier}: demo-painter/step-2; no anchors")
    assert "step-2: 24 usable" in said.out
    assert "step-1" not in said.out, "earlier ones were never judged"
    assert (_to_ask(said), provider.n) == (N_SAMPLES, 0)

    assert salon("nightly", file, "--run-date", earlier).code == 0
    assert provider.n == N_SAMPLES
    again = salon("nightly", file, "--dry-run", "--run-date", earlier)
    assert again.out.splitlines()[-1] == "it is published completely: nothing would be sent"

    assert salon("anchors", "freeze", file, "--n", "10").code == 0
    tonight = salon("nightly", file, "--dry-run")
    assert "; anchors " in tonight.out.splitlines()[0]
    assert "__anchors__" not in tonight.out
    assert _to_ask(tonight) == 10, "the checkpoint's replies are stored; the anchors are asked anew each night"
    assert salon("nightly", file).code == 0
    assert provider.n == N_SAMPLES + 10


def test_a_preview_counts_with_the_money_that_is_left_and_with_what_was_published(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    world = World(tmp_path)
    file = write_benchmark(tmp_path, provider.url, judge="parameters = { max_tokens = 600 }", limits="max_usd = 0.03")
    world.make(0)
    assert salon("nightly", file).code == 1
    spent = " ".join(salon("nightly", file, "--dry-run").out.split())
    assert "its earlier starts spent $0.0" in spent
    assert "limits.max_usd = 0.03, of which $0.0" in spent, "the file's, and what is left of it"
    assert "expected: it pays for about" in spent, "less is left than the rest costs"
    more = " ".join(salon("nightly", file, "--dry-run", "--max-usd", "5").out.split())
    assert "of max_usd: $4.9" in more
    assert "limits.max_usd" not in more
    assert salon("nightly", file, "--max-usd", "5").code == 0
    world.make(1)
    whole = salon("nightly", file, "--dry-run").out
    assert "demo-painter/step-0" in whole
    assert "step-1" not in whole, "what was published, not what came since"


def test_a_preview_forgets_nothing(tmp_path: Path, salon: Callable[..., Said], provider: Provider) -> None:
    World(tmp_path).make(0)
    said = salon("nightly", write_benchmark(tmp_path, provider.url), "--dry-run", "--retry", "rejected")
    assert (said.code, said.err) == (2, "salon: --dry-run cannot be combined with --retry: omit one of them\n")
