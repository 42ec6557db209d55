"""A pipe, a device or a folder where a lake keeps a file: it is named at once. Each pipe here would be waited for without end."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import salon as notebook
from flows.garbage_collection.retention import Rule, weighed
from flows.nights.anchors import anchor_sets
from flows.nights.record import notes
from schemas.errors import CorruptLakeError, StoreError
from schemas.tables.nights import DRIFT
from schemas.tables.stored import CHECKS, RUNS
from tasks.ingest.known_sources import known_source
from tasks.lake.identity import find_lake_id
from tasks.lake.reading import Lake
from tasks.lake.small_files import read_files
from tasks.ledger.ledger import Ledger
from tasks.publish.living_tables import living_table
from tasks.publish.machine_tables import runs
from tasks.publish.pins import pins
from tasks.publish.pointer import read_pointer
from tasks.publish.reading import publications
from tasks.publish.withdrawn import taken_back
from tests.flows.flow_support import Said
from tests.support.small_lake import SmallLake

Command = Callable[..., Said]
KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "a pipe"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a device"),
    "folder": (Path.mkdir, "a folder"),
}
READ: dict[str, tuple[str, Callable[[Path], object]]] = {
    "pointer": ("latest.json", read_pointer),
    "manifest": ("publish/v1/b/p/manifest.json", publications),
    "lake's id": ("lake.json", find_lake_id),
    "pin": ("pins/a.json", pins),
    "night": ("nights/b/2026-01-01.json", lambda root: notes(root, "b")),
    "anchors": ("anchors/b/a.json", lambda root: anchor_sets(root, "b")),
    "withdrawal": ("withdrawn/a.json", taken_back),
    "pointer of a living table": ("publish/v1/b/drift.json", lambda root: living_table(root, DRIFT, "b")),
    "run": ("runs/a.parquet", lambda root: runs(Lake(root))),
    "rows": ("a.parquet", lambda root: read_files([root / "a.parquet"], RUNS)),
}


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """Whoever waits for a pipe, or reads a device on and on, is told after some seconds."""

    def too_long(*_: object) -> None:
        raise AssertionError("it waits, or reads without end")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", READ)
def test_what_is_no_file_is_a_corrupt_lake(tmp_path: Path, case: str, kind: str) -> None:
    place, use = READ[case]
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind][0](tmp_path / place)
    with pytest.raises(CorruptLakeError, match=f"{KINDS[kind][1]}|is damaged, or the file it names is missing or was changed"):
        use(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_ledger_that_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    KINDS[kind][0](tmp_path / "ledger.db")
    with pytest.raises(StoreError, match=KINDS[kind][1]), Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        ledger.known([])


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_that_is_no_file_is_no_note(tmp_path: Path, kind: str) -> None:
    KINDS[kind][0](tmp_path / "a.json.z")
    assert known_source(tmp_path / "a.json.z") is None


@pytest.mark.parametrize("kind", KINDS)
def test_clearing_takes_checks_that_are_no_file_for_nobodys(tmp_path: Path, kind: str) -> None:
    part = tmp_path / "checks" / "check_id=a" / "part-00000.parquet"
    part.parent.mkdir(parents=True)
    KINDS[kind][0](part)
    assert [(one.item.kind, one.why) for one in weighed(Lake(tmp_path), Rule(0))] == [(CHECKS.name, None)]


@pytest.mark.parametrize("kind", KINDS)
def test_commands_and_notebooks_say_it(small_lake: SmallLake, put: Callable[..., object], salon: Command, kind: str) -> None:
    put(small_lake.lake.root, small_lake.cells)
    pointer = small_lake.lake.root / "publish" / "v1" / "nightly" / "latest.json"
    pointer.unlink()
    KINDS[kind][0](pointer)
    said = salon("table", "--lake", small_lake.lake.root)
    assert said.code == 3
    assert KINDS[kind][1] in said.err
    with pytest.raises(notebook.SalonError, match=r"latest\.json cannot be read"):
        notebook.open(small_lake.lake.root)
