"""Files of a lake that a disk spoiled, and whole commands: more surfaces. Input from outside is in surfaces.py."""

# ruff: noqa: E501 - a surface is a line

import contextlib
import hashlib
import io
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import salon
from flows.cli import run
from flows.garbage_collection import retention
from flows.nights.anchors import anchor_sets
from flows.nights.record import notes
from schemas.errors import SalonError
from schemas.tables.nights import DRIFT
from schemas.tables.stored import SAMPLES
from tasks.ingest.known_sources import known_source
from tasks.lake.reading import Lake
from tasks.publish.folders import LAYOUT
from tasks.publish.living_tables import living_table
from tasks.publish.pins import pins
from tasks.publish.reading import chosen, current, load_cells, publications
from tasks.verify.publication import check_manifest, check_pointer
from tests.fuzz.answers import ROOT
from tests.fuzz.seeds import REPLIES, ROWS
from tests.fuzz.surface import Surface
from tests.fuzz.surfaces import SURFACES
from tests.support.small_lake import IDS, made_small_lake, put_cells

WORDS = {0: "published or nothing to do", 1: "blocked by a gate, or not verified", 2: "the input", 3: "a store or provider"}


@cache
def _lake() -> tuple[Path, Path]:
    """A lake with one publication, in memory where there is such a folder; it goes with the process."""
    root = Path(tempfile.mkdtemp(prefix="salon-fuzz-"))
    made = made_small_lake(root / "lake")
    return made.lake.root, put_cells(made.lake.root, made.cells).folder


def _changed(at: Callable[[], Path], use: Callable[[Path, Path], object]) -> Callable[[bytes, Path], None]:
    """What `use`, given the lake and the publication, makes of a lake where the bytes stand in place of a file."""

    def read_it(content: bytes, _folder: Path) -> None:
        root, published = _lake()
        path = at()
        before = path.read_bytes() if path.is_file() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        try:
            use(root, published)
        finally:
            if before is None:
                path.unlink()
            else:
                path.write_bytes(before)

    return read_it


def _each(*uses: Callable[[], object]) -> None:
    """All of them, also where one ends in an error that it may end in."""
    for use in uses:
        with contextlib.suppress(SalonError, salon.SalonError):
            use()


def _manifest(root: Path, published: Path) -> None:
    def read_all() -> None:
        load_cells(chosen(root, None, None))

    def opened() -> None:
        found = salon.open(root)
        found.table("benchmark_long")
        found.provenance()

    _each(read_all, opened, lambda: publications(root), lambda: current(root).provenance(), lambda: salon.publications(root))
    _each(lambda: [*check_manifest(published), *check_pointer(published)])


def _listed(_root: Path, published: Path, name: str, content: bytes) -> bytes:
    """A manifest whose digest of one file is right again: the file was changed by somebody who knew."""
    manifest = json.loads((published / "manifest.json").read_bytes())
    manifest["files"][name] |= {"sha256": hashlib.sha256(content).hexdigest(), "n_bytes": len(content)}
    return json.dumps(manifest).encode()


def _known(name: str) -> Callable[[bytes, Path], object]:
    def read_it(content: bytes, folder: Path) -> object:
        root, published = _lake()

        def use(_root: Path, _published: Path) -> None:
            _each(lambda: retention._identities(published), publications(root)[0].provenance)
            opened = salon.publications(root)
            assert opened.height == 1
            _each(lambda: salon.open(root, publication=published.name[:8]).tables)
            _each(lambda: salon.open(root, publication=published.name[:8]).provenance())

        inner = _changed(lambda: published / name, use)
        if name == "manifest.json":
            return inner(content, folder)
        listed = _listed(root, published, name, content)
        pointer = json.loads((published.parent / "latest.json").read_bytes())
        pointer["manifest_sha256"] = hashlib.sha256(listed).hexdigest()
        with_manifest = _changed(lambda: published / "manifest.json", lambda *_: inner(content, folder))
        with_pointer = _changed(lambda: published.parent / "latest.json", lambda *_: with_manifest(listed, folder))
        return with_pointer(json.dumps(pointer).encode(), folder)

    return read_it


def _marker(root: Path, _published: Path) -> None:
    lake, key = Lake(root), IDS["dataset_id"]
    _each(
        lambda: lake.scan(SAMPLES, key).collect(), lambda: lake.read_part(SAMPLES, key, 0), lambda: lake.is_complete(SAMPLES, key)
    )


def _command(suffix: str, *arguments: str) -> Callable[[bytes, Path], object]:
    """A command whose argument INPUT is a file of the bytes, FOLDER one that holds it. 70, and any code not declared, is a fault."""

    def read_it(content: bytes, folder: Path) -> object:
        (folder / "prompt.txt").write_text("Look at {prompt}.")
        path = folder / (suffix if suffix[0] != "." else f"input{suffix}")
        path.write_bytes(content)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = run([{"INPUT": str(path), "FOLDER": str(folder), "LAKE": str(_lake()[0])}.get(one, one) for one in arguments])
        shutil.rmtree(folder / "lake", ignore_errors=True)
        text = said.getvalue()
        assert code in WORDS, f"exit code {code}: {text[-1500:]}"
        assert code != 1 or arguments[0] == "verify", f"exit code 1 of a command that checks nothing: {text[-1500:]}"
        assert "Traceback" not in text and "fault of Salon's own" not in text, text[-1500:]  # noqa: PT018
        return None

    return read_it


def _stored(relative: str, use: Callable[[Path, Path], object], seed: Any = None) -> Surface:
    def at() -> Path:
        root, published = _lake()
        return root / relative.replace("PUBLISHED", published.relative_to(root).as_posix()).replace("DATASET", IDS["dataset_id"])

    content = at().read_bytes() if seed is None else json.dumps(seed).encode()
    return Surface((content,), _changed(at, use), _WRONG, costs=20)


def _known_file(name: str) -> Surface:
    return Surface(((_lake()[1] / name).read_bytes(),), _known(name), _WRONG, costs=30)


def _called(seeds: tuple[bytes, ...], suffix: str, *arguments: str) -> Surface:
    return Surface(seeds, _command(suffix, *arguments), costs=60)


def _of_lake(name: str, *arguments: str) -> Surface:
    called = _command(".txt", *arguments, "--lake", "LAKE")

    def read_it(content: bytes, folder: Path) -> object:
        return _changed(lambda: _lake()[1] / name, lambda *_: called(b"", folder))(content, folder)

    return Surface(((_lake()[1] / name).read_bytes(),), read_it, costs=100)


@cache
def _sample() -> str:
    path = _lake()[0].parent / "sample.json"
    path.write_text('{"prompt": "a cup"}')
    return str(path)


_WRONG = (SalonError, salon.SalonError)
_HOME = f"publish/{LAYOUT}/nightly"
_NIGHT = {"publication_id": "a", "checkpoints": {"lab/north": "1"}, "anchor_set": None, "is_whole": True}
_ANCHORS = {"anchor_set": "a" * 64, "frozen_at": "2026-01-01", "publication_id": "b", "n_samples": 3, "n_by_source": {"a": 3}}
_KNOWN = {
    "dataset_id": "d", "parts": [{"index": 0, "n_by_status": {"ok": 1}, "shard": None}], "files": None, "pictures": [], "roles": [["m", "c"]],
}  # fmt: skip
_PIN = {"publication_id": "a", "pinned_at": "2026", "because": "x"}
_PLAN = (
    b'name = "b"\nlake = "lake"\n[[sources]]\nreader = "manifest"\npath = "prompt.txt"\n[[rubrics]]\nid = "alignment"\n'
    b'[[judges]]\nmodel = "gpt-4.1-2025-04-14"\n[limits]\nmax_usd = 2.5\n[gate]\nmin_coverage = 0.9\n'
)
_PARSED = ("parse", "--rubric", "alignment", "--jsonl", "INPUT")
_TRIED = ("rubrics", "try", "alignment", "--sample")
SPOILED: dict[str, Callable[[], Surface]] = {
    "publication, manifest.json": lambda: _stored("PUBLISHED/manifest.json", _manifest),
    "publication, latest.json": lambda: _stored(f"{_HOME}/latest.json", _manifest),
    "publication, provenance.json": lambda: _known_file("provenance.json"),
    "publication, tables.json": lambda: _known_file("tables.json"),
    "publication, Parquet": lambda: _stored("PUBLISHED/benchmark_long.parquet", _manifest),
    "marker": lambda: _stored("complete/samples/DATASET.json", _marker),
    "pin": lambda: _stored("pins/a.json", lambda root, _: pins(root), _PIN),
    "night": lambda: _stored("nights/nightly/2026-01-01.json", lambda root, _: notes(root, "nightly"), _NIGHT),
    "anchors": lambda: _stored("anchors/nightly/a.json", lambda root, _: anchor_sets(root, "nightly"), _ANCHORS),
    "living table": lambda: _stored(
        f"{_HOME}/drift.json", lambda root, _: living_table(root, DRIFT, "nightly"), {"path": "drift/a.parquet", "sha256": "0"}
    ),
    "known source": lambda: _stored("sources/a.json.z", lambda root, _: known_source(root / "sources/a.json.z"), _KNOWN)._replace(
        mend=zlib.compress
    ),
}
"""Files of a lake, by name."""
COMMANDS: dict[str, Callable[[], Surface]] = {
    "salon plan": lambda: _called((_PLAN,), ".toml", "plan", "INPUT"),
    "salon rubrics lint": lambda: _called(
        ((ROOT / "rubrics/alignment/rubric.toml").read_bytes(),), "rubric.toml", "rubrics", "lint", "FOLDER"
    ),
    "salon rubrics try": lambda: _called((ROWS.splitlines()[0], b'{"prompt":"a cup","image":null}'), ".json", *_TRIED, "INPUT"),
    "salon rubrics try --reply": lambda: _called(REPLIES, ".txt", *_TRIED, _sample(), "--reply", "INPUT"),
    "salon parse, command": lambda: _called(SURFACES["salon parse"].seeds, ".jsonl", *_PARSED),
} | {
    f"salon {command}, {name}": partial(_of_lake, name, command, *options)
    for name in ("manifest.json", "provenance.json", "tables.json")
    for command, *options in (("table",), ("open",), ("verify", "3f662004"), ("explain", "lab/north/1|a/small/overall_score"))
}
"""Whole commands, by name."""


@cache
def surface(name: str) -> Surface:
    """A surface by its name: of SURFACES, SPOILED or COMMANDS; the lake the latter read is made here."""
    return SURFACES[name] if name in SURFACES else (SPOILED | COMMANDS)[name]()
