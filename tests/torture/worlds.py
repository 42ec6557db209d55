"""Where the campaign's faults strike: a new lake, or one that was published before and has more to judge now. Runs and checks."""

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import polars as pl
from checks import Watch, cells, digest_of, shape_of
from database import ServerLedger, server_ledger
from harness import BENCHMARK, ProcessPool, Recorder, add_samples, make_world, process_pool
from jobs import Job, World, drained, late_ms, not_stopped, put_on


@dataclass
class Template:
    """A world to begin from, and the table at the end of an undisturbed run."""

    folder: Path
    reference: pl.DataFrame
    old: pl.DataFrame | None
    publications: dict[str, str]  # folder below publish/ -> its digest
    run_s: float
    counts: dict[str, int]
    counts_before_checks: dict[str, int]


@dataclass
class Worker:
    """One lake at a time, with process pools and a provider of its own."""

    folder: Path
    shapes: set[str]  # shared by all workers: what was gone on from already
    _stack: ExitStack = field(default_factory=ExitStack)
    _templates: dict[World, Template] = field(default_factory=dict)
    _pools: dict[bool, ProcessPool] = field(default_factory=dict)
    _ledger: ServerLedger | None = None

    def __enter__(self) -> Self:
        self.recorder = Recorder()
        self._stack.callback(self.recorder.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def children(self, *, is_bare: bool) -> ProcessPool:
        """The process pool of that kind, started when it is first needed."""
        if is_bare not in self._pools:
            started = process_pool(self.folder / f"pool-{is_bare}", is_bare=is_bare)
            self._pools[is_bare] = self._stack.enter_context(started)
        return self._pools[is_bare]

    def ledger(self, world: World) -> ServerLedger | None:
        """The server's database for a world that has its ledger there; the server is started when it is first needed."""
        if world.is_on_server and self._ledger is None:
            self._ledger = self._stack.enter_context(server_ledger())
        return self._ledger if world.is_on_server else None

    def template(self, world: World) -> Template:
        """Made once for each kind of world, at the place it will be used: a lake's files may name their folder."""
        if world not in self._templates:
            self._templates[world] = self._made(world)
        return self._templates[world]

    def _made(self, world: World) -> Template:
        n, run = world.n_samples, self.children(is_bare=world.is_bare).run
        ledger = self.ledger(world)
        file = self._fresh(world, None, n // 2 if world.is_grown else n)
        old, published = None, {}
        if world.is_grown:
            assert run(file, self.recorder.url)["code"] == 0
            old, published = cells(self._lake), _digests(self._lake)
            add_samples(file.parent, range(n // 2, n))
        if world.is_checked:
            assert run(file, self.recorder.url, point="publish", event="call", nth=1)["code"] == -9
        kept = self.folder / f"template-{len(self._templates)}"
        shutil.copytree(file.parent, kept)
        if ledger is not None:
            ledger.keep(_kept(kept))
        never: dict[str, Any] = {"kind": "write", "action": "fail", "n": 10**9}
        checked = run(file, self.recorder.url, point="validate", event="call", nth=1, **never)
        assert checked["code"] == (0 if world.is_checked else -9), checked
        self.recorder.delay_s = world.reply_s
        end = run(self._fresh(world, kept), self.recorder.url, **never)
        assert end["code"] == 0, end
        return Template(kept, cells(self._lake), old, published, end["wall_s"], end["counts"], checked["counts"])

    @property
    def _lake(self) -> Path:
        return self.folder / "world" / "lake"

    def _fresh(self, world: World, template: Path | None, n_samples: int = 0) -> Path:
        folder, ledger = self.folder / "world", self.ledger(world)
        shutil.rmtree(folder, ignore_errors=True)
        if ledger is not None:
            ledger.fill(template and _kept(template))
        if template is None:
            file = make_world(folder, n_samples)
            text = BENCHMARK.replace("shard_size = 10", f"shard_size = {max(4, n_samples // 4)}")
            file.write_text(text if ledger is None else f'ledger = "{ledger.url}"\n{text}')
            return file
        shutil.copytree(template, folder)
        return folder / "benchmark.toml"

    def run(self, job: Job) -> dict[str, Any]:
        """Every fault, each checked, then a run without. What happened, as JSON can say it."""
        world, template = job.world, self.template(job.world)
        children = self.children(is_bare=world.is_bare)
        self.recorder.delay_s = world.reply_s
        file = self._fresh(world, template.folder)
        versions = [template.old, template.reference] if template.old is not None else []
        before = frozenset(range(world.n_before))
        watch = Watch(self._lake, self.recorder, world.n_samples, before, versions, self.ledger(world))
        ends: list[dict[str, Any]] = []
        wrong: list[str] = []
        for fault in job.faults:
            n_before = len(self.recorder.arrived_ns)
            end = children.run(file, self.recorder.url, **put_on(fault, template.run_s, template.counts))
            end["late_ms"] = list(late_ms(self.recorder.arrived_ns[n_before:], end["struck_at_ns"]))
            end |= drained(end, self.recorder.answered_ns[-1:])
            ends.append(end)
            said = (*watch.after(end), *_changed(self._lake, template), *not_stopped(fault, end, watch))
            wrong += [f"{job.series}, {fault}: {one}" for one in said]
            if job.until_done and end["code"] in (0, 1):
                break
        shape = f"{world} {shape_of(self._lake)}"
        is_known = job.is_brief and shape in self.shapes
        if not is_known:
            last = children.run(file, self.recorder.url)
            wrong += [f"{job.series}, at the end of {job.faults}: {said}" for said in watch.at_the_end(last, template.reference)]
            if not wrong:
                self.shapes.add(shape)
        kept = ("code", "wall_s", "cpu_s", "is_struck", "drain_s", "after_drain_s", "cpu_after_signal_s", "counts", "late_ms")
        told = [{name: end[name] for name in kept} | {"fault": fault} for end, fault in zip(ends, job.faults, strict=False)]
        record = {"series": job.series, "ends": told, "wrong": wrong, "found": dict(watch.found), "is_resumed": not is_known}
        return record | {"before_checks": template.counts_before_checks}


def _kept(template: Path) -> str:
    """The name of a template's ledger on the server."""
    return template.name.replace("-", "_")


def _digests(lake: Path) -> dict[str, str]:
    folders = (path.parent for path in lake.glob("publish/v1/*/*/manifest.json"))
    return {str(folder.relative_to(lake)): digest_of(folder) for folder in folders}


def _changed(lake: Path, template: Template) -> list[str]:
    return [f"{name} is not what it was" for name, digest in template.publications.items() if digest_of(lake / name) != digest]
