"""`salon gc` and `salon pin`: what goes, what stays and why; a run under way; killed at every step; no paid reply lost."""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
import polars as pl
import pytest

from flows.garbage_collection.collecting import clear
from flows.garbage_collection.inventory import TILES, TRASH, Item, n_bytes_of
from flows.garbage_collection.retention import Rule
from flows.nights.record import Night, note_night
from schemas.errors import StoreError
from schemas.metrics import means_for_prompts_like_these
from schemas.tables.stored import CHECKS, JUDGEMENTS, PICTURES, QUARANTINE, REPLIES, REQUESTS, SAMPLES, SCORES
from tasks.ingest.known_sources import KnownSource
from tasks.lake.atomic_files import locked
from tasks.lake.identity import lake_id
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import clearing, in_use
from tasks.ledger.open_ledgers import opened
from tasks.publish.pins import pin, pinning, pins
from tasks.publish.reading import publications
from tasks.publish.report.tile_cache import TileCache
from tasks.verify.publication import check_manifest, check_pointer
from tests.flows.flow_support import Said
from tests.support.small_lake import IDS, SmallLake, failing, table_of

pytestmark = pytest.mark.slow

OLD = time.time() - 40 * 86_400
D1, D2, D3 = (date(2026, 3, day) for day in (1, 2, 3))
MADE_OF = {
    SAMPLES: "dataset_id", PICTURES: "dataset_id", JUDGEMENTS: "plan_id", REQUESTS: "plan_id", REPLIES: "snapshot_id",
    SCORES: "reading_id",
}  # fmt: skip


@dataclass
class World:
    """A lake of publications by what becomes of them."""

    lake: Lake
    ids: dict[str, str]

    @property
    def url(self) -> str:
        return f"sqlite:///{self.lake.root / 'ledger.db'}"

    def names(self) -> set[str]:
        by_id = {id_: name for name, id_ in self.ids.items()}
        return {by_id[one.publication_id] for one in publications(self.lake.root)}

    def tables(self, name: str) -> set[str]:
        """The tables of which the lake still has what a publication is made of."""
        made = _made_of(name)
        return {table.name for table, key in MADE_OF.items() if self.lake.is_complete(table, made[key])}


def _made_of(name: str) -> dict[str, str]:
    from tests.support.small_lake import digest

    return IDS if name == "superseded" else {key: digest(f"{name} {key}") for key in IDS}


_MADE: list[Path] = []  # the world once made: each test changes a copy of it


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, name_digest: Callable[[str], str]) -> World:
    """Six publications, all but `young` 40 days old; of one run date the greatest id is the night, since nothing is noted."""
    firsts = {"superseded": "1", "pinned": "2", "young": "3", "night": "4", "good": "5", "current": "6"}
    ids = {name: first + name_digest(name)[1:] for name, first in firsts.items()}
    if not _MADE:
        small: SmallLake = request.getfixturevalue("small_lake")
        _make(small, ids, request.getfixturevalue("put"), name_digest)
        _MADE.append(Path(request.getfixturevalue("tmp_path_factory").mktemp("made")) / "lake")
        shutil.copytree(small.lake.root, _MADE[0])
    shutil.rmtree(tmp_path / "lake", ignore_errors=True)
    shutil.copytree(_MADE[0], tmp_path / "lake")
    return World(Lake(tmp_path / "lake"), ids)


def _make(small: SmallLake, ids: dict[str, str], put: Callable[..., Any], name_digest: Callable[[str], str]) -> None:
    lake, cells = small.lake, small.cells
    is_one = pl.col("cell_id") == means_for_prompts_like_these(cells).drop_nulls("estimate")["cell_id"][0]
    refused = {"estimate": pl.lit(None), "status": pl.lit("blocked"), "failures": failing(refusal=9), "n_failed": pl.lit(9)}
    blocked = cells.with_columns(pl.when(is_one).then(value).otherwise(name).alias(name) for name, value in refused.items())
    for name, id_ in ids.items():
        day = {"good": D2, "current": D3}.get(name, D1)
        for table, key in MADE_OF.items():
            if name != "superseded":
                staging = stage(lake, table)
                staging.write_part(0, table.empty())
                staging.commit(_made_of(name)[key])
        checks = table_of(CHECKS, [{
            "publication_id": id_, "check": "requests.rows", "status": "passed", "severity": "blocking", "n_checked": 9,
            "n_failing": 0,
        }])  # fmt: skip
        for table, frame in ((CHECKS, checks), (QUARANTINE, table_of(QUARANTINE, []))):
            staging = stage(lake, table)
            staging.write_part(0, frame)
            staging.commit(name_digest(f"checks {name}"))
        (lake.root / "data_docs" / id_).mkdir(parents=True)
        (lake.root / "data_docs" / id_ / "index.html").write_text("docs")
        provenance = {"identities": _made_of(name), "code_version": name_digest("code")}
        put(lake.root, blocked if name == "current" else cells, publication_id=id_, run_date=day, provenance=provenance)
    for place in ("planned", "taken", "verdicts"):
        (lake.root / place).mkdir()
    (lake.root / "taken" / "of-good.json").write_text(json.dumps({"snapshot_id": _made_of("good")["snapshot_id"]}))
    (lake.root / "taken" / "of-old.json").write_text(json.dumps({"snapshot_id": IDS["snapshot_id"]}))
    (lake.root / "sources").mkdir()
    for name in ("good", "superseded"):
        known = KnownSource(_made_of(name)["dataset_id"], [], None, [], [])
        (lake.root / "sources" / f"{name}.json.z").write_bytes(zlib.compress(json.dumps(asdict(known)).encode()))
    (lake.root / "staging" / "samples-left-by-a-kill").mkdir()
    (lake.root / "somebody-elses").mkdir()
    with opened(f"sqlite:///{lake.root / 'ledger.db'}") as ledger:
        ledger.known([])
        ledger.alone_now(lambda _: None)
    for path in [lake.root, *lake.root.rglob("*")]:
        if ids["young"] not in str(path):
            os.utime(path, (OLD, OLD))
    (lake.root / "staging" / "samples-of-a-run").mkdir()


def _tree(root: Path) -> set[str]:
    """What stands in a lake, but for what each clearing writes anew and the ledger's own files."""
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return {path for path in paths if not path.startswith(("ledger.db", "locks/", "staging/duckdb-"))}


def test_what_goes_what_stays_and_why(world: World, salon: Callable[..., Said]) -> None:
    root, before = world.lake.root, _tree(world.lake.root)
    assert salon("pin", world.ids["pinned"][:8], "--because", "the paper", "--lake", root).code == 0
    said = salon("gc", "--lake", root)
    assert said.code == 0
    for why in ("current", "last good", "night of a series", "pinned: the paper", "younger than 30 days", "younger than 2 days"):
        assert f" {why}" in said.out, why
    assert f"nightly {world.ids['superseded'][:12]}, of " in said.out
    assert "nothing was deleted; add --yes to delete it" in said.out
    assert "--thin-nights: " in said.out
    assert _tree(root) - before == {f"pins/{world.ids['pinned']}.json"}
    assert salon("gc", "--lake", root, "--yes").code == 0
    kept = {"pinned", "young", "night", "good", "current"}
    assert world.names() == kept
    assert all(world.tables(name) == {table.name for table in MADE_OF} for name in kept)
    assert world.tables("superseded") == set()
    gone = world.ids["superseded"]
    assert not [path for path in root.rglob("*") if gone in str(path)], "tables for machines and data docs go along"
    assert (root / "taken" / "of-good.json").is_file()
    assert not (root / "taken" / "of-old.json").exists()
    assert [path.name for path in (root / "sources").iterdir()] == ["good.json.z"]
    assert [path.name for path in (root / "staging").iterdir()] == ["samples-of-a-run"]
    assert (root / "somebody-elses").is_dir()
    listed = (root / "publish" / "v1" / "index.html").read_text()
    assert gone[:16] not in listed
    assert world.ids["night"][:16] in listed
    with duckdb.connect(root / "publish" / "v1" / "nightly" / "salon.duckdb", read_only=True) as database:
        assert {row[0] for row in database.sql("SELECT publication_id FROM publications").fetchall()} == {
            world.ids[name] for name in kept
        }
    assert "would go: 0 items" in salon("gc", "--lake", root).out


def test_the_requests_of_a_killed_run_stay_until_its_row_is_written(world: World, salon: Callable[..., Said]) -> None:
    """By them the next start counts what it bought."""
    root, plan = world.lake.root, IDS["plan_id"]
    note = {
        "started_at": "2026-03-01T02:00:00Z", "run_date": "2026-03-01", "dataset_id": "d" * 64, "n_samples": 1, "n_samples_ok": 1,
        "code_version": "c" * 64, "asked_by": "nightly", "plan_ids": [plan], "judges": [],
        "process": {"host": "another machine", "pid": 1, "started": "7"},
    }  # fmt: skip
    folder = root / "asking" / "nightly"
    folder.mkdir(parents=True)
    (folder / "one.json").write_text(json.dumps(note))
    (folder / "two.json").write_text("no note")
    others = [folder / f"{name}.json" for name in ("p", "q", "r", "s", "t")]  # of the same plan: the first note's is told
    for path in others:
        path.write_text(json.dumps(note | {"started_at": "2026-03-02T02:00:00Z"}))
    assert "the nightly that began at 2026-03-01 02:00 UTC has no row in runs yet" in " ".join(
        salon("gc", "--lake", root).out.split()
    )
    assert salon("gc", "--lake", root, "--yes").code == 0
    assert world.tables("superseded") == {REQUESTS.name}
    for path in (folder / "one.json", *others):
        path.unlink()
    assert salon("gc", "--lake", root, "--yes").code == 0
    assert world.tables("superseded") == set()


def test_where_the_lists_cannot_be_written_all_else_goes_and_the_next_clearing_writes_them(
    world: World, salon: Callable[..., Said]
) -> None:
    """No file of this process may become as large as salon.duckdb, as on a disk with little room."""
    home, kept = world.lake.root / "publish" / "v1" / "nightly", {"young", "night", "good", "current"}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, before[1]))
    try:
        said = salon("gc", "--lake", world.lake.root, "--yes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert said.code == 3
    assert "what may go was deleted; only the lists of what is left could not be written: writing " in " ".join(said.err.split())
    assert (world.names(), world.tables("superseded")) == (kept, set())
    assert salon("gc", "--lake", world.lake.root, "--yes").code == 0
    with duckdb.connect(home / "salon.duckdb", read_only=True) as database:
        listed = {row[0] for row in database.sql("SELECT publication_id FROM publications").fetchall()}
    assert listed == {world.ids[name] for name in kept}
    assert "would go: 0 items" in salon("gc", "--lake", world.lake.root).out


def test_thinned_nights_keep_their_tables_and_what_drift_needs(world: World, salon: Callable[..., Said]) -> None:
    assert salon("gc", "--lake", world.lake.root, "--yes", "--thin-nights").code == 0
    assert world.names() == {"young", "night", "good", "current"}
    assert world.tables("night") == {"judgements", "scores"}
    assert all(len(world.tables(name)) == len(MADE_OF) for name in ("young", "good", "current"))
    docs = {path.name for path in (world.lake.root / "data_docs").iterdir()}
    assert docs == {world.ids[name] for name in ("young", "good", "current")}


def test_a_young_night_is_not_thinned(world: World, salon: Callable[..., Said]) -> None:
    for path in world.lake.root.rglob("*"):
        if world.ids["night"] in str(path):
            os.utime(path)
    assert salon("gc", "--lake", world.lake.root, "--yes", "--thin-nights").code == 0
    assert len(world.tables("night")) == len(MADE_OF)


def test_anchors_stay_that_a_night_was_judged_with_though_their_record_is_lost(
    world: World, salon: Callable[..., Said], name_digest: Callable[[str], str]
) -> None:
    lake, keys = world.lake, {"of a night": name_digest("anchors"), "of none": name_digest("other samples")}
    night = Night({"m": "c"}, keys["of a night"])
    note_night(lake.root, "nightly", night, D1, world.ids["night"], is_whole=True)
    for key in keys.values():
        for table in (SAMPLES, PICTURES):
            staging = stage(lake, table)
            staging.write_part(0, table.empty())
            staging.commit(key)
    for path in lake.root.rglob("*"):
        os.utime(path, (OLD, OLD))
    assert salon("gc", "--lake", lake.root, "--yes").code == 0
    left = {name: [lake.is_complete(table, key) for table in (SAMPLES, PICTURES)] for name, key in keys.items()}
    assert left == {"of a night": [True, True], "of none": [False, False]}


def test_an_age_of_no_days_lets_the_young_go(world: World, salon: Callable[..., Said]) -> None:
    assert salon("gc", "--lake", world.lake.root, "--yes", "--older-than", "0").code == 0
    assert world.names() == {"night", "good", "current"}
    assert (world.lake.root / "staging" / "samples-of-a-run").is_dir(), "a run may be writing it, whatever the age"


def test_what_a_killed_clearing_had_moved_goes_at_once(world: World, salon: Callable[..., Said]) -> None:
    moved = world.lake.root / "staging" / f"{TRASH}of-a-killed-one"
    moved.mkdir()
    assert salon("gc", "--lake", world.lake.root, "--yes").code == 0
    assert not moved.exists()


def test_a_file_that_something_else_links_to_frees_nothing(tmp_path: Path) -> None:
    one, two = (Item(TILES, name, (tmp_path / name,)) for name in ("one", "two"))
    (tmp_path / "one").write_bytes(b"x" * 100)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert (n_bytes_of([one]), n_bytes_of([one, two]), n_bytes_of([one], is_linked_too=True)) == (0, 100, 100)


def test_small_pictures_that_no_page_showed_of_late_go(world: World, salon: Callable[..., Said]) -> None:
    """The ones shown stay, however long ago they were made: a publication that shows them says so in the file's time."""
    cache = TileCache(world.lake.root, "1" * 64)
    for picture in ("a", "b"):
        cache.keep([(picture * 64, b"a tile")])
        for path in (world.lake.root / "tiles").iterdir():
            os.utime(path, (OLD, OLD))
    assert dict(cache.take(["b" * 64])) == {"b" * 64: b"a tile"}
    assert "small pictures" in salon("gc", "--lake", world.lake.root).out
    assert salon("gc", "--lake", world.lake.root, "--yes").code == 0
    assert dict(cache.take(["a" * 64, "b" * 64])) == {"b" * 64: b"a tile"}


def test_a_lock_that_is_held_stays_until_it_is_free(world: World, salon: Callable[..., Said]) -> None:
    lock = world.lake.root / "locks" / "held.lock"
    with locked(world.lake.root, "held"):
        os.utime(lock, (OLD, OLD))
        assert salon("gc", "--lake", world.lake.root, "--yes").code == 0
        assert lock.is_file()
    assert salon("gc", "--lake", world.lake.root, "--yes").code == 0
    assert not lock.exists()


def test_replies_that_the_ledger_lost_are_in_it_before_their_snapshot_goes(world: World, salon: Callable[..., Said]) -> None:
    keys = world.lake.scan(REPLIES, IDS["snapshot_id"]).collect()["request_key"].unique()
    with Ledger(world.url) as ledger:
        assert ledger.known(keys) == set()
    assert salon("gc", "--lake", world.lake.root, "--yes").code == 0
    assert not world.lake.is_complete(REPLIES, IDS["snapshot_id"])
    with Ledger(world.url) as ledger:
        assert ledger.known(keys) == set(keys)


def test_nothing_goes_while_a_run_uses_the_lake(world: World, salon: Callable[..., Said]) -> None:
    with opened(world.url) as ledger, in_use(ledger, lake_id(world.lake.root)):
        before = _tree(world.lake.root)
        said = salon("gc", "--lake", world.lake.root, "--yes")
        assert said.code == 3
        assert f"process {os.getpid()} on this machine is using the lake" in said.err
        assert _tree(world.lake.root) == before
        assert "would go" in salon("gc", "--lake", world.lake.root).out, "looking is allowed"
    assert salon("gc", "--lake", world.lake.root, "--yes").code == 0


def test_a_run_that_begins_while_a_lake_is_cleared_waits(world: World) -> None:
    waited_for: list[Any] = []
    began: list[float] = []

    def run() -> None:
        with opened(world.url) as ledger, in_use(ledger, lake_id(world.lake.root), waited_for.append):
            began.append(time.monotonic())

    with opened(world.url) as ledger, clearing(ledger, lake_id(world.lake.root)) as other:
        assert other is None
        running = Thread(target=run)
        running.start()
        while not waited_for:
            time.sleep(0.01)
        ended = time.monotonic()
    running.join()
    assert began[0] > ended


def test_what_is_pinned_while_a_lake_is_looked_through_stays(world: World, salon: Callable[..., Said]) -> None:
    """In the moment between looking and taking; the next clearing keeps it, and takes the rest."""
    root, id_ = world.lake.root, world.ids["superseded"]
    with pytest.raises(StoreError, match=f"{id_[:12]} was pinned while .* nothing was deleted"):
        clear(world.lake, world.url, Rule(30), lambda _: pin(root, id_) and None)
    assert world.names() == set(world.ids)
    assert world.tables("superseded") == {table.name for table in MADE_OF}
    assert salon("gc", "--lake", root, "--yes").code == 0
    assert world.names() == set(world.ids) - {"pinned"}


def test_a_pin_waits_for_a_clearing_and_is_none_of_what_that_took(
    world: World, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, id_ = world.lake.root, world.ids["superseded"]
    place = root / "publish" / "v1" / "nightly" / id_
    waits, said = Event(), []
    monkeypatch.setattr("tasks.publish.pins.pinning", lambda of: (waits.set(), pinning(of))[1])
    pinner = Thread(target=lambda: said.append(salon("pin", id_[:8], "--lake", root)))
    with pinning(root):
        pinner.start()
        assert waits.wait(60)
        shutil.rmtree(place)
    pinner.join()
    assert (said[0].code, "just deleted" in said[0].err) == (2, True), said
    assert pins(root) == []


FILE = """
name = "nightly"
lake = "lake"
[[sources]]
reader = "imagefolder"
path = "{model}/{checkpoint}"
columns = { prompt = "file_name" }
[[rubrics]]
id = "alignment"
[[judges]]
model = "a"
base_url = "http://127.0.0.1:1/v1"
[[judges]]
model = "b"
base_url = "http://127.0.0.1:1/v1"
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "b.toml"),
        ("backfill", "b.toml", "--all", "--dry-run"),
        ("anchors", "freeze", "b.toml"),
        ("anchors", "bridge", "b.toml", "--old", "a", "--new", "b", "--dry-run"),
        ("probe-injection", "b.toml"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_every_command_that_looks_at_partitions_waits_for_a_clearing(
    world: World, salon: Callable[..., Said], arguments: tuple[str, ...]
) -> None:
    """Also the other way round: whoever holds the lake so is what `salon gc` says is using it."""
    (world.lake.root.parent / "b.toml").write_text(FILE)
    (world.lake.root.parent / "m" / "c").mkdir(parents=True)
    ended: list[float] = []
    held = Event()

    def clear_for_a_while() -> None:
        with opened(world.url) as ledger, clearing(ledger, lake_id(world.lake.root)):
            held.set()
            time.sleep(1.0)
            ended.append(time.monotonic())

    clearer = Thread(target=clear_for_a_while)
    clearer.start()
    assert held.wait(60)
    said = salon(*arguments)
    assert ended, f"it did not wait: {said.err}"
    clearer.join()


_KILLED = """
import os, shutil, sys
from pathlib import Path
from flows.garbage_collection.collecting import clear
from flows.garbage_collection.retention import Rule
from tasks.lake.identity import lake_id
from tasks.lake.reading import Lake
from tests.torture.arming import arm
import flows.cli, tasks.publish.report.index, tasks.publish.duckdb_file

world = Path(sys.argv[1])
for step in sys.argv[2:]:
    point, event, nth = step.split(":")
    lake = world.parent / step
    shutil.copytree(world, lake)
    pid = os.fork()  # before Polars starts its threads
    if pid == 0:
        arm({"point": point, "event": event, "nth": int(nth)})
        clear(Lake(lake), f"sqlite:///{lake / 'ledger.db'}", Rule(30), lambda found: None)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9, step
"""
_STEPS = {
    "rename:c_return:2": "a publication moved, and one of its tables",
    "_take_away:call:2": "one publication gone, one not",
    "write_duckdb:call:1": "publications gone, listed in the index and in salon.duckdb",
    "write_index:call:1": "listed in the index",
    "unlink:c_return:9": "among the partitions: a marker gone, its files not",
    "rmtree:call:1": "all moved, nothing deleted",
}


def test_killed_at_any_step_it_leaves_no_publication_without_what_it_is_made_of_and_goes_on(world: World) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, world.lake.root, *_STEPS], check=True, timeout=300)
    ends = list[set[str]]()
    for step, at in _STEPS.items():
        left = World(Lake(world.lake.root.parent / step), world.ids)
        assert left.names() >= {"young", "night", "good", "current"}
        for one in publications(left.lake.root):
            assert not [*check_manifest(one.folder), *check_pointer(one.folder)], at
        assert all(len(left.tables(name)) == len(MADE_OF) for name in left.names()), at
        clear(left.lake, left.url, Rule(30), lambda _: None)
        assert left.names() == {"young", "night", "good", "current"}
        ends.append(_tree(left.lake.root))
    assert [end ^ ends[0] for end in ends] == [set()] * len(ends)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gc", "--lake", "nowhere"), "there is no lake in nowhere"),
        (("gc", "nothing.toml"), "nothing.toml"),
        (("gc", "--lake", "lake", "--older-than", "-1"), "older-than"),
        (("pin", "abcd", "--lake", "nowhere"), "there is no lake in nowhere"),
        (("pin", "--because", "the paper"), "name the publication: salon pin PUBLICATION --because WHY"),
        (("pin", "--off"), "name the publication: salon pin PUBLICATION --off"),
    ],
    ids=["no lake", "no file", "a negative age", "pin without a lake", "a reason for no publication", "no pin to take away"],
)
def test_what_is_refused(arguments: tuple[str, ...], said: str, salon: Callable[..., Said]) -> None:
    refused = salon(*arguments)
    assert refused.code == 2
    assert said in refused.err


def test_without_a_ledger_a_file_is_asked_for(world: World, salon: Callable[..., Said]) -> None:
    for path in world.lake.root.glob("ledger.db*"):
        path.unlink()
    before = _tree(world.lake.root)
    refused = salon("gc", "--lake", world.lake.root, "--yes")
    assert refused.code == 2
    assert "salon gc FILE --yes" in refused.err
    assert _tree(world.lake.root) == before


def test_pins_are_listed_and_taken_away(world: World, salon: Callable[..., Said]) -> None:
    root, id_ = world.lake.root, world.ids["pinned"]
    assert salon("pin", "9999", "--lake", root).code == 2
    for place in ("", str(root), str(Path(__file__).parent)):  # no folder of these is a publication
        said = salon("pin", place, "--lake", root)
        assert (said.code, f"no publication begins with {place!r}" in said.err) == (2, True), said
    elsewhere = Path(shutil.copytree(next(root.glob(f"publish/v1/*/{id_}")), root.parent / "elsewhere" / id_))
    said = salon("pin", elsewhere, "--lake", root)
    assert (said.code, "is not in the lake" in said.err) == (2, True), said
    assert salon("pin", id_[:6], "--lake", root).code == 0
    assert salon("pin", "--lake", root).out.startswith(id_[:12])
    assert salon("pin", id_[:6], "--off", "--lake", root).code == 0
    assert salon("pin", "--lake", root).out == ""
    assert salon("pin", id_[:6], "--off", "--lake", root).code == 2
    two = {world.ids[name] for name in ("pinned", "superseded")}
    assert [salon("pin", one, "--lake", root).code for one in two] == [0, 0]
    unclear = salon("pin", "", "--off", "--lake", root)
    assert (unclear.code, "2 pins match" in unclear.err) == (2, True), unclear.err
    assert {path.stem for path in (root / "pins").iterdir()} == two
