"""A run recorded under strace; every state that a power cut may leave of it checked: what is there, and the run gone on with."""

import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from checks import cells, ledger_state, unreadable_files
from harness import BENCHMARK, ProcessPool, Recorder, add_samples, make_world
from power_cuts.disk import Disk
from power_cuts.recording import Operation, operations, recorded
from power_cuts.states import Counts, State, states

from schemas.errors import SalonError
from tasks.lake.atomic_files import sha256_of_file
from tasks.verify.publication import check_manifest

RUN = Path(__file__).with_name("recorded_run.py")


@dataclass
class Recording:
    """A recorded run: the folder as it was before, what was done, and how it ended undisturbed."""

    world: Path
    before: Path
    done: list[Operation]
    reference: pl.DataFrame
    old: pl.DataFrame | None
    n_before: int
    n_samples: int

    def disk(self, *, is_journaled: bool) -> Disk:
        """The disk as it was when the run began, all of it synced."""
        return Disk(self.before, self.world, is_journaled=is_journaled)

    @property
    def lake(self) -> Path:
        """Where each state is put: the run goes on at the place it ran at."""
        return self.world / "lake"


def record(folder: Path, pool: ProcessPool, recorder: Recorder, n_samples: int, *, is_grown: bool) -> Recording:
    """Record a run over samples of which half were published before (`is_grown`), or the first of all."""
    n_before = n_samples // 2 if is_grown else 0
    file = make_world(folder / "world", n_before or n_samples)
    file.write_text(BENCHMARK.replace("shard_size = 10", f"shard_size = {max(4, n_samples // 3)}"))
    world = file.parent
    old = None
    if is_grown:
        assert pool.run(file, recorder.url)["code"] == 0
        old = cells(world / "lake")
        add_samples(world, range(n_before, n_samples))
    before = folder / "before"
    shutil.copytree(world, before)
    recorded([str(RUN), str(file), recorder.url, str(folder / "marks")], folder / "trace")
    done = operations(folder / "trace", world)
    made = Recording(world, before, done, cells(world / "lake"), old, n_before, n_samples)
    _check_recording(made)
    said = Counter(one.kind for one in done)
    assert said["mark"] == said["sent"] == n_samples - n_before, said
    return made


def _check_recording(made: Recording) -> None:
    """All of it applied is what stands on the disk, byte for byte: nothing that was written is missing in the record."""
    disk = made.disk(is_journaled=False)
    for one in made.done:
        disk.apply(one)
    found = {name: file.content("kept") for name, file in disk.listed(disk.steps).items() if not name.endswith("-shm")}
    there = {str(path.relative_to(made.world)): path.read_bytes() for path in made.world.rglob("*") if path.is_file()}
    assert found == {name: data for name, data in there.items() if not name.endswith("-shm")}


@dataclass
class Replay:
    """Checks states one after another and counts them; what was wrong is in `wrong`, a sentence each."""

    made: Recording
    pool: ProcessPool
    recorder: Recorder
    counts: Counts = field(default_factory=Counts)
    found: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _whole: set[str] = field(default_factory=set)  # digests of files that were found readable
    _there: dict[str, str] = field(default_factory=dict)

    def states(self, *, is_journaled: bool, is_wanted: Callable[[int], bool] = lambda _: True) -> Iterator[State]:
        """Every state that a cut may leave, each once."""
        return states(self.made.done, self.made.disk(is_journaled=is_journaled), self.counts, is_wanted)

    def put(self, state: State) -> None:
        """Let the world's lake hold this state."""
        if not self._there:
            shutil.rmtree(self.made.lake, ignore_errors=True)
            self.made.lake.mkdir()
        self._there = state.write(self.made.lake, self._there)

    def check(self, state: State) -> str:
        """Hold what is there against what must hold whatever happens; its shape, less what is another in every run."""
        self.put(state)
        lake = self.made.lake
        self.found["states checked"] += 1
        try:
            stored, n_attempts = _ledger(lake)
        except sqlite3.DatabaseError as error:
            self._note(state, f"the ledger cannot be read: {error}")
            stored, n_attempts = set(), 0
        n_before = self.made.n_before
        if len(stored) < n_before + state.n_acknowledged:
            self._note(state, f"{len(stored)} replies are stored, {n_before + state.n_acknowledged} were acknowledged")
        if n_attempts < n_before + state.n_sent:
            self._note(state, f"{n_attempts} attempts are recorded, {n_before + state.n_sent} were sent")
        whole = {name for name, digest in self._there.items() if digest in self._whole}
        unreadable = unreadable_files(lake, whole)
        self._whole |= set() if unreadable else {*self._there.values()}
        for sentence in (*unreadable, *_broken_partitions(lake), *_broken_publications(lake)):
            self._note(state, sentence)
        version = self._version()
        if version not in ("old", "new"):
            self._note(state, version)
        self._forget_ledger()
        names = Counter(re.sub(r"[0-9a-f]{8,}", "#", name) for name in state.files)
        cut = {name: choice for name, (file, choice) in state.files.items() if file.pending and choice != "kept"}
        return f"{sorted(stored)} {n_attempts} {version} {sorted(names.items())} {re.sub(r'[0-9a-f]{8,}', '#', str(sorted(cut)))}"

    def resume(self, state: State) -> None:
        """Go on from the state with the same command: it ends with the table, and nothing that is stored is bought again."""
        self.put(state)
        lake = self.made.lake
        stored, _ = _ledger(lake)
        published = _publications(lake)
        self._forget_ledger()
        self.put(state)
        n_billed = len(self.recorder.billed)
        end = self.pool.run(self.made.world / "benchmark.toml", self.recorder.url)
        billed = self.recorder.billed[n_billed:]
        self.found["states resumed"] += 1
        self.found["replies bought in resumed runs"] += len(billed)
        if end["code"] != 0:
            self._note(state, f"the run that went on ended with {end['code']}: {end['said'][-300:]}")
        elif sorted(billed) != sorted(set(range(self.made.n_samples)) - stored):
            self._note(state, f"bought again: {sorted(set(billed) & stored)}, {len(billed)} bought, {len(stored)} were stored")
        elif not cells(lake).equals(self.made.reference):
            self._note(state, "the table differs from that of the undisturbed run")
        elif changed := sorted(name for name, _ in published.items() - _publications(lake).items()):
            self._note(state, f"published before, and not what they were: {', '.join(changed)}")
        shutil.rmtree(lake, ignore_errors=True)
        lake.mkdir()
        self._there = {}

    def _forget_ledger(self) -> None:
        """Reading it recovered it: the next state is put anew."""
        for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
            (self.made.lake / name).unlink(missing_ok=True)
            self._there.pop(name, None)

    def _version(self) -> str:
        """Which table a reader finds: "old", "new", or what is wrong with what he finds."""
        try:
            found = cells(self.made.lake) if list(self.made.lake.glob("publish/v1/*/latest.json")) else None
        except (SalonError, OSError, pl.exceptions.PolarsError) as error:
            return f"a reader finds no table: {error}"
        if found is None:
            return "old" if self.made.old is None else "the pointer is gone"
        if found.equals(self.made.reference):
            return "new"
        return "old" if self.made.old is not None and found.equals(self.made.old) else "a reader finds a third version"

    def _note(self, state: State, sentence: str) -> None:
        self.found["things wrong"] += 1
        self.wrong.append(f"{state.after}, {state.how.replace(str(self.made.world), '')}: {sentence}")
        print(f"WRONG: {self.wrong[-1]}", flush=True)


def _ledger(lake: Path) -> tuple[set[int], int]:
    """(samples with a stored reply, attempts recorded); of zeros alone, nothing."""
    path = lake / "ledger.db"
    if not path.exists() or not any(path.read_bytes()):
        return set(), 0
    stored, _ = ledger_state(lake)
    with closing(sqlite3.connect(path)) as ledger:
        try:
            return stored, int(ledger.execute("SELECT count(*) FROM attempts").fetchone()[0])
        except sqlite3.OperationalError:
            return stored, 0


def _broken_partitions(lake: Path) -> Iterator[str]:
    """Partitions that their marker calls whole, and that are not: they are in the way of the run that goes on."""
    for marker in lake.glob("complete/*/*.json"):
        try:
            parts = json.loads(marker.read_bytes())["parts"]
        except (ValueError, KeyError, TypeError):
            yield f"{marker.relative_to(lake)} is no marker"
            continue
        (folder,) = [*lake.glob(f"{marker.parent.name}/*={marker.stem}")] or [lake / "nothing"]
        for part in parts:
            if not (folder / part["name"]).is_file() or sha256_of_file(folder / part["name"]) != part["sha256"]:
                yield f"{marker.relative_to(lake)} names {part['name']}, which is not there as it was written"


def _broken_publications(lake: Path) -> Iterator[str]:
    """Published folders that are not whole, be they named by a pointer or not."""
    for folder in lake.glob("publish/v1/torture/*/"):
        if len(folder.name) == 64:
            yield from (f"{folder.name[:8]}: {one.column}: {one.derived}"[:200] for one in check_manifest(folder))


def _publications(lake: Path) -> dict[str, str]:
    home = lake / "publish" / "v1"
    manifests = (path for path in home.glob("torture/*/manifest.json"))
    return {str(path.relative_to(home)): sha256_of_file(path) for manifest in manifests for path in manifest.parent.iterdir()}
