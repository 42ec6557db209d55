"""The states that a power cut after each operation of a run may leave, each told once. The model is disk.py.

At each moment: nothing that is not sure; all of it; each open change of names alone, each alone missing, and all up to each (what
a journal keeps); and with all names kept, open writes lost, without the last, with half of it, as zeros, the last alone: of all
files, and of each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from power_cuts.disk import Choice, Disk, File, Folder, Step
from power_cuts.recording import Operation

CHOICES: tuple[Choice, ...] = ("lost", "short", "torn", "zeros", "last")
_APART = ("staging", "locks", "data_docs")
"""What is unfinished and what nothing is read from: two states that differ there alone are one."""


@dataclass(frozen=True, slots=True)
class State:
    """What a cut may leave: files by their paths below the lake. Of two equal ones `tells` is equal.

    `n_acknowledged` replies somebody was told of before, and `n_sent` requests were on their way.
    """

    after: int
    how: str
    files: Mapping[str, tuple[File, Choice]]
    tells: str
    n_acknowledged: int
    n_sent: int

    def write(self, lake: Path, before: Mapping[str, str]) -> dict[str, str]:
        """Make the folder hold this state, touching only what differs from the one it holds; what is there now."""
        there = _digests(self.files, {})
        for name in before.keys() - there.keys():
            (lake / name).unlink(missing_ok=True)
        for name, digest in there.items():
            if before.get(name) != digest:
                (lake / name).parent.mkdir(parents=True, exist_ok=True)
                file, choice = self.files[name]
                (lake / name).unlink(missing_ok=True)
                (lake / name).write_bytes(file.content(choice))
        return there


@dataclass
class Counts:
    """Moments looked at, and states with those told before."""

    n_moments: int = 0
    n_states: int = 0


def states(
    done: Sequence[Operation], disk: Disk, counts: Counts, is_wanted: Callable[[int], bool] = lambda _: True
) -> Iterator[State]:
    """Every state that is unlike those before it, after each operation."""
    known: set[tuple[str, int, int]] = set()
    seen: set[tuple[int, int, int]] = set()
    before: object = None
    digests: dict[tuple[int, int, Choice], str] = {}
    n_sent = n_acknowledged = 0
    for ended, one in enumerate(done):
        n_acknowledged += one.kind == "mark"
        n_sent += one.kind == "sent"
        disk.apply(one)
        if one.kind in ("sent", "seek") or not is_wanted(ended):
            continue
        counts.n_moments += 1
        now = (_open_changes(disk), n_acknowledged, n_sent)
        if now == before:
            continue  # what was done is nothing that anybody reads
        before = now
        for how, files in _cuts(disk):
            counts.n_states += 1
            named = hash(frozenset((name, file.number, file.version, choice) for name, (file, choice) in files.items()))
            if (named, n_acknowledged, n_sent) in seen:
                continue
            seen.add((named, n_acknowledged, n_sent))
            tells = _told(files, digests)
            if (tells, n_acknowledged, n_sent) not in known:
                known.add((tells, n_acknowledged, n_sent))
                yield State(ended, f"after {one.kind} {one.path}: {how}", files, tells, n_acknowledged, n_sent)


def _open_changes(disk: Disk) -> object:
    """What is read now, or would be after a cut: files as they are, and the changes of names that are open."""
    steps = disk.steps
    listed = (*_lake(disk.listed(steps)).items(), *_lake(disk.listed(())).items())
    return frozenset((name, file.number, file.version) for name, file in listed), tuple(map(id, _that_matter(disk, steps)))


def _cuts(disk: Disk) -> Iterator[tuple[str, dict[str, tuple[File, Choice]]]]:
    steps = disk.steps
    whole, bare = _lake(disk.listed(steps)), _lake(disk.listed(()))
    yield "all of it kept", {name: (file, "kept") for name, file in whole.items()}
    yield "what was not synced lost", {name: (file, "lost") for name, file in bare.items()}
    yield "names lost, data kept", {name: (file, "kept") for name, file in bare.items()}
    open_files = [file for file in {id(one): one for one in whole.values()}.values() if file.pending]
    for choice in CHOICES if open_files else ():
        yield f"all open writes {choice}", {name: (file, choice if file.pending else "kept") for name, file in whole.items()}
        for mine in open_files if len(open_files) > 1 else ():
            yield (
                f"one file's writes {choice}",
                {name: (file, choice if file is mine else "kept") for name, file in whole.items()},
            )
    for number, step in enumerate(_that_matter(disk, steps)):
        others = [each for each in steps if each is not step]
        before = steps[: steps.index(step)]
        for how, kept in (("alone missing", others), ("alone kept", [step]), ("and what came after lost", before)):
            listed = _lake(disk.listed(kept))
            for choice in ("kept", "lost"):
                yield f"{number}: {step.about} {how}, data {choice}", {name: (file, choice) for name, file in listed.items()}


def _that_matter(disk: Disk, steps: Sequence[Step]) -> list[Step]:
    """Changes of folders in which something is read, as all of it is kept or nothing is."""
    mine = {*_read_folders(disk.top, is_durable=False), *_read_folders(disk.top, is_durable=True)}
    return [step for step in steps if any(id(of) in mine for of, _, _ in step.changes)]


def _read_folders(folder: Folder, *, is_durable: bool, depth: int = 0) -> Iterator[int]:
    yield id(folder)
    for name, node in (folder.durable if is_durable else folder.now).items():
        if isinstance(node, Folder) and not (depth == 1 and name in _APART) and (depth or name == "lake"):
            yield from _read_folders(node, is_durable=is_durable, depth=depth + 1)


def _lake(listed: Mapping[str, File]) -> dict[str, File]:
    names = ((name.removeprefix("lake/"), file) for name, file in listed.items() if name.startswith("lake/"))
    return {name: file for name, file in names if name.split("/")[0] not in _APART and not name.endswith("-shm")}


def _told(files: Mapping[str, tuple[File, Choice]], known: dict[tuple[int, int, Choice], str]) -> str:
    lines = (f"{name} {digest}" for name, digest in sorted(_digests(files, known).items()))
    return sha256("\n".join(lines).encode()).hexdigest()


def _digests(files: Mapping[str, tuple[File, Choice]], known: dict[tuple[int, int, Choice], str]) -> dict[str, str]:
    found = {}
    for name, (file, choice) in files.items():
        key = (file.number, file.version, choice if file.pending else "kept")
        if key not in known:
            known[key] = sha256(file.content(key[2])).hexdigest()
        found[name] = known[key]
    return found
