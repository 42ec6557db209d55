"""A run that ends after its tables stood, before all that is derived from them: who waits for its alerts is told, once."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prefect import get_client

from flows.observability.alerting import PUBLISHED, REGRESSION
from tests.flows.flow_support import Said
from tests.support.checkpoint_folders import make_folder, write_file
from tests.support.servers.prefect_server import RunningPrefect, shown_by, tell_what_is_left
from tests.support.servers.provider import Play, Provider, completion

NAME = "told-of-a-run"


def _sent() -> list[str]:
    """The names of the benchmark's events, once the server has stored those of each publication."""
    resource = {"id": [f"salon.benchmark.{NAME}"]}
    found: list[dict[str, Any]] = []
    for _ in range(100):
        with get_client(sync_client=True) as client:
            found = client.request("POST", "/events/filter", json={"filter": {"resource": resource}}).json()["events"]
        if any(event["event"] == PUBLISHED for event in found):
            break
        time.sleep(0.2)
    return [event["event"] for event in found]


def test_a_regression_is_told_where_the_disk_failed_behind_the_tables(
    tmp_path: Path, salon: Callable[..., Said], provider: Provider, prefect_server: RunningPrefect
) -> None:
    home = tmp_path / "lake" / "publish" / "v1" / NAME
    make_folder(tmp_path, "step-1")
    file = write_file(tmp_path, provider.url)
    file.write_text(file.read_text().replace('name = "folders"', f'name = "{NAME}"'))
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 5"))
    assert salon("run", file, "--run-date", "2026-03-01").code == 0
    make_folder(tmp_path, "step-2")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 1"))
    (home / "salon.duckdb").unlink()
    (home / "salon.duckdb").mkdir()
    (home / "salon.duckdb" / "in the way").touch()
    with shown_by(prefect_server.api):
        failed = salon("run", file, "--run-date", "2026-03-02")
        assert (failed.code, "salon.duckdb" in failed.err) == (3, True)
        (home / "salon.duckdb" / "in the way").unlink()
        (home / "salon.duckdb").rmdir()
        assert salon("run", file, "--run-date", "2026-03-02").code == 0
        tell_what_is_left()
        assert _sent().count(REGRESSION) == 1
