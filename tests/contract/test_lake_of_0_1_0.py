"""A lake of release 0.1.0, as its commit b9bb978 wrote it, read by this one. A ledger of that release: test_contract.py.

`golden/lake-0.1.0.tar.xz` holds the benchmark file, twelve pictures and the lake of two nights (its Data Docs left out), whose
ledger is of version 1. Judged were step-1 on 2026-10-01, step-1 and step-2 on 2026-10-02. It is never written anew.
"""

import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from salon import Publication, SalonError
from salon import open as open_publication
from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, RUNS, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.lake.reading import PARTITION_KEYS, Lake
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.machine_tables import runs
from tests.flows.conftest import salon as salon  # noqa: PLC0414  a command as a user calls it
from tests.flows.flow_support import Said

ARCHIVE = Path(__file__).parent / "golden" / "lake-0.1.0.tar.xz"
NIGHT = ("run", "benchmark.toml", "--run-date", "2026-10-02", "--checkpoints", "step-1,step-2")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """The folder it was run in, with a ledger of today to come beside the old one."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    file = tmp_path / "benchmark.toml"
    file.write_text(file.read_text().replace('lake = "lake/"', 'lake = "lake/"\nledger = "sqlite:///ledger.db"'))
    return tmp_path


@pytest.fixture
def upgraded(world: Path, salon: Callable[..., Said]) -> Said:
    """The second night run again by this release: what it said."""
    return salon(*NIGHT)


@pytest.mark.parametrize("table", [SAMPLES, JUDGEMENTS, REQUESTS, REPLIES, SCORES], ids=lambda table: table.name)
def test_what_came_to_a_stored_table_since_is_null_in_it(world: Path, table: Table) -> None:
    lake = Lake(world / "lake")
    keys = [path.name.removeprefix(f"{PARTITION_KEYS[table.name]}=") for path in (lake.root / table.name).iterdir()]
    assert len(keys) == 2
    for key in keys:
        read = [lake.scan(table, key).collect(), *(lake.read_part(table, key, part) for part in range(lake.n_parts(table, key)))]
        assert [frame.height for frame in read[1:]] == [6] * (len(read) - 1)
        for frame in read:
            assert {*frame.columns} >= {*table.columns}
            assert all(frame[name].null_count() == frame.height for name in table.later)


def test_what_came_to_the_runs_since_is_declared(world: Path) -> None:
    lake = Lake(world / "lake")
    assert {frozenset(pq.read_schema(path).names) for path in lake.rows_files(RUNS)} == {frozenset(RUNS.columns) - {*RUNS.later}}
    assert runs(lake)["n_input_tokens"].null_count() == 2


@pytest.mark.parametrize("asked", [(), ("--category", "__micro__"), ("--rubric", "alignment")], ids=["all", "micro", "rubric"])
def test_the_means_of_its_publication_are_printed_without_ranks(
    world: Path, salon: Callable[..., Said], asked: tuple[str, ...]
) -> None:
    said = salon("table", *asked)
    assert said.code == 0, said.err
    assert re.search(r"– step-2 +4\.50 \[3\.68, 4\.84\]", said.out)


@pytest.mark.parametrize(
    "asked",
    [Publication.standings, Publication.samples, Publication.report, lambda old: old.table("failures")],
    ids=["standings", "samples", "report", "table"],
)
def test_what_its_publication_lacks_is_refused_with_what_to_do(world: Path, asked: Callable[[Publication], object]) -> None:
    with pytest.raises(SalonError, match=r"has no (table|file) '.*publish it again with this release \(salon run\) to get more$"):
        asked(open_publication(world / "lake"))


def test_salon_duckdb_holds_its_publications_too(world: Path) -> None:
    """They have no tables for machines."""
    with duckdb.connect(str(write_duckdb(world / "lake", "old")), read_only=True) as database:
        long, listed, trend = (
            database.execute(f"SELECT publication_id, count(*) FROM {name} GROUP BY 1 ORDER BY 2").fetchall()
            for name in ("benchmark_long", "publications", "trend")
        )
        leading = database.execute("SELECT checkpoint, estimate, rank_low FROM leaderboard").fetchall()
        ran = database.execute("SELECT run_date::VARCHAR, n_asked FROM runs ORDER BY 1").fetchall()
    assert {name for name, _ in listed} == {name for name, _ in long} == {name for name, _ in trend}
    assert [n for _, n in long] == [4, 8]
    assert [n for _, n in trend] == [1, 2]
    assert leading == [("step-2", 4.5, None), ("step-1", 3.5, None)]
    assert ran == [("2026-10-01", 6), ("2026-10-02", 6)]


def test_verify_says_of_its_publication_that_other_code_published_it(world: Path, salon: Callable[..., Said]) -> None:
    """The file is as it was: its digest is another because settings have other defaults by now."""
    said = salon("verify", "--file", "benchmark.toml")
    assert said.code == 2
    assert re.search(r"b760d4caa47f was published by another version of the code \(babf56c4bcdc; this one is ", said.err)
    assert "publish it again with this one (salon run)" in said.err


def test_its_ledger_is_refused_with_both_ways_on(world: Path, salon: Callable[..., Said]) -> None:
    file = world / "benchmark.toml"
    file.write_text(file.read_text().replace('ledger = "sqlite:///ledger.db"\n', ""))
    said = salon(*NIGHT)
    assert said.code == 3
    assert re.search(r"ledger\.db has version 1, .* commit ca92e04, the last .* Or name another ledger: the next run ", said.err)


@pytest.mark.slow
def test_the_same_run_asks_nothing_publishes_and_is_verified(upgraded: Said, salon: Callable[..., Said]) -> None:
    assert upgraded.code == 0, upgraded.err
    assert "12: 12 stored already, 0 sent" in upgraded.out
    verified = salon("verify")
    assert verified.code == 0, verified.out
    assert "12 rows and 12 pictures against their digests" in verified.out
    with duckdb.connect("lake/publish/v1/old/salon.duckdb", read_only=True) as database:
        rows = database.execute("SELECT publication_id, count(*) FROM benchmark_long GROUP BY 1")
        assert sorted(n for _, n in rows.fetchall()) == [4, 8, 8]


@pytest.mark.slow
def test_the_first_night_of_a_version_says_that_another_read_those_before(world: Path, salon: Callable[..., Said]) -> None:
    """Once: the night after it is of one version with it."""
    told = "earlier nights of the series (2: 2026-10-01 to 2026-10-02) were read and published by another version of the code"
    for day, n_told in ((3, 1), (4, 0)):
        said = salon("run", "benchmark.toml", "--run-date", f"2026-10-0{day}", "--checkpoints", "step-2")
        assert said.code == 0, said.err
        assert " ".join(said.err.split()).count(told) == n_told
