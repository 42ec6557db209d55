"""What was changed or rotted on the disk since it was written: named at once, exit code 3, and nothing is published from it."""

import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from flows.cli import run
from flows.nights.own_rubrics import rubrics_of_night
from schemas.errors import CorruptLakeError
from schemas.tables.catalogue import TABLES
from schemas.tables.stored import CHECKS, PICTURES, QUARANTINE
from tasks.lake.reading import Lake
from tasks.publish.machine_tables import changed_tables
from tasks.validate.buckets import PARTITIONS
from tasks.verify.partitions import adopt
from tasks.verify.publication import check_manifest, check_pointer
from tests.support.painting import COUNTING, paint, scenes

BENCHMARK = scenes("kept", where=COUNTING)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    paint(folder)
    (folder / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    assert run(["run", str(folder / "b.toml"), "--run-date", "2026-01-02"]) == 0
    return folder


def in_table(name: str) -> Callable[[Path], None]:
    """One bit flipped in the middle of a part of the table: half of such flips no reader of Parquet notices."""

    def flip(lake: Path) -> None:
        part = next((lake / name).rglob("part-*.parquet"))
        content = bytearray(part.read_bytes())
        content[len(content) // 3] ^= 1
        part.write_bytes(content)

    return flip


def in_samples(lake: Path) -> None:
    """A letter of a prompt, behind the pictures."""
    part = next((lake / "samples").rglob("part-*.parquet"))
    content = bytearray(part.read_bytes())
    content[-2000] ^= 1
    part.write_bytes(content)


def in_pictures(lake: Path) -> None:
    """A bit of a picture; what was asked about it is forgotten, so that it is to be sent."""
    part = next((lake / "pictures").rglob("part-*.parquet"))
    content = bytearray(part.read_bytes())
    places = [found.start() for found in re.finditer(b"IDAT", content)]  # some in Parquet's own statistics
    content[places[len(places) // 2] + 40] ^= 1
    part.write_bytes(content)
    _forget_answers(lake)


def _forget_answers(lake: Path) -> None:
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (lake / name).unlink(missing_ok=True)
    for name in ("replies", "complete/replies", "taken"):
        shutil.rmtree(lake / name)


def ledger_text(lake: Path) -> None:
    """Somebody's UPDATE; the snapshot is to be taken anew."""
    with closing(sqlite3.connect(lake / "ledger.db")) as ledger, ledger:
        ledger.execute("UPDATE replies SET reply_text = 'Score: 5' WHERE request_key = (SELECT min(request_key) FROM replies)")
    shutil.rmtree(lake / "taken")


def ledger_bytes(lake: Path) -> None:
    """A digit of a stored reply, in the file itself."""
    path = lake / "ledger.db"
    with closing(sqlite3.connect(path)) as ledger, ledger:
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"Score: 5", b"Score: 4", 1))
    shutil.rmtree(lake / "taken")


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "requests": (in_table("requests"), "requests/"),
    "replies": (in_table("replies"), "replies/"),
    "scores": (in_table("scores"), "scores/"),
    "checks": (in_table("checks"), "checks/"),
    "judgements": (in_table("judgements"), "judgements/"),
    "samples": (in_samples, "samples/"),
    "a picture": (in_pictures, "pictures/"),
    "the ledger's text": (ledger_text, "are not what was received"),
    "the ledger's bytes": (ledger_bytes, "are not what was received"),
}


@pytest.mark.parametrize(("rot", "named"), CASES.values(), ids=CASES.keys())
def test_what_rotted_is_named_at_once_and_nothing_is_published(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], rot: Callable[[Path], None], named: str
) -> None:
    shutil.copytree(home, tmp_path / "home", ignore=shutil.ignore_patterns("data_docs", "staging"))
    home = tmp_path / "home"
    rot(home / "lake")
    started = time.monotonic()
    assert run(["run", str(home / "b.toml"), "--run-date", "2026-01-03"]) == 3
    said = capsys.readouterr().err
    assert named in said
    assert re.search("run (the same command )?again", " ".join(said.split()))
    assert "Traceback" not in said
    assert time.monotonic() - started < 11  # trying again would not mend it, and takes 12 s
    assert len([*(home / "lake/publish/v1/kept").glob("*/manifest.json")]) == 1


def test_a_partition_that_was_cut_short_is_named_before_anything_is_asked(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run's end would meet it once all is bought and published."""
    shutil.copytree(home, tmp_path / "home", ignore=shutil.ignore_patterns("data_docs", "staging"))
    home = tmp_path / "home"
    cut = next((home / "lake" / "partitions" / "kept").glob("*.parquet"))
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    _forget_answers(home / "lake")
    assert run(["run", str(home / "b.toml"), "--run-date", "2026-01-03"]) == 3
    assert cut.name in capsys.readouterr().err.replace("\n", "")
    assert not (home / "lake" / "replies").exists()
    assert len([*(home / "lake/publish/v1/kept").glob("*/manifest.json")]) == 1


@pytest.mark.parametrize("name", ["kept", "another"])
def test_an_older_publication_that_cannot_be_read_keeps_no_run_back(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Of the run's own benchmark it is named and left out, also by the doctor and at the gate; nothing is cleared beside it."""
    shutil.copytree(home, tmp_path / "home", ignore=shutil.ignore_patterns("data_docs", "staging"))
    home = tmp_path / "home"
    file, lake = home / "b.toml", home / "lake"
    assert run(["run", str(file), "--run-date", "2026-01-03"]) == 0
    manifest = next(path for path in (lake / "publish/v1/kept").glob("*/manifest.json") if "2026-01-02" in path.read_text())
    manifest.write_bytes(bytes(40))
    file.write_text(file.read_text().replace('"kept"', f'"{name}"'))
    capsys.readouterr()
    assert run(["run", str(file), "--run-date", "2026-01-04"]) == 0
    is_own = name == "kept"
    assert (f"salon.duckdb: {manifest}" in capsys.readouterr().err.replace("\n", "")) == is_own
    assert run(["doctor", str(file)]) == (3 if is_own else 0)
    assert ("publications" in capsys.readouterr().out) == is_own
    assert run(["gate", "--lake", str(lake), "--benchmark", name, "--baseline", "demo-painter/step-1000"]) == 1, "can't tell"
    assert "could not be read" not in capsys.readouterr().out, "it is known to be older: the table runs has its date"
    assert run(["gc", "--lake", str(lake)]) == 3
    with duckdb.connect(str(lake / f"publish/v1/{name}/salon.duckdb"), read_only=True) as database:
        dates = database.execute("SELECT CAST(run_date AS VARCHAR) FROM publications ORDER BY run_date").fetchall()
    assert [day for (day,) in dates] == ["2026-01-03"] * is_own + ["2026-01-04"]


MADE_ANEW = re.compile(
    r"ledger\.db.*|lake\.json|locks/.*|publish/v1/(index\.html|kept/partitions\.html|kept/salon\.duckdb|tables/runs/.*)|runs/.*|partitions/.*"
    r"|(planned|sources|taken|tiles|verdicts)/.*"
)
"""Files that no publication is made of. The ledger is in CASES; pages of many publications and salon.duckdb are made anew by each
run; `runs` is no part of a publication; notes of what is done already lead to content that has digests of its own.
Tiles are in test_tile_cache.py, lake.json in test_lake_identity.py."""
CHECKED = {table.name for table in (*PARTITIONS, PICTURES, CHECKS, QUARANTINE)}


def _kind(lake: Path, path: Path) -> str:
    name = path.relative_to(lake).as_posix()
    return re.sub(r"[0-9a-f]{64}", "ID", re.sub(r"-\d{3,5}\.", "-N.", name))


def _found(lake: Path, scratch: Path) -> list[str]:
    """What digests say of a lake, nothing being made again."""
    (folder,) = (path.parent for path in (lake / "publish/v1/kept").glob("*/manifest.json"))
    found = [str(one) for one in (*check_manifest(folder), *check_pointer(folder))]
    try:
        found += changed_tables(lake, folder)
    except (ValueError, LookupError, TypeError) as error:
        found.append(f"tables.json cannot be read: {error}")
    for digest, name in ((path.parent.name, path.name) for path in (lake / "rubrics").glob("*/*")):
        if not rubrics_of_night(lake, {name: digest}, {}):  # left out: another digest, or no rubric
            found.append(f"rubric {name}: not of the digest {digest}")
    for marker in sorted((lake / "complete").glob("*/*.json")):
        table = TABLES[marker.parent.name]
        assert table.name in CHECKED
        try:
            differences, _ = adopt(Lake(lake), Lake(scratch / marker.parent.name), table, marker.stem)
            found += map(str, differences)
            Lake(lake).parts(table, marker.stem)
        except (CorruptLakeError, ValueError, LookupError, TypeError, AttributeError) as error:
            found.append(f"{marker}: {error}")
    return found


def test_a_flipped_bit_in_any_kind_of_file_is_found_by_a_digest(home: Path, tmp_path: Path) -> None:
    """One file of each kind that a publication is or is made of, a bit at its beginning, in its middle and at its end."""
    lake = tmp_path / "lake"
    shutil.copytree(home / "lake", lake, ignore=shutil.ignore_patterns("data_docs", "staging"))
    files = (path for path in sorted(lake.rglob("*")) if path.is_file())
    kinds = {_kind(lake, path): path for path in files if not MADE_ANEW.fullmatch(path.relative_to(lake).as_posix())}
    assert _found(lake, tmp_path / "untouched") == []
    silent = []
    for number, (kind, path) in enumerate(kinds.items()):
        content = path.read_bytes()
        for at in (0, len(content) // 2, len(content) - 2):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            if not _found(lake, tmp_path / f"own-{number}-{at}"):
                silent.append((kind, at, len(content)))
        path.write_bytes(content)
    assert silent == []
    assert len(kinds) >= 45
    assert {name.rsplit(".")[-1] for name in kinds} >= {"parquet", "json", "csv", "md", "tex", "sql", "html", "jpg"}
