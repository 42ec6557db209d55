"""A night whose judge answers nothing that can be read is given up at once and told of: each further try would pay again."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

CUT = Play(body=completion("Reasoning: it is", finish_reason="length"))
UNSEEN = Play(body=completion("I cannot see any image. Please attach the picture."))


@pytest.mark.parametrize(
    ("play", "told_of"),
    [
        (CUT, "none of the first 32 requests under rubric alignment has a reply that can be read (truncated 32)"),
        (UNSEEN, "replies that it was given nothing to judge"),
    ],
    ids=["its replies are cut", "it is shown nothing"],
)
def test_it_is_tried_once(
    play: Play, told_of: str, salon: Callable[..., Said], tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        World(tmp_path).make(number)
    provider.then = play
    now = datetime.now(UTC)
    file = write_benchmark(tmp_path, provider.url, judge="parameters = { max_tokens = 7 }\nrepeats = 3")
    until = f"{now + timedelta(hours=1):%H:%M}"
    file.write_text(file.read_text().replace('"0 2 * * *"', f'"{now.minute} {now.hour} * * *"\nfinish_by = "{until}"'))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    said = salon("nightly", file)
    told = " ".join(said.err.split())
    assert said.code == 3, told
    assert told_of in told
    assert ("truncated: 32 replies were cut at max_tokens = 7" in told) == (play is CUT)
    assert "started again" not in told
    assert provider.n < 2 * 3 * N_SAMPLES
