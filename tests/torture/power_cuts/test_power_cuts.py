"""The power is cut: the disk's model by cases, and a recorded run at its sharpest moments. The long form: ../power_loss.py."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness import COMPILER, ProcessPool, Recorder, process_pool
from power_cuts.disk import Disk
from power_cuts.recording import STRACE, Operation
from power_cuts.replaying import Recording, Replay, record
from power_cuts.states import Counts, states

HERE = Path("/world")


def _operations(*steps: tuple[str, ...]) -> list[Operation]:
    """Calls one after another: (kind, path below the lake, where to or what)."""
    made = []
    for number, (kind, path, *more) in enumerate(steps):
        told = {"to": f"{HERE}/lake/{more[0]}"} if kind in ("rename", "link") else {}
        flags = b"CT" if kind == "open" else more[0].encode() if kind == "write" else b""
        made.append(Operation(kind, f"{HERE}/lake/{path}".rstrip("/"), number, number, fd="3", data=flags, **told))
    return made


WRITTEN = (("open", "t"), ("write", "t", "new!"))
SYNCED = (*WRITTEN, ("fsync", "t"))
# What may stand under "a", which held "old!", after these calls.
CASES: dict[str, tuple[tuple[tuple[str, ...], ...], bool, set[str | None]]] = {
    "written, renamed, nothing synced": ((*WRITTEN, ("rename", "t", "a")), False, {"old!", "", "ne", "new!", "\0\0\0\0"}),
    "synced, then renamed": ((*SYNCED, ("rename", "t", "a")), False, {"old!", "new!"}),
    "synced, renamed, the folder synced": ((*SYNCED, ("rename", "t", "a"), ("fsync", "")), False, {"new!"}),
    "the folder synced, the file not": ((*WRITTEN, ("rename", "t", "a"), ("fsync", "")), False, {"", "ne", "new!", "\0\0\0\0"}),
    "written in place": ((("open", "a"), ("write", "a", "new!")), False, {"old!", "", "ne", "new!", "\0\0\0\0"}),
    "removed, another file synced": ((("unlink", "a"), ("open", "b"), ("fsync", "b")), False, {"old!", None}),
    "removed, another file synced, with a journal": ((("unlink", "a"), ("open", "b"), ("fsync", "b")), True, {None}),
    "removed, the folder synced": ((("unlink", "a"), ("fsync", "")), False, {None}),
    "a second name": ((*SYNCED, ("unlink", "a"), ("link", "t", "a"), ("fsync", "")), False, {"new!"}),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "is_journaled", "expected"), CASES.values(), ids=CASES.keys())
def test_what_a_cut_may_leave(
    tmp_path: Path, steps: tuple[tuple[str, ...], ...], is_journaled: bool, expected: set[str | None]
) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a").write_text("old!")
    done = _operations(*steps)
    found: set[str | None] = set()
    for state in states(done, Disk(tmp_path, HERE, is_journaled=is_journaled), Counts(), lambda at: at == len(done) - 1):
        file = state.files.get("a")
        found.add(file[0].content(file[1]).decode() if file else None)
    assert found == expected


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPool]:
    if STRACE is None or COMPILER is None:
        pytest.skip("calls are recorded by strace, and runs gone on with in a process pool that needs a C compiler (cc)")
    with process_pool(tmp_path_factory.mktemp("process-pool")) as started:
        yield started


@pytest.fixture(scope="module")
def made(pool: ProcessPool, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("recorded"), pool, recorder, 4, is_grown=True)


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.close()


def _sharp(made: Recording) -> list[int]:
    """Moments at which something becomes known: a reply acknowledged, a partition complete, the publication, its pointers."""
    of = {"rename": ("/complete/", "/publish/v1/torture/"), "unlink": ("ledger.db-wal",)}
    names = [n for n, one in enumerate(made.done) if any(part in f"{one.path} {one.to}" for part in of.get(one.kind, ()))]
    marks = [n for n, one in enumerate(made.done) if one.kind == "mark"]
    return [*marks[-2:], *names]


def _near(made: Recording) -> Callable[[int], bool]:
    """Those moments, and the one before each."""
    wanted = {moment - back for moment in _sharp(made) for back in (0, 1)}
    return lambda moment: moment in wanted


def test_a_cut_at_the_sharpest_moments_loses_nothing(made: Recording, pool: ProcessPool, recorder: Recorder) -> None:
    replay = Replay(made, pool, recorder)
    shapes: set[str] = set()
    for state in replay.states(is_journaled=False, is_wanted=_near(made)):
        shape = replay.check(state)
        if shape not in shapes and len(shapes) % 6 == 1:
            replay.resume(state)
        shapes.add(shape)
    assert replay.wrong == []
    assert replay.counts.n_moments >= 12
    assert replay.found["states resumed"] >= 2


# A sync that is left out of the record is one that the disk did not make, or the code did not ask for: what is then found.
UNSYNCED: dict[str, tuple[Callable[[str], bool], str]] = {
    "no sync does anything": (lambda _: True, "cannot be read"),
    "the ledger's log": (lambda path: path.endswith("ledger.db-wal"), "were acknowledged|were sent"),
    "files that take their place": (
        lambda path: path.endswith((".tmp", ".parquet")),
        "cannot be read|not there as it was written",
    ),
    "the folder of a partition's parts": (lambda path: "/staging/scores" in path, "not there as it was written"),
    "the folder of partitions": (lambda path: path.endswith("/lake/scores"), "not there as it was written"),
    "the folder of publications": (lambda path: path.endswith("/v1/torture"), "whose folder was deleted or changed"),
}


@pytest.mark.parametrize(("is_left_out", "said"), UNSYNCED.values(), ids=UNSYNCED.keys())
def test_a_disk_that_does_not_sync_is_found_out(
    made: Recording, pool: ProcessPool, recorder: Recorder, is_left_out: Callable[[str], bool], said: str
) -> None:
    left_out = [n for n, one in enumerate(made.done) if one.kind == "fsync" and is_left_out(one.path)]
    assert left_out
    done = [replace(one, kind="seek", fd="-1") if n in left_out else one for n, one in enumerate(made.done)]
    replay = Replay(replace(made, done=done), pool, recorder)
    for state in replay.states(is_journaled=False, is_wanted=_near(made)):
        replay.check(state)
        if replay.wrong:
            break
    assert any(word in sentence for sentence in replay.wrong for word in said.split("|")), replay.wrong
