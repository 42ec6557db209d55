"""A publication that may be newer than the current one and cannot be read: the gate cannot tell, all else goes on and says so."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from schemas.tables.stored import RUNS
from tasks.lake.reading import Lake
from tasks.publish.folders import PublicationName
from tasks.publish.machine_tables import record_run
from tasks.publish.publication import Draft, publish
from tasks.publish.report.index import write_index
from tasks.publish.withdrawn import Withdrawal, note_withdrawn
from tests.flows.commands.printed.test_table_command import cell, tables_of
from tests.flows.commands.test_gate import DAY, tables_that_pass
from tests.flows.flow_support import Said
from tests.support.small_lake import filled_row

SHORT = "e" * 64
NEWER = Withdrawal(SHORT, "nightly", "2026-11-04", "2026-11-05T00:00:00+00:00", "host", "a clock was ahead", 0)
SPOILED = {
    "the manifest, truncated": ("manifest.json", '{"benchmark": "night'),
    "the manifest, gone": ("manifest.json", None),
    "the manifest, without a key": ("manifest.json", '{"files": {}, "benchmark": "nightly"}'),
    "the table, truncated": ("benchmark_long.parquet", "PAR1"),
    "the table, gone": ("benchmark_long.parquet", None),
    "the failures, truncated": ("failures.parquet", "PAR1"),
    "the withdrawal, truncated": (f"withdrawn/{SHORT}.json", '{"n_ru'),
    "the withdrawal, without a key": (f"withdrawn/{SHORT}.json", "{}"),
}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A whole current publication whose gate passes, and a newer one that lacks replies."""
    root = tmp_path / "lake"
    assert publish(
        root, Draft(PublicationName("nightly", "f" * 64, DAY), tables_that_pass(), {}, {"report.html": b""})
    ).is_current
    cells = [cell("painter", 7.0, n_failed=9, why={"server_error": 9}, cell_id="c" * 12)]
    assert not publish(root, Draft(PublicationName("nightly", SHORT, date(2026, 11, 4)), tables_of(cells), {})).is_current
    return root


def spoil(lake: Path, name: str, content: str | None) -> Path:
    path = lake / name if name.startswith("withdrawn") else lake / "publish" / "v1" / "nightly" / SHORT / name
    if content is None:
        path.unlink()
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return path


@pytest.mark.parametrize(("name", "content"), SPOILED.values(), ids=SPOILED.keys())
def test_what_cannot_be_read_is_not_passed_over_and_stops_nothing(
    salon: Callable[..., Said], lake: Path, name: str, content: str | None
) -> None:
    path = spoil(lake, name, content)
    gate = salon("gate")
    says = SHORT[:12] if name == "manifest.json" else f"{SHORT[:12]} of 2026-11-04"
    told = gate.out.partition("Undecided: the newest publication may not have been looked at, ")[2].partition("\n")[0]
    assert (gate.code, says in told) == (1, True), gate
    assert str(path.relative_to(lake.parent)) in told
    assert "restore it" in told or "withdraw that publication again" in told
    assert salon("gate", "--allow-unknown").code == salon("gate", "ffff").code == 0
    read = json.loads(salon("gate", "--format", "json").out)
    assert (read["outcome"], read["not_looked_at"]["is_read"]) == ("unknown", False)
    table, csv, page = salon("table"), salon("table", "--format", "csv"), salon("open")
    assert (table.code, csv.code, page.code) == (0, 0, 0), (table, csv, page)
    for said in (table.out, csv.err, page.err):
        assert f"a publication that may be newer, {says}" in " ".join(said.split())
    assert "may be newer" not in salon("table", "--good").out
    index = write_index(lake).read_text()
    assert f"a publication that may be newer, {says}" in index
    assert path.name in index


@pytest.mark.parametrize(("why", "is_asked"), [("server_error", True), ("refusal", False)])
def test_missing_replies_are_asked_for_where_replies_are_missing(
    salon: Callable[..., Said], lake: Path, why: str, is_asked: bool
) -> None:
    cells = [cell("painter", None, n_failed=9, why={why: 9}, cell_id="c" * 12, status="blocked", reason=why)]
    publish(lake, Draft(PublicationName("nightly", "a" * 64, date(2026, 11, 5)), tables_of(cells), {}))
    told = " ".join(salon("table").out.split())
    assert "a newer publication, aaaaaaaaaaaa of 2026-11-05, did not become current: none of its cells has an estimate" in told
    assert ("the same command again asks for missing replies" in told) == is_asked
    assert "salon table --publication aaaaaaaaaaaa shows what it has" in told


def test_a_date_that_is_none_is_told_of(salon: Callable[..., Said], lake: Path) -> None:
    manifest = lake / "publish" / "v1" / "nightly" / SHORT / "manifest.json"
    manifest.write_text(manifest.read_text().replace("2026-11-04", "2x"))
    gate = salon("gate")
    assert (gate.code, f"{SHORT} (Invalid isoformat string: '2x'); restore it" in gate.out) == (1, True), gate


def test_only_the_withdrawal_of_the_newer_one_matters(salon: Callable[..., Said], lake: Path) -> None:
    note_withdrawn(lake, NEWER)
    assert salon("gate").code == 0, "it was taken back"
    spoil(lake, f"withdrawn/{'d' * 64}.json", "{")
    assert salon("gate").code == 0
    assert "taken back" in write_index(lake).read_text()


def test_the_index_goes_on_where_an_older_one_cannot_be_read(lake: Path) -> None:
    tables = tables_of([cell("painter", 7.0, cell_id="c" * 12)])
    old = PublicationName("older", "a" * 64, DAY)
    publish(lake, Draft(old, tables, {}))
    publish(lake, Draft(replace(old, publication_id="b" * 64, run_date=date(2026, 11, 2)), tables, {}))
    manifest = lake / "publish" / "v1" / "older" / ("b" * 64) / "manifest.json"
    manifest.write_text("{")
    note_withdrawn(lake, NEWER)
    spoil(lake, f"withdrawn/{'f' * 64}.json", "{")
    page = write_index(lake).read_text()
    assert page.count(str(manifest)) == 1
    assert page.count(f"{'f' * 64}.json") == 1
    assert page.count("taken back") == 1


def test_of_one_run_date_the_newest_is_the_one_that_a_run_made_last(salon: Callable[..., Said], lake: Path) -> None:
    """By the table `runs`: a copy of a lake has other files' times."""
    home, late = lake / "publish" / "v1" / "nightly", "d" * 64
    short = tables_of([cell("painter", 7.0, n_failed=9, why={"server_error": 9}, cell_id="c" * 12)])
    publish(lake, Draft(PublicationName("nightly", late, DAY), short, {}))
    note_withdrawn(lake, NEWER)
    for hour, id_ in enumerate((late, "f" * 64, late)):  # the last one found it
        ended = datetime(2026, 11, 3, hour, tzinfo=UTC)
        record_run(Lake(lake), filled_row(RUNS, benchmark="nightly", publication_id=id_, started_at=ended, finished_at=ended))
    assert salon("gate").code == 0, "its run ended before the current one's"
    for number, path in enumerate(sorted((lake / "runs").glob("*.parquet"))[:2]):
        ended = datetime(2026, 11, 4 - number, tzinfo=UTC)
        pl.read_parquet(path).with_columns(finished_at=pl.lit(ended)).write_parquet(path)
        os.utime(home / ("f" * 64) / "manifest.json", (2e9, 2e9))
    gate = salon("gate")
    assert (gate.code, f"a newer publication, {late[:12]} of {DAY}" in gate.out) == (1, True), gate
    path.write_bytes(b"PAR1")
    gate = salon("gate")
    assert (gate.code, f"{path.relative_to(lake.parent)} is not a table runs" in gate.out) == (1, True), gate
    assert salon("table").code == 0
