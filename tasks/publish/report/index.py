"""The index over a lake's publications, publish/v1/index.html, made anew after each. It may change; publications may not.

Here stands what is no part of a publication: runs, what they cost and found stored, nights and alarms, people's agreement.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import polars as pl

from schemas.errors import CorruptLakeError
from schemas.lineage import Checkpoint
from schemas.statuses.cells import Total
from schemas.statuses.people import Against, AgreementMetric, Assessor
from schemas.tables.agreement import AGREEMENT
from schemas.tables.nights import EXAM
from schemas.tables.published import (
    BENCHMARK_LONG,
    COMPARISONS,
    FAILURES,
    POSITION_BIAS,
    PREFERENCE_RATINGS,
    PREFERENCES,
    STANDINGS,
)
from schemas.tables.stored import RUNS
from schemas.tables.table import Row, Table
from tasks.lake.atomic_files import locked, write_bytes
from tasks.lake.object_store.cache_folder import bring, fresh
from tasks.lake.small_files import read_files
from tasks.publish.caveats import Newer, newer_than
from tasks.publish.folders import AGREEMENTS, INDEX, LAYOUT, PARTITIONS_PAGE, POINTER, REPORT
from tasks.publish.pointer import read_pointer
from tasks.publish.reading import Publication, checked_file, readable
from tasks.publish.report.boards import Board, answers_first, boards, glance, newest
from tasks.publish.report.environment import render
from tasks.publish.report.night_series import Nights, nights
from tasks.publish.standings.pair_boards import PairBoard, pair_boards
from tasks.publish.votes_page import ALL
from tasks.publish.withdrawn import each_taken_back

N_RUNS = 40  # the newest; the table `runs` holds all
N_CHARTED = 6  # drawings of nights in all: each takes 0.05 s

Behind = Callable[[Path, str], Sequence[str]]
"""Of a lake and a benchmark: that its newest night did not become current, in sentences. Nights are known to flows."""
_SMALL = (BENCHMARK_LONG, COMPARISONS, STANDINGS, FAILURES, EXAM, PREFERENCES, PREFERENCE_RATINGS, POSITION_BIAS)


@dataclass(frozen=True, slots=True)
class Entry:
    """A publication in the list; `link` to its page is None where it was published without one."""

    publication_id: str
    run_date: str
    link: str | None
    is_current: bool
    is_withdrawn: bool


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark: its publications, newest first, the current one's answers and rankings, its nights, people's agreement."""

    name: str
    entries: list[Entry]
    headlines: list[Board]
    pairs: list[PairBoard]
    answers: dict[tuple[str, str], list[str]]
    glance: list[tuple[tuple[str, str], list[Row | None]]]
    newest: set[Checkpoint]
    nights: Nights | None
    agreement: list[Row]
    partitions: str | None
    newer: Newer | None
    behind: Sequence[str]

    @property
    def current(self) -> Entry | None:
        """The publication the pointer names."""
        return next((entry for entry in self.entries if entry.is_current), None)


def write_index(lake_root: Path, behind: Behind = lambda *_: ()) -> Path:
    """Write the index atomically and return its path. Opens one publication of each benchmark, however many there are.

    A benchmark whose pointer, or what it shows of the publication that it names, is not whole is named, and not shown. Raises
    StoreError where the disk refuses.
    """
    home = lake_root / "publish" / LAYOUT
    with locked(lake_root, "index"):  # of two runs that end together the later one lists both
        write_bytes(index_page(lake_root, behind), home / INDEX, lake_root / "staging")
    return home / INDEX


def index_page(lake_root: Path, behind: Behind) -> bytes:
    """The index as UTF-8 HTML."""
    home = lake_root / "publish" / LAYOUT
    by_name: dict[str, list[Publication]] = {}
    whole, spoiled = readable(lake_root)
    for publication in whole:
        by_name.setdefault(publication.benchmark, []).append(publication)
    for pointer in home.glob(f"*/{AGREEMENTS}/{POINTER}"):  # also where nothing else was published
        by_name.setdefault(pointer.parents[1].name, [])
    for name in [name for name, mine in by_name.items() if not any(one.is_current for one in mine)]:
        if (home / name / POINTER).exists():  # the one it names cannot be read: none of the others is what readers are to see
            del by_name[name]
    newest_first = sorted(by_name, key=lambda name: (_run_date(home / name, by_name[name]), name), reverse=True)
    found, n_left = [], N_CHARTED
    gone, faults = each_taken_back(lake_root, [one.publication_id for one in whole])
    faults |= {id_: str(error) for id_, error in spoiled.items()}
    for name in newest_first:
        try:
            made = _benchmark(home, name, by_name[name], gone, n_left, behind(lake_root, name))
        except (CorruptLakeError, OSError) as error:  # what one benchmark lost ends no run of another
            faults[name] = str(error)
            continue
        n_left -= len(made.nights.figures) if made.nights else 0
        found.append(made)
    try:
        runs = _last_runs(lake_root)
    except CorruptLakeError as error:
        runs, faults[f"{RUNS.name}/"] = [], str(error)  # no benchmark has this name
    tables = {table.name: table for table in (RUNS, AGREEMENT)}
    told = {one.newer.publication_id for one in found if one.newer}
    not_read = list(dict.fromkeys(fault for id_, fault in faults.items() if id_ not in told))  # of a pointer once
    return render("index.html.j2", benchmarks=found, not_read=not_read, runs=runs, tables=tables)


def _run_date(home: Path, mine: Sequence[Publication]) -> str:
    try:
        return mine[-1].run_date if mine else (read_pointer(home / AGREEMENTS) or {}).get("run_date", "")
    except CorruptLakeError:
        return ""  # _agreement() says so


def _benchmark(
    home: Path, name: str, mine: list[Publication], gone: Collection[str], n_charted: int, behind: Sequence[str]
) -> Benchmark:
    entries = [
        Entry(one.publication_id, one.run_date, _link(one), one.is_current, one.publication_id in gone)
        for one in sorted(mine, key=lambda one: (one.run_date, one.is_current, one.publication_id), reverse=True)
    ]
    current = next((one for one in mine if one.is_current), None)
    tables = _small_tables(current) if current else {}
    headlines = [board for board in boards(tables) if board.is_headline] if current else []
    pairs = pair_boards(tables)
    return Benchmark(
        name,
        entries,
        headlines,
        [board for board in pairs if board.is_headline],
        answers_first(tables, pairs) if current else {},
        glance(headlines),
        newest(tables),
        nights(home / name, n_charted),
        _agreement(home / name),
        _partitions(home / name),
        newer_than(home.parents[1], current) if current else None,
        behind,
    )


def _small_tables(publication: Publication) -> dict[Table, pl.DataFrame]:
    names = {table: f"{table.name}.parquet" for table in _SMALL if f"{table.name}.parquet" in publication.files}
    return {table: pl.read_parquet(checked_file(publication, name)) for table, name in names.items()}


def _link(publication: Publication) -> str | None:
    path = f"{publication.folder.parent.name}/{publication.folder.name}/{REPORT}"
    is_there = REPORT in publication.files or (publication.folder / REPORT).is_file()
    return f"./{quote(path)}" if is_there else None


def _partitions(home: Path) -> str | None:
    """The link to the page of partitions, where one was written."""
    fresh(home / PARTITIONS_PAGE)
    return f"./{quote(home.name)}/{PARTITIONS_PAGE}" if (home / PARTITIONS_PAGE).is_file() else None


def _agreement(home: Path) -> list[Row]:
    """The judges' rank correlation with the raters' mean over all samples, from the current agreement."""
    fresh(home / AGREEMENTS / POINTER)
    pointer = read_pointer(home / AGREEMENTS)
    path = home / AGREEMENTS / pointer["publication_id"] / f"{AGREEMENT.name}.parquet" if pointer else None
    if path is None or not bring(path).is_file():
        return []
    rows = read_files([path], AGREEMENT).filter(
        metric=AgreementMetric.SPEARMAN.value,
        against=Against.RATERS_MEAN.value,
        model=ALL,
        category=Total.MICRO.value,
        subject_kind=Assessor.JUDGE.value,
    )
    return rows.sort("rubric_id", "dimension", "subject").to_dicts()


def _last_runs(lake_root: Path) -> list[Row]:
    """The newest runs, newest first: their files are named by their start."""
    paths = sorted((lake_root / RUNS.name).glob("*.parquet"), reverse=True)[:N_RUNS]
    found = read_files(paths, RUNS) if paths else None
    return [] if found is None else found.sort("started_at", "benchmark", descending=True).to_dicts()
