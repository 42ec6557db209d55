"""What changes while it is read: readers of the living tables and of salon.duckdb see one version, whoever writes meanwhile."""

import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from schemas.errors import CorruptLakeError
from schemas.tables.nights import DRIFT
from schemas.tables.stored import RUNS
from tasks.lake.atomic_files import locked
from tasks.lake.reading import Lake
from tasks.publish.duckdb_file import NAME, write_duckdb
from tasks.publish.living_tables import KEPT_S, living_table, write_living_table
from tasks.publish.machine_tables import record_run, runs
from tests.support.small_lake import filled_row

pytestmark = pytest.mark.slow

DAY = date(2026, 11, 3)
N_RUNS_EACH, N_READERS = 4, 4


def version(n: int) -> pl.DataFrame:
    """Version n of drift: n rows (versions differ in length) that all say n."""
    return DRIFT.frame(
        [filled_row(DRIFT, run_date=DAY + timedelta(days=i), estimate=float(n), benchmark="nightly") for i in range(n)]
    )


def finish(lake: Lake, n: int) -> None:
    """What two runs that end together do to what lives on."""
    started = datetime(2026, 11, 3, tzinfo=UTC) + timedelta(seconds=n)
    record_run(lake, filled_row(RUNS, benchmark="nightly", started_at=started, finished_at=started))
    with locked(lake.root, "derived-nightly"):
        write_living_table(lake.root, DRIFT, "nightly", version(n))
        write_duckdb(lake.root, "nightly")


def is_one_version(estimates: list[float]) -> bool:
    return set(estimates) <= {float(len(estimates))}


def of_drift(lake_root: Path, read: Callable[[Path], list[float]]) -> bool:
    home = lake_root / "publish/v1/nightly"
    return is_one_version(read(home / json.loads((home / "drift.json").read_bytes())["path"]))


def of_file(lake_root: Path) -> bool:
    with duckdb.connect(str(lake_root / "publish/v1/nightly" / NAME), read_only=True) as database:
        return is_one_version([one for (one,) in database.execute("SELECT estimate FROM drift").fetchall()])


def in_duckdb(question: str) -> list[float]:
    with duckdb.connect() as database:
        return [one for (one,) in database.execute(question).fetchall()]


def globbed(lake_root: Path) -> str:
    return f"{lake_root}/publish/v1/tables/runs/*/*.parquet"


READERS: dict[str, Callable[[Path], bool]] = {
    "drift, Polars": lambda root: of_drift(root, lambda path: pl.read_parquet(path)["estimate"].to_list()),
    "drift, pyarrow": lambda root: of_drift(root, lambda path: pq.read_table(path)["estimate"].to_pylist()),
    "drift, pandas": lambda root: of_drift(root, lambda path: pd.read_parquet(path)["estimate"].to_list()),
    "drift, DuckDB": lambda root: of_drift(root, lambda path: in_duckdb(f"SELECT estimate FROM '{path}'")),
    "drift, ours": lambda root: is_one_version(
        pl.read_parquet(living_table(root, DRIFT, "nightly") or Path())["estimate"].to_list()
    ),
    "runs, Polars": lambda root: pl.scan_parquet(globbed(root), hive_partitioning=True).collect().height > 0,
    "runs, pandas": lambda root: len(pd.read_parquet(Path(globbed(root)).parents[1])) > 0,
    "runs, DuckDB": lambda root: in_duckdb(f"SELECT count(*) FROM '{globbed(root)}'") > [0],
    "runs, ours": lambda root: runs(Lake(root)).height > 0,
    "salon.duckdb": of_file,
}


@pytest.fixture
def root(small_lake, put) -> Iterator[Path]:
    put(small_lake.lake.root, small_lake.cells)
    finish(small_lake.lake, 1)
    return small_lake.lake.root


def test_readers_see_one_version_while_two_runs_end_together(root: Path) -> None:
    failed: list[str] = []
    n_read = dict.fromkeys(READERS, 0)

    def write(which: int) -> None:
        for n in range(N_RUNS_EACH):
            finish(Lake(root), 2 + which + 29 * n)

    def read(which: int) -> None:
        turns = itertools.cycle(sorted(READERS)[which::N_READERS])
        while any(thread.is_alive() for thread in writers):
            name = next(turns)
            try:
                n_read[name] += 1
                if not READERS[name](root):
                    failed.append(f"{name}: rows of two versions")
            except BaseException as error:  # noqa: BLE001 (Polars panics)
                failed.append(f"{name}: {error!r}"[:200])

    writers = [threading.Thread(target=write, args=(which,)) for which in range(2)]
    readers = [threading.Thread(target=read, args=(which,)) for which in range(N_READERS)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in (*writers, *readers):
        thread.join()
    assert failed == []
    assert min(n_read.values()) > 1
    assert runs(Lake(root)).height == 1 + 2 * N_RUNS_EACH
    with duckdb.connect(str(root / "publish/v1/nightly" / NAME), read_only=True) as database:
        counted = database.execute("SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM drift)").fetchone()
    newest = living_table(root, DRIFT, "nightly")
    assert newest is not None
    assert counted == (1 + 2 * N_RUNS_EACH, pq.read_metadata(newest).num_rows)  # who wrote last had read everything


def test_a_version_stays_as_long_as_a_reader_may_open_it(root: Path) -> None:
    """From when the next one was written: one of last night is a day old as it is superseded."""
    first = living_table(root, DRIFT, "nightly")
    assert first is not None
    days_ago = [time.time() - n * KEPT_S - 1 for n in (1, 2)]
    os.utime(first, (days_ago[1],) * 2)
    second = write_living_table(root, DRIFT, "nightly", version(2))
    assert first.exists()
    os.utime(second, (days_ago[0],) * 2)
    third = write_living_table(root, DRIFT, "nightly", version(3))
    assert (first.exists(), second.exists()) == (False, True)
    assert write_living_table(root, DRIFT, "nightly", version(3)) == third  # the same is the same file
    assert living_table(root, DRIFT, "nightly") == third


@pytest.mark.parametrize(
    ("is_pointer", "content"),
    [(False, None), (False, b"PAR1, and no more"), (True, b"\xff{"), (True, b"[]")],
    ids=["gone", "other bytes", "pointer no text", "pointer no object"],
)
def test_a_version_that_is_not_what_was_written_is_named(root: Path, is_pointer: bool, content: bytes | None) -> None:
    newest = living_table(root, DRIFT, "nightly")
    assert newest is not None
    path = root / "publish/v1/nightly/drift.json" if is_pointer else newest
    path.unlink()
    if content:
        path.write_bytes(content)
    with pytest.raises(CorruptLakeError, match=r"drift\.json"):
        living_table(root, DRIFT, "nightly")


def test_no_older_file_goes_through_a_link(tmp_path: Path) -> None:
    lake, others = tmp_path / "lake", tmp_path / "others"
    home = lake / "publish" / "v1" / "nightly"
    home.mkdir(parents=True)
    others.mkdir()
    (others / "thesis.parquet").write_text("another's")
    os.utime(others / "thesis.parquet", (0, 0))
    (home / DRIFT.name).symlink_to(others)
    write_living_table(lake, DRIFT, "nightly", version(1))
    assert living_table(lake, DRIFT, "nightly") is not None
    assert (others / "thesis.parquet").read_text() == "another's"
