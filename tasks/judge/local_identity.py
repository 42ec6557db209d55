"""What is served by a judge of this machine: its weights' digest, its engine's version, its settings. Starting it is flows."""

import os
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import orjson

from schemas.benchmark.file import Benchmark
from schemas.benchmark.judges import Judge, refuse_same_questions
from schemas.errors import InputError
from schemas.identities import canonical_json
from tasks.lake.atomic_files import sha256_of_file, write_bytes
from tasks.regular_files import content_of

FOLDER = "judge-servers"
"""In a lake: logs, what ran, and the digests of weights that were read."""
_KNOWN = "weights.json"
_VERSION_LIMIT_S = 300.0
BEGINNING = "weights sha256 "


def with_identities(benchmark: Benchmark, lake_root: Path) -> Benchmark:
    """The benchmark whose judges with a server have what is served as their `deployment`, unless the file states one.

    Raises InputError where the weights are not there, the engine's version cannot be asked for, or two judges serve the same.
    """
    if all(judge.server is None or judge.deployment for judge in benchmark.judges):
        return benchmark
    judges = [
        judge
        if judge.server is None or judge.deployment
        else judge.model_copy(update={"deployment": of(benchmark, judge, lake_root)})
        for judge in benchmark.judges
    ]
    try:
        refuse_same_questions(judges)  # sections that differ may serve the same
    except ValueError as error:
        raise InputError(str(error)) from error
    return benchmark.model_copy(update={"judges": judges})


def of(benchmark: Benchmark, judge: Judge, lake_root: Path) -> str:
    """What is served, in one line. The command enters as a digest: it may hold a key, and this stands in publications."""
    assert judge.server is not None
    server, said = judge.server, []
    if server.weights is not None:
        said.append(BEGINNING + weights_digest(benchmark.path(server.weights), lake_root / FOLDER, lake_root / "staging"))
    if server.version is not None:
        said.append(f"engine {_version(judge, server.version, benchmark.folder)}")
    said.append(f"settings sha256 {sha256(canonical_json(server.command)).hexdigest()[:16]}")
    return "; ".join(said)


def weights_digest(path: Path, home: Path, staging: Path) -> str:
    """sha256 over the names and contents of a file, or of all files below a folder less hidden ones (what a download left).

    A file whose path, size and time of change are those of the last reading is not read again: weights have many gigabytes.
    """
    if not path.exists():
        raise InputError(
            f"judges.server.weights: {path} does not exist; name the file or folder that is served. On a machine without it, "
            'set deployment = "…" to what `salon judge-server FILE --identity` prints on the machine that has it'
        )
    known, found = _known(home / _KNOWN), {}
    whole = sha256()
    for name, file in sorted(_files(path)):
        stat = file.stat()
        seen = [stat.st_mtime_ns, stat.st_size]
        *before, digest = known.get(str(file.resolve())) or [None]
        if before != seen or not isinstance(digest, str):
            digest = sha256_of_file(file)
        found[str(file.resolve())] = [*seen, digest]
        whole.update(f"{name}\0{digest}\n".encode())
    if any(known.get(name) != entry for name, entry in found.items()):
        home.mkdir(parents=True, exist_ok=True)
        write_bytes(orjson.dumps(known | found), home / _KNOWN, staging)
    return whole.hexdigest()


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    for root, folders, names in os.walk(path, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(root) / name
            if not name.startswith(".") and file.is_file():
                yield file.relative_to(path).as_posix(), file


def _known(path: Path) -> dict[str, list[object]]:
    try:
        found = orjson.loads(content_of(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _version(judge: Judge, command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_VERSION_LIMIT_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"judges.server.version of {judge.id}: {error}; name a command that prints the version") from error
    first = next((line.strip() for line in done.stdout.splitlines() if line.strip()), "")
    if done.returncode or not first:
        said = " ".join(done.stderr.split())[-300:]
        raise InputError(
            f"judges.server.version of {judge.id} ended with exit code {done.returncode} and printed "
            f"{'no version' if not first else repr(first[:80])}: {said}"
        )
    return first[:80]
