"""Where the campaign's faults strike: a new lake, or one that was published before and has more to judge now. Runs and checks."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import polars as pl
from checks import Watch, cells, digest_of, shape_of
from rig import BENCHMARK, Nursery, Recorder, add_samples, make_world, nursery


@dataclass(frozen=True)
class Job:
    """Faults for one lake, one after the other. `until_done`: a run that nothing stopped is the last but one.

    `is_grown`: the lake holds a publication of half of the samples. `is_brief`: where an earlier job left a lake of the same
    shape, the run at the end is left out.
    """

    series: str
    faults: tuple[dict[str, Any], ...]
    n_samples: int = 40
    is_grown: bool = False
    until_done: bool = False
    is_brief: bool = False

    @property
    def half(self) -> int:
        """Samples judged before anything went wrong."""
        return self.n_samples // 2 if self.is_grown else 0


@dataclass
class Template:
    """A world to begin from, and the table at the end of an undisturbed run."""

    folder: Path
    reference: pl.DataFrame
    old: pl.DataFrame | None
    publications: dict[str, str]  # folder below publish/ -> its digest
    run_s: float
    counts: dict[str, int]


@dataclass
class Worker:
    """One lake at a time, with a nursery and a provider of its own."""

    folder: Path
    shapes: set[str]  # shared by all workers: what was gone on from already
    _stack: ExitStack = field(default_factory=ExitStack)
    _templates: dict[tuple[int, bool], Template] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.children: Nursery = self._stack.enter_context(nursery(self.folder / "nursery"))
        self.recorder = Recorder()
        self._stack.callback(self.recorder.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def template(self, n_samples: int, *, is_grown: bool) -> Template:
        """Made once for each kind of world, at the place it will be used: a lake's files may name their folder."""
        key = n_samples, is_grown
        if key not in self._templates:
            file = self._fresh(None, n_samples // 2 if is_grown else n_samples)
            old, published = None, {}
            if is_grown:
                assert self.children.run(file, self.recorder.url)["code"] == 0
                old = cells(self._lake)
                published = _digests(self._lake)
                add_samples(file.parent, range(n_samples // 2, n_samples))
            kept = self.folder / f"template-{n_samples}-{is_grown}"
            shutil.copytree(file.parent, kept)
            end = self.children.run(file, self.recorder.url, kind="write", action="fail", n=10**9)
            assert end["code"] == 0, end
            self._templates[key] = Template(kept, cells(self._lake), old, published, end["wall_s"], end["counts"])
        return self._templates[key]

    @property
    def _lake(self) -> Path:
        return self.folder / "world" / "lake"

    def _fresh(self, template: Path | None, n_samples: int = 0) -> Path:
        world = self.folder / "world"
        shutil.rmtree(world, ignore_errors=True)
        if template is None:
            file = make_world(world, n_samples)
            file.write_text(BENCHMARK.replace("shard_size = 10", f"shard_size = {max(4, n_samples // 4)}"))
            return file
        shutil.copytree(template, world)
        return world / "benchmark.toml"

    def run(self, job: Job) -> dict[str, Any]:
        """Every fault, each checked, then a run without. What happened, as JSON can say it."""
        template = self.template(job.n_samples, is_grown=job.is_grown)
        file = self._fresh(template.folder)
        versions = [template.old, template.reference] if template.old is not None else []
        watch = Watch(self._lake, self.recorder, job.n_samples, frozenset(range(job.half)), versions)
        ends: list[dict[str, Any]] = []
        wrong: list[str] = []
        for fault in job.faults:
            n_before = len(self.recorder.arrived_ns)
            end = self.children.run(file, self.recorder.url, **_on(fault, template))
            end["late_ms"] = list(_late_ms(self.recorder.arrived_ns[n_before:], end["struck_at_ns"]))
            ends.append(end)
            wrong += [f"{job.series}, {fault}: {said}" for said in (*watch.after(end), *_changed(self._lake, template))]
            if job.until_done and end["code"] in (0, 1):
                break
        shape = f"{job.n_samples} {job.is_grown} {shape_of(self._lake)}"
        is_known = job.is_brief and shape in self.shapes
        if not is_known:
            last = self.children.run(file, self.recorder.url)
            wrong += [f"{job.series}, at the end of {job.faults}: {said}" for said in watch.at_the_end(last, template.reference)]
            if not wrong:
                self.shapes.add(shape)
        kept = ("code", "wall_s", "cpu_s", "is_struck", "after_signal_s", "cpu_after_signal_s", "counts", "late_ms")
        told = [{name: end[name] for name in kept} | {"fault": fault} for end, fault in zip(ends, job.faults, strict=False)]
        return {"series": job.series, "ends": told, "wrong": wrong, "found": dict(watch.found), "is_resumed": not is_known}


def _on(fault: dict[str, Any], template: Template) -> dict[str, Any]:
    """A fault whose moment is a share of an undisturbed run, in its seconds or calls."""
    said = dict(fault)
    if "share" in said:
        share = said.pop("share")
        if said.get("action") == "kill":
            said["n"] = 1 + int(share * template.counts[said["kind"]])
        elif said.get("action") == "full":
            said["n"] = int(share * template.counts["bytes"])
        else:
            said["after_s"] = share * template.run_s
    return said


def _late_ms(arrived_ns: list[int], struck_at_ns: int) -> Iterator[float]:
    """Of the requests that came after the first call failed: how long after."""
    if struck_at_ns:
        yield from ((moment - struck_at_ns) / 1e6 for moment in arrived_ns if moment > struck_at_ns)


def _digests(lake: Path) -> dict[str, str]:
    folders = (path.parent for path in lake.glob("publish/v1/*/*/manifest.json"))
    return {str(folder.relative_to(lake)): digest_of(folder) for folder in folders}


def _changed(lake: Path, template: Template) -> list[str]:
    return [f"{name} is not what it was" for name, digest in template.publications.items() if digest_of(lake / name) != digest]
