"""A run that is killed, told to stop, or robbed of its ledger or its lake, and started again: nothing stored is bought twice."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from demo.running import running_judge
from schemas.benchmark.file import load_benchmark
from tasks.lake.reading import Lake
from tasks.ledger.ledger import Ledger
from tasks.ledger.snapshot import restore
from tests.flows.flow_support import Said, cells_of, runs_of
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.painting import paint, scenes

BENCHMARK = scenes("killed", "[limits]\nconcurrency = 8\nshard_size = 60\n", head='lake = "{lake}/"\n')


def _start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "flows", "run", f"{name}.toml", "--run-date", "2026-03-04"]
    root = str(Path(__file__).parents[3])
    return subprocess.Popen(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": root}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _n_billed(url: str) -> int:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as answer:
        return int(json.load(answer)["n_requests"])


def _stop_after(folder: Path, url: str, n_billed: int, how: signal.Signals) -> tuple[int, str]:
    """Start the run, and send the signal once the judge was asked so often. The exit code, and what it said."""
    stopped = _start(folder, "stopped")
    while _n_billed(url) < n_billed:
        assert stopped.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.01)
    stopped.send_signal(how)
    said, _ = stopped.communicate(timeout=60)
    return stopped.returncode, said.decode()


def test_a_killed_and_a_stopped_run_goes_on_and_ends_with_the_same_table(tmp_path: Path, salon: Callable[..., Said]) -> None:
    paint(tmp_path)
    with running_judge() as url:
        for name in ("whole", "stopped"):
            (tmp_path / f"{name}.toml").write_text(BENCHMARK.format(lake=name, url=url))
        assert salon("run", str(tmp_path / "whole.toml"), "--run-date", "2026-03-04").code == 0
        n_whole = _n_billed(url)
        code, said = _stop_after(tmp_path, url, n_whole + 100, signal.SIGKILL)
        assert code == -signal.SIGKILL, said
        n_at_kill = _n_billed(url)
        code, said = _stop_after(tmp_path, url, n_whole + 250, signal.SIGTERM)
        assert code == 143, said
        assert "was killed, or could not record what it bought; that is in the table runs now" in " ".join(said.split())
        n_at_stop = _n_billed(url)
        again = salon("run", "stopped.toml", "--run-date", "2026-03-04")
        assert again.code == 0, again.err
        n_last = _n_billed(url) - n_at_stop
    rows = runs_of(tmp_path / "stopped")
    last = rows.row(-1, named=True)
    assert rows.select("outcome", "asked_by").rows() == [("stopped", "run"), ("stopped", "run"), ("published", "run")]
    n_sent = n_at_stop + n_last - n_whole
    assert n_sent <= rows["n_asked"].sum() <= n_sent + 8 + 1  # an attempt is noted before it is sent
    assert rows["started_at"][0] < rows["finished_at"][0] < rows["started_at"][1]
    assert not [*(tmp_path / "stopped" / "asking").rglob("*.json")]
    assert n_last == n_whole - last["n_cached"]  # nothing the ledger held was asked again
    n_paid_twice = n_at_stop + n_last - 2 * n_whole
    assert 0 <= n_paid_twice <= 8 + 1  # at most what was in flight at the kill, or ready to be (an eighth); SIGTERM drains
    assert last["n_cached"] >= n_at_stop - n_whole - 9
    assert n_at_kill > n_whole
    columns = ["cell_id", "estimate", "se", "ci_low", "ci_high", "n_scored", "n_failed", "status", "reason"]
    first, second = (cells_of(tmp_path / name, "killed").select(columns) for name in ("whole", "stopped"))
    assert first.equals(second)


@pytest.mark.skipif(
    not os.environ.get("SALON_TORTURE"), reason="three whole processes, 40 s of processor time: in `make torture`"
)
def test_two_nights_and_a_backfill_at_once_buy_each_reply_once(tmp_path: Path) -> None:
    """Processes of one benchmark over one lake: all end clean and say what they did; each night is published once."""
    world = World(tmp_path)
    for number in range(2):
        world.make(number)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    said: dict[str, str] = {}
    with running_judge() as url:
        night = load_benchmark(write_benchmark(tmp_path, url)).nightly.newest_due(datetime.now(UTC)).date().isoformat()
        commands = (
            f"nightly b.toml --run-date {night}",
            f"nightly b.toml  --run-date {night}",
            "backfill b.toml --all --run-date 2026-03-05",
        )
        started = {
            command: subprocess.Popen(
                [sys.executable, "-m", "flows", *command.split()],
                cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
            for command in commands
        }  # fmt: skip
        for command, process in started.items():
            said[command] = process.communicate(timeout=300)[0].decode()
            assert process.returncode == 0, said[command]
        assert _n_billed(url) == 2 * N_SAMPLES
    assert all(night in said[command] for command in commands[:2]), said
    assert all(said.values()), said
    current = [row for row in runs_of(tmp_path / "lake").iter_rows(named=True) if str(row["run_date"]) == night]
    assert len({row["publication_id"] for row in current}) == 1
    assert sum(row["outcome"] == "published" for row in current) <= 1


def _forget(lake: Path, *, but: str) -> None:
    """Delete everything in the lake that is not published, but for what begins with a name."""
    for path in lake.iterdir():
        if path.name != "publish" and not path.name.startswith(but):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _forget_some_replies(lake: Path) -> None:
    """As a ledger would be that was put back from an older copy."""
    with closing(sqlite3.connect(lake / "ledger.db")) as ledger, ledger:
        ledger.execute("DELETE FROM replies WHERE substr(request_key, 1, 1) < '8'")
        ledger.execute("DELETE FROM ledger_meta WHERE value = 'held'")
        ledger.execute("UPDATE ledger_meta SET value = 'older' WHERE name = 'state'")


LOST: dict[str, Callable[[Path], None]] = {
    "the ledger": lambda lake: (lake / "ledger.db").unlink(),
    "half of the ledger": _forget_some_replies,
    "the unpublished lake": lambda lake: _forget(lake, but="ledger.db"),
}


def test_what_the_ledger_or_the_lake_holds_is_not_asked_again(tmp_path: Path, salon: Callable[..., Said]) -> None:
    """Each in turn is deleted, and the same command run again: the server's own count stands still, the table is the same.

    At last the ledger is gone and there is more to judge: what is new in it is asked, and no more.
    """
    paint(tmp_path)
    lake, command = tmp_path / "lost", ("run", "lost.toml", "--run-date", "2026-03-04", "--checkpoints")
    with running_judge() as url:
        (tmp_path / "lost.toml").write_text(BENCHMARK.format(lake="lost", url=url))
        assert salon(*command, "step-1000").code == 0
        n_bought, table, publication = _n_billed(url), cells_of(lake), _publications(lake)
        assert n_bought > 100
        for what, forget in LOST.items():
            forget(lake)
            assert salon(*command, "step-1000").code == 0, what
            assert _n_billed(url) == n_bought, f"stored replies were asked again without {what}"
            assert cells_of(lake).equals(table), what
            assert _publications(lake) == publication, what
        assert "snapshot: " not in salon(*command, "step-1000").err, "nothing was stored since the last one"
        _check_that_a_snapshot_is_compared_once(lake)
        (lake / "ledger.db").unlink()
        assert salon(*command, "step-1000,step-2000").code == 0
        last = runs_of(lake).row(-1, named=True)
        assert last["n_cached"] == n_bought
        assert _n_billed(url) == last["n_requests"] > n_bought


def _check_that_a_snapshot_is_compared_once(lake: Path) -> None:
    """However many nights there were, a run reads the snapshots it has not seen, and writes nothing where it has seen all."""
    with Ledger(f"sqlite:///{lake / 'ledger.db'}") as ledger:
        restore(Lake(lake), ledger)
        state = ledger.state()
        assert restore(Lake(lake), ledger) == 0
        assert ledger.state() == state


def _publications(lake: Path) -> set[str]:
    return {path.parent.name for path in lake.glob("publish/v1/*/*/manifest.json")}
