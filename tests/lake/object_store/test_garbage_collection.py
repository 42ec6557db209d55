"""`salon gc` and `salon pin` on a lake in a bucket: the rules of a folder's lake, kills, the cache folders of other machines."""

import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from flows.cli import run
from schemas.tables.stored import JUDGEMENTS, PICTURES, REPLIES, REQUESTS, SAMPLES, SCORES
from tasks.lake.identity import lake_id
from tasks.lake.object_store.cache_folder import forget_cleared
from tasks.lake.reading import Lake, open_lake
from tasks.lake.writing import stage
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import in_use
from tasks.ledger.open_ledgers import opened
from tasks.publish.pins import pins
from tasks.publish.reading import publications
from tests.lake.object_store.conftest import Objects
from tests.support.small_lake import SmallLake

pytestmark = pytest.mark.slow

MADE_OF = {
    SAMPLES: "dataset_id", PICTURES: "dataset_id", JUDGEMENTS: "plan_id", REQUESTS: "plan_id", REPLIES: "snapshot_id",
    SCORES: "reading_id",
}  # fmt: skip
D1, D2 = date(2026, 3, 1), date(2026, 3, 2)
DAYS = {"old": D1, "pinned": D1, "night": D1, "current": D2}
Ids = dict[str, str]


@pytest.fixture
def ids(url: str, put: Callable[..., Any], small_lake: SmallLake, name_digest: Callable[[str], str]) -> Ids:
    """Four publications, three of them of one date, each made of partitions of its own; of these the old one's have replies."""
    lake = open_lake(url)
    found = {name: str(number) + name_digest(name)[1:] for number, name in enumerate(DAYS)}
    for name, id_ in found.items():
        made = {key: name_digest(f"{name} {key}") for key in MADE_OF.values()}
        for table, key in MADE_OF.items():
            staging = stage(lake, table)
            is_full = name == "old" and table is REPLIES
            snapshot = small_lake.lake.keys(REPLIES)
            staging.write_part(0, small_lake.lake.scan(REPLIES, *snapshot).collect() if is_full else table.empty())
            staging.commit(made[key])
        provenance = {"identities": made, "code_version": name_digest("code")}
        put(lake.root, small_lake.cells, publication_id=id_, run_date=DAYS[name], provenance=provenance)
    return found


@pytest.fixture
def file(url: str, tmp_path: Path) -> Path:
    """A benchmark file of the lake, whose ledger is there."""
    path = tmp_path / "b.toml"
    path.write_text(
        f'name = "nightly"\nlake = "{url}"\nledger = "sqlite:///{tmp_path / "paid.db"}"\n'
        '[[sources]]\nreader = "imagefolder"\npath = "p"\nmodel = "m"\n[[rubrics]]\nid = "alignment"\n'
        '[[judges]]\nmodel = "j"\nbase_url = "http://localhost:1/v1"\n'
    )
    return path


@pytest.fixture
def salon(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        return (run([str(argument) for argument in arguments]), *capsys.readouterr())

    return call


def _of(objects: Objects, *ids: str) -> list[str]:
    return [name for name in objects.names() if any(one in name for one in ids)]


def test_what_goes_and_what_stays(
    url: str, ids: Ids, file: Path, objects: Objects, salon: Callable[..., Any], name_digest: Callable[[str], str]
) -> None:
    assert salon("pin", ids["pinned"][:8], "--because", "the paper", "--lake", url)[0] == 0
    own_id = lake_id(open_lake(url).root)
    before = objects.names()
    code, out, _ = salon("gc", "--lake", url, "--older-than", "0")
    assert (code, objects.names()) == (0, before)
    for said in (f"lake {url}", "pinned: the paper", "current", "night of a series", f"nightly {ids['old'][:12]}, of "):
        assert said in out
    assert "younger than 30 days" in salon("gc", "--lake", url)[1]
    code, _, said = salon("gc", "--lake", url, "--yes")
    assert (code, "salon gc FILE --yes" in said) == (2, True)
    with opened(f"sqlite:///{file.parent / 'paid.db'}") as ledger, in_use(ledger, own_id):
        code, _, said = salon("gc", file, "--older-than", "0", "--yes")
        assert (code, "is using the lake" in said, objects.names()) == (3, True, before)
    keys = set(open_lake(url).scan(REPLIES, name_digest("old snapshot_id")).collect()["request_key"])
    assert salon("gc", file, "--older-than", "0", "--yes")[0] == 0
    assert {one.publication_id for one in publications(open_lake(url).root)} == {ids[name] for name in DAYS if name != "old"}
    assert _of(objects, ids["old"], name_digest("old plan_id")) == []
    for name in ("pinned", "night", "current"):
        lake = open_lake(url)
        assert all(lake.is_complete(table, name_digest(f"{name} {key}")) for table, key in MADE_OF.items())
        assert f"publish/v1/nightly/{ids[name]}/manifest.json" in objects.names()
    with Ledger(f"sqlite:///{file.parent / 'paid.db'}") as paid:
        assert paid.known(keys) == keys, "what the ledger lacked is in it"
    assert ids["old"][:16].encode() not in objects["publish/v1/index.html"]
    assert "would go: 0 items" in salon("gc", "--lake", url, "--older-than", "0")[1]


def test_what_was_taken_back_on_another_machine_is_no_night_and_goes_when_it_is_old(
    url: str, ids: Ids, file: Path, objects: Objects, machine: Callable[[str], Lake], salon: Callable[..., Any]
) -> None:
    machine("two")
    code, said, _ = salon("withdraw", file, ids["current"][:12], "--because", "a clock was ahead")
    assert (code, f"current: {ids['night'][:12]}" in said) == (0, True), said
    assert f"withdrawn/{ids['current']}.json" in objects.names()
    machine("three")
    assert "was taken back on" in salon("table", "--lake", url, "--publication", ids["current"])[1]
    code, said, error = salon("gc", file, "--older-than", "0")
    assert (code, f"nightly {ids['current'][:12]}, of " in said) == (0, True), error
    assert salon("gc", file, "--older-than", "0", "--yes")[0] == 0
    assert _of(objects, f"nightly/{ids['current']}") == []
    assert ids["night"] in {one.publication_id for one in publications(machine("two").root)}, "current now"


def test_pins_are_seen_on_every_machine(url: str, ids: Ids, machine: Callable[[str], Lake], salon: Callable[..., Any]) -> None:
    assert salon("pin", ids["old"][:6], "--lake", url)[0] == 0
    assert [one.publication_id for one in pins(machine("two").root)] == [ids["old"]]
    assert salon("pin", ids["old"][:6], "--off", "--lake", url)[0] == 0
    assert pins(machine("two").root) == []
    assert salon("pin", "--lake", url)[1] == ""


def test_other_machines_forget_what_went(
    url: str, ids: Ids, file: Path, machine: Callable[[str], Lake], salon: Callable[..., Any], name_digest: Callable[[str], str]
) -> None:
    other, late, old, kept = machine("two"), machine("late"), name_digest("old plan_id"), name_digest("night plan_id")
    for lake in (other, late):
        assert lake.scan(JUDGEMENTS, old).collect().is_empty()
    assert other.scan(JUDGEMENTS, kept).collect().is_empty()
    assert salon("gc", file, "--older-than", "0", "--yes")[0] == 0
    forget_cleared(other.root)
    assert not other.is_complete(JUDGEMENTS, old)
    assert not list(other.root.glob(f"{JUDGEMENTS.name}/*={old}"))
    assert other.partition(JUDGEMENTS, kept).is_dir(), "what stays is not fetched again"
    staging = stage(other, JUDGEMENTS)
    for index in range(2):
        staging.write_part(index, JUDGEMENTS.empty())
    staging.commit(old)
    for lake in (other, late):
        forget_cleared(lake.root)
    assert machine("three").is_complete(JUDGEMENTS, old), "and is written anew"
    assert late.n_parts(JUDGEMENTS, old) == 2, "what was there before is not believed"


_KILLED = """
import os, sys
from flows.garbage_collection.collecting import clear
from flows.garbage_collection.retention import Rule
from tasks.lake.reading import open_lake
from tests.torture.arming import arm

for nth in sys.argv[3:]:
    pid = os.fork()  # before any thread is started
    if pid == 0:
        arm({"point": "Bucket.delete", "event": "call", "nth": int(nth)})
        clear(open_lake(sys.argv[1]), sys.argv[2], Rule(0), lambda found: None)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9, nth
"""


def test_a_killed_clearing_is_ended_by_the_next(
    url: str,
    ids: Ids,
    file: Path,
    objects: Objects,
    machine: Callable[[str], Lake],
    salon: Callable[..., Any],
    name_digest: Callable[[str], str],
) -> None:
    """Killed once between a manifest and its files, then between two partitions: what was made anew meanwhile stays."""
    ledger = f"sqlite:///{file.parent / 'paid.db'}"
    assert salon("pin", ids["pinned"][:8], "--lake", url)[0] == 0
    subprocess.run([sys.executable, "-c", _KILLED, url, ledger, "2"], check=True, timeout=120)
    assert _of(objects, ids["old"]), "its files are left"
    assert ids["old"] not in {one.publication_id for one in publications(machine("new").root)}
    subprocess.run([sys.executable, "-c", _KILLED, url, ledger, "7"], check=True, timeout=120)
    assert _of(objects, ids["old"]) == []
    gone = [table for table, key in MADE_OF.items() if not machine("new").is_complete(table, name_digest(f"old {key}"))]
    assert 0 < len(gone) < len(MADE_OF)
    lake = open_lake(url)
    forget_cleared(lake.root)
    staging = stage(lake, gone[0])
    staging.write_part(0, gone[0].empty())
    staging.commit(name_digest(f"old {MADE_OF[gone[0]]}"))
    assert salon("gc", file, "--yes")[0] == 0
    assert lake.scan(gone[0], name_digest(f"old {MADE_OF[gone[0]]}")).collect().is_empty(), "it stands there, whole"
