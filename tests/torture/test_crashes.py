"""The short form: a kill at every named point, some faults of each kind, a full disk, SIGTERM. The long form: `make torture`."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from checks import CONCURRENCY, Watch, cells
from harness import COMPILER, N_SAMPLES, ProcessPool, Recorder, make_world, process_pool
from jobs import STOP_LIMIT_S
from points import POINTS

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="faults are preloaded into children: a C compiler (cc) is needed"),
]


@pytest.fixture(scope="module")
def children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPool]:
    with process_pool(tmp_path_factory.mktemp("process-pool")) as started:
        yield started


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.close()


@pytest.fixture(scope="module")
def reference(children: ProcessPool, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    file = make_world(tmp_path_factory.mktemp("reference"))
    end = children.run(file, recorder.url)
    assert end["code"] == 0, end
    return cells(file.parent / "lake")


@pytest.fixture
def strike(
    children: ProcessPool, recorder: Recorder, reference: pl.DataFrame, tmp_path: Path
) -> Callable[..., list[dict[str, Any]]]:  # fmt: skip
    """Runs with one fault after the other over one lake, then a run without: everything must hold all the way."""

    def strike(*faults: dict[str, Any]) -> list[dict[str, Any]]:
        file = make_world(tmp_path / "world")
        watch = Watch(tmp_path / "world" / "lake", recorder)
        ends = []
        for fault in faults:
            ends.append(children.run(file, recorder.url, **fault))
            assert watch.after(ends[-1]) == [], fault
        assert watch.at_the_end(children.run(file, recorder.url), reference) == []
        return ends

    return strike


def test_a_kill_at_every_named_point(strike: Callable[..., Any]) -> None:
    """One lake dies at all points in turn, as it grows; each must really have been reached."""
    ends = strike(*({"point": point.name, "event": point.event, "nth": point.nth} for point in POINTS))
    missed = [point.about for point, end in zip(POINTS, ends, strict=True) if end["code"] != -9]
    assert missed == []


@pytest.mark.parametrize("kind", ["write", "fsync", "rename", "connect"])
def test_a_call_that_fails_loses_nothing(strike: Callable[..., Any], kind: str) -> None:
    places = {"write": (3, 40, 200), "fsync": (2, 30, 120), "rename": (1, 9, 30), "connect": (1, 3)}[kind]
    ends = strike(*({"kind": kind, "action": "fail", "n": n} for n in places))
    assert {end["code"] for end in ends} <= {0, 3}


def test_a_disk_that_fills_up_stops_the_spending(strike: Callable[..., Any], recorder: Recorder) -> None:
    n_before = len(recorder.billed)
    ends = strike(*({"kind": "write", "action": "full", "n": n_bytes} for n_bytes in (60_000, 180_000)))
    assert [end["code"] for end in ends] == [3, 3]
    assert all("space" in end["said"] or "No space" in end["said"] for end in ends), [end["said"] for end in ends]
    assert len(recorder.billed) - n_before <= 40 + 2 * CONCURRENCY


def test_sigterm_drains_and_pays_nothing_twice(strike: Callable[..., Any], recorder: Recorder) -> None:
    n_before = len(recorder.billed)
    ends = strike(*({"after_s": after_s, "signal": "SIGTERM"} for after_s in (0.15, 0.4, 1.0)))
    assert [end["code"] for end in ends if end["is_struck"]] == [143] * sum(end["is_struck"] for end in ends)
    assert max(end["cpu_after_signal_s"] or 0 for end in ends) < STOP_LIMIT_S
    assert len(recorder.billed) - n_before == 40


def test_eight_at_once_buy_each_reply_once_and_publish_once(
    children: ProcessPool, recorder: Recorder, reference: pl.DataFrame, tmp_path: Path
) -> None:
    """One of them is killed on the way: the others take over what it had claimed, at once."""
    file = make_world(tmp_path / "world")
    watch = Watch(file.parent / "lake", recorder)
    n_before = len(recorder.arrived_ns)
    ends = children.run_at_once(8, file, recorder.url, after_s=0.6, signal="SIGKILL")
    arrived_ns = recorder.arrived_ns[n_before:]
    assert [end["code"] for end in ends[1:]] == [0] * 7, [end["said"] for end in ends]
    said = [end["said"].splitlines()[-1].split() for end in ends[1:]]
    assert len({words[1] for words in said}) == 1  # one publication
    assert sum(words[0] == "published" for words in said) <= 1  # written by one of them; the others found it
    assert watch.at_the_end(children.run(file, recorder.url), reference) == []
    waited_ns = max((after - before for before, after in pairwise(arrived_ns)), default=0)
    assert waited_ns < 45e9, "the dead one's claims were waited for until they expired"


@pytest.fixture(scope="module")
def trace(children: ProcessPool, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The system's own calls of a run with so many requests at once, each run made once; the lake beside it."""

    @cache
    def traced(concurrency: int) -> Path:
        file = make_world(tmp_path_factory.mktemp("traced"))
        file.write_text(file.read_text().replace("concurrency = 8", f"concurrency = {concurrency}"))
        assert children.run(file, recorder.url, kind="write", action="trace", n=0)["code"] == 0
        return file.parent / "lake.trace"

    return traced


def test_what_takes_a_place_is_on_the_disk_before_and_its_folder_after(trace: Callable[[int], Path]) -> None:
    """The order of the system's own calls: fsync(file), rename, fsync(folder), for every file that readers look at.

    Folders that were made for it are in theirs before.
    """
    lake = trace(8).with_name("lake")
    calls = [line.split("\t") for line in trace(8).read_text().splitlines()]
    synced: set[str] = set()
    n_seen = 0
    for place, (what, source, target) in enumerate(calls):
        if what == "fsync":
            synced.add(source)
        if what != "rename":
            continue
        synced |= {target + path[len(source) :] for path in synced if path == source or path.startswith(f"{source}/")}
        if _is_apart(lake, target):
            continue
        n_seen += 1
        arrived = Path(target)
        files = [str(path) for path in arrived.rglob("*") if path.is_file()] if arrived.is_dir() else [target]
        assert set(files) <= synced, f"{target} took its place before it was on the disk"
        assert ["fsync", str(arrived.parent), ""] in calls[place:], f"the folder of {target} is not synced after the rename"
        for folder in [one for one in arrived.parents if one.is_relative_to(lake) and one != lake]:
            assert ["fsync", str(folder.parent), ""] in calls[:place], f"{folder} was made, and not synced before {target}"
    assert n_seen > 10


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_reply_is_on_the_disk_before_anyone_is_told(trace: Callable[[int], Path], concurrency: int) -> None:
    """The order of the system's own calls: the reply's bytes are received, the ledger's log is synced, the reply is acknowledged.

    With one request in flight that is said of each reply. With eight, no more are acknowledged than had arrived at the last sync.
    """
    n_received = n_durable = n_acknowledged = 0
    for line in trace(concurrency).read_text().splitlines():
        what, path, _ = line.split("\t")
        if what == "received":
            n_received += 1
        elif what == "fsync" and path.endswith("/ledger.db-wal"):
            n_durable = n_received
        elif what == "acknowledged":
            n_acknowledged += 1
            assert n_acknowledged <= n_durable, "a reply was acknowledged before it was on the disk"
    assert n_acknowledged == n_received == N_SAMPLES


def _is_apart(lake: Path, target: str) -> bool:
    """Renames inside the staging folder and of the data docs, which no reader relies on."""
    inside = Path(target).relative_to(lake).parts
    return inside[0] in ("staging", "data_docs")
