"""What a disk holds after the power went: a model of a file system, and the states that one moment may leave.

A file's writes are on the disk when it was synced after them; before, each may be there, or not, or in part, or as zeros. What a
folder lists is on the disk when the folder was synced after; before, each entry may be there or not, in any order. A rename is
one step: both names or neither. That is as little as POSIX promises, in the way of ALICE (Pillai et al., OSDI 2014);
ext4 promises more: a sync of anything commits all names before it, in their order (`is_journaled`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from power_cuts.recording import Operation

Change: TypeAlias = tuple[int, bytes | None, int]
"""(offset, bytes, end of the call's place in the trace); bytes None: cut to offset."""
Choice = Literal["kept", "lost", "short", "torn", "zeros", "last"]
_NUMBERS = count()


@dataclass(eq=False, slots=True)
class File:
    """What is on the disk for sure, and the changes since that may be."""

    durable: bytes = b""
    pending: list[Change] = field(default_factory=list)
    number: int = field(default_factory=lambda: next(_NUMBERS))
    version: int = 0

    def content(self, choice: Choice) -> bytes:
        """What a cut leaves of it."""
        if choice == "lost":
            return self.durable
        if choice == "zeros":
            return _applied(self.durable, [(at, data and bytes(len(data)), n) for at, data, n in self.pending])
        if choice == "short":
            return _applied(self.durable, self.pending[:-1])
        if choice == "last":
            return _applied(self.durable, self.pending[-1:])
        if choice == "torn":
            at, data, n = self.pending[-1]
            return _applied(self.durable, [*self.pending[:-1], (at, data and data[: len(data) // 2], n)])
        return _applied(self.durable, self.pending)


def _applied(content: bytes, changes: Iterable[Change]) -> bytes:
    made = bytearray(content)
    for at, data, _ in changes:
        if len(made) < at:
            made.extend(bytes(at - len(made)))
        if data is None:
            del made[at:]
        else:
            made[at : at + len(data)] = data
    return bytes(made)


@dataclass(eq=False, slots=True)
class Folder:
    """What it lists now, and what it lists on the disk for sure."""

    now: dict[str, "Node"] = field(default_factory=dict)
    durable: dict[str, "Node"] = field(default_factory=dict)


Node: TypeAlias = File | Folder


@dataclass(eq=False, slots=True)
class Step:
    """One change of names that is not on the disk for sure: (folder, name, what it names; None: nothing)."""

    changes: list[tuple[Folder, str, Node | None]]
    begun: int
    about: str


class Disk:
    """A folder on a disk, from a moment at which all of it was synced."""

    def __init__(self, found: Path, root: Path, *, is_journaled: bool = False) -> None:
        """What `found` holds, as it stood at `root` when the operations began."""
        self.root, self.is_journaled = root, is_journaled
        self.top = _loaded(found)
        self.steps: list[Step] = []
        self._offsets: dict[tuple[str, int], int] = {}

    def apply(self, one: Operation) -> None:
        """One operation more."""
        ended = one.ended
        match one.kind:
            case "open":
                self._open(one, ended)
            case "seek":
                node = self._find(one.path)
                if isinstance(node, File):
                    self._offsets[one.fd, node.number] = one.size
            case "write" | "truncate":
                self._write(one, ended)
            case "fsync":
                self._sync(one)
            case "mkdir":
                self._step([(*self._parent(one.path), Folder())], one, ended)
            case "unlink" | "rmdir":
                self._step([(*self._parent(one.path), None)], one, ended)
            case "rename" | "link":
                node = self._find(one.path)
                assert node is not None, one
                gone = [(*self._parent(one.path), None)] if one.kind == "rename" else []
                self._step([*gone, (*self._parent(one.to), node)], one, ended)
            case "unknown":
                raise AssertionError(f"{one.data!r} of {one.path} has no place in the model")

    def _open(self, one: Operation, ended: int) -> None:
        node = self._find(one.path)
        if node is None and b"C" in one.data:
            node = File()
            self._step([(*self._parent(one.path), node)], one, ended)
        assert isinstance(node, File), one
        if b"T" in one.data and node.content("kept"):
            node.pending.append((0, None, ended))
            node.version += 1
        self._offsets[one.fd, node.number] = len(node.content("kept")) if b"A" in one.data else 0

    def _write(self, one: Operation, ended: int) -> None:
        node = self._find(one.path)
        if node is None:
            return  # a file without a name any more
        assert isinstance(node, File), one
        node.version += 1
        if one.kind == "truncate":
            kept = len(node.content("kept"))
            node.pending.append((one.size, None if one.size <= kept else b"", ended))
            return
        at = one.offset
        if at is None:
            at = self._offsets[one.fd, node.number]
            self._offsets[one.fd, node.number] = at + len(one.data)
        node.pending.append((at, one.data, ended))

    def _sync(self, one: Operation) -> None:
        node = self._find(one.path) if one.path != str(self.root) else self.top
        if isinstance(node, File):
            node.version += 1
            covered = [change for change in node.pending if change[2] <= one.begun]
            node.durable = _applied(node.durable, covered)
            node.pending = [change for change in node.pending if change[2] > one.begun]
        for step in list(self.steps):
            if step.begun <= one.begun and (self.is_journaled or any(of is node for of, _, _ in step.changes)):
                self._commit(step)

    def _commit(self, step: Step) -> None:
        """On the disk for sure, and before it what it follows upon: earlier changes of the same names."""
        if step not in self.steps:
            return
        mine = {(id(of), name) for of, name, _ in step.changes}
        for earlier in self.steps[: self.steps.index(step)]:
            if mine & {(id(of), name) for of, name, _ in earlier.changes}:
                self._commit(earlier)
        self.steps.remove(step)
        for of, name, node in step.changes:
            _set(of.durable, name, node)

    def _step(self, changes: list[tuple[Folder, str, Node | None]], one: Operation, ended: int) -> None:
        self.steps.append(Step(changes, ended, f"{one.kind} {one.path} {one.to}".strip()))
        for of, name, node in changes:
            _set(of.now, name, node)

    def _find(self, path: str) -> Node | None:
        node: Node | None = self.top
        for name in PurePosixPath(path).relative_to(self.root).parts:
            node = node.now.get(name) if isinstance(node, Folder) else None
        return node

    def _parent(self, path: str) -> tuple[Folder, str]:
        parent = self._find(str(PurePosixPath(path).parent))
        assert isinstance(parent, Folder), path
        return parent, PurePosixPath(path).name

    def listed(self, kept: Iterable[Step]) -> dict[str, File]:
        """Every file's path where these of the open steps reached the disk."""
        entries: dict[int, dict[str, Node]] = {}
        for step in kept:
            for of, name, node in step.changes:
                _set(entries.setdefault(id(of), dict(of.durable)), name, node)
        return dict(_walked(self.top, entries, ""))


def _set(entries: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


def _walked(folder: Folder, entries: dict[int, dict[str, Node]], at: str) -> Iterator[tuple[str, File]]:
    for name, node in entries.get(id(folder), folder.durable).items():
        if isinstance(node, File):
            yield f"{at}{name}", node
        else:
            yield from _walked(node, entries, f"{at}{name}/")


def _loaded(root: Path) -> Folder:
    folder = Folder()
    for path in root.iterdir():
        folder.now[path.name] = _loaded(path) if path.is_dir() else File(path.read_bytes())
    folder.durable = dict(folder.now)
    return folder
