"""Weights & Biases: an offline run for each checkpoint, as its own client writes them. Which figures: figures.py."""

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from schemas.errors import InputError, StoreError
from tasks.publish.exporters.figures import FIGURES, Contestant, Exported, Numbers, check_reachable

_BLOCK, _HEADER, _FILE_HEADER = 32 * 1024, 7, 7
"""Of a run's log: records in blocks, each piece with its checksum (4 bytes), length (2) and type (1), after the file's header."""
_FULL, _LAST = 1, 4


class WandbRuns:
    """The summary of a run is a checkpoint's figures; where they come from stands in its config."""

    columns = FIGURES
    checked_by = "wandb's own client and message types"

    def __init__(self, patience_s: float = 60.0) -> None:
        """`patience_s`: how long its client may take to write runs, and W&B, after a push, to show what it was sent."""
        self.patience_s = patience_s

    def check(self, exported: Exported, *, is_push: bool) -> None:  # noqa: ARG002 - a name is needed offline too
        """Raise InputError for a project's name that W&B does not take."""
        if exported.name is not None and not re.fullmatch(r"(?:[\w.-]+/)?[\w.-]{1,128}", exported.name):
            raise InputError(f"--name {exported.name!r} is not a W&B project; write PROJECT or ENTITY/PROJECT")

    def write(self, exported: Exported, folder: Path) -> None:
        """`wandb/offline-run-…`, a folder a checkpoint; `wandb sync` takes them."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # a folder is written: nothing is sent
        import wandb

        settings = wandb.Settings(
            silent=True, console="off", x_disable_stats=True, x_disable_meta=True, x_save_requirements=False, disable_git=True,
            disable_code=True, disable_job_creation=True,
        )  # fmt: skip
        _, project = _project(exported)
        for contestant in exported.contestants:
            run = wandb.init(
                mode="offline", dir=folder, project=project, group=contestant.model, job_type="salon", resume="allow",
                name=contestant.name, id=_run_id(exported, contestant), reinit="create_new",
                config={"salon": exported.words(contestant)}, settings=settings,
            )  # fmt: skip
            run.summary.update(contestant.numbers())
            run.finish()
        wandb.teardown()
        self._wait_until_written(folder, len(exported.contestants))
        (folder / "wandb" / "latest-run").unlink(missing_ok=True)
        for logs in [*folder.glob("wandb/*/logs"), *folder.glob("wandb/*/tmp")]:
            shutil.rmtree(logs)
        for log in folder.glob("wandb/debug*.log"):
            log.unlink()

    def read(self, folder: Path) -> Numbers:
        """Every run's summary, from its log by wandb's own message types."""
        from wandb.proto.wandb_internal_pb2 import Record

        found = {}
        for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
            config: dict[str, Any] = {}
            summary: dict[str, float] = {}
            for record in map(Record.FromString, _records(path)):
                for item in record.run.config.update:
                    config[item.key] = json.loads(item.value_json)
                for item in record.summary.update:
                    if "/" in item.key:  # its own, such as _runtime, are no figures
                        summary[item.key] = float(json.loads(item.value_json))
            said = config["salon"]
            found[said["model"], said["checkpoint"]] = summary
        return found

    def push(self, exported: Exported, folder: Path) -> str:
        """`wandb sync`, with the user's own WANDB_API_KEY or login; then every figure is read back from W&B.

        The exit code of `wandb sync` is 0 also where all was refused, and it marks runs as synced after some errors.
        """
        import wandb

        address = wandb.setup(wandb.Settings(silent=True)).settings.base_url
        check_reachable(address)
        entity, project = _project(exported)
        runs = sorted(map(str, folder.absolute().glob("wandb/offline-run-*")))
        options = ["--yes", "-p", project, *(["-e", entity] if entity else [])]
        with TemporaryDirectory() as scratch:  # its logs go to the working directory
            done = subprocess.run(
                [sys.executable, "-m", "wandb", "sync", *options, *runs], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, check=False, stdin=subprocess.DEVNULL, cwd=scratch,
            )  # fmt: skip
        errors = [line.partition(" ERROR ")[2] for line in done.stdout.splitlines() if " ERROR " in line]
        marks = list(folder.glob("wandb/offline-run-*/*.synced"))
        for mark in marks:
            mark.unlink()  # else `wandb sync` by hand would leave the run out
        if done.returncode or errors or len(marks) < len(runs):
            said = " ".join((errors[0] if errors else done.stdout[-500:]).split())[:500]
            raise StoreError(f"W&B at {address} did not take the runs: {said}; check WANDB_API_KEY, or run `wandb login`")
        try:
            self._read_back(exported, entity, project)
        finally:
            wandb.teardown()
        return f"project {project}: {len(runs)} runs, read back"

    def _wait_until_written(self, folder: Path, n_runs: int) -> None:
        """Return when each run's log has its end: wandb's service writes on, on a busy machine, when it was told to end."""
        give_up_at = time.monotonic() + self.patience_s
        while sum(map(_is_whole, folder.glob("wandb/offline-run-*/*.wandb"))) < n_runs:
            if time.monotonic() > give_up_at:
                raise StoreError(
                    f"wandb did not write all runs to {folder} in {self.patience_s:.0f} s; run the same command again"
                )
            time.sleep(0.1)

    def _read_back(self, exported: Exported, entity: str, project: str) -> None:
        """Return when W&B holds every figure. Raises StoreError where it does not within `patience_s`."""
        import wandb

        api = wandb.Api(timeout=20)
        give_up_at = time.monotonic() + self.patience_s
        for contestant in exported.contestants:
            path = f"{entity or api.default_entity}/{project}/{_run_id(exported, contestant)}"
            while missing := _missing(contestant.numbers(), api.run(path).summary_metrics):
                if time.monotonic() > give_up_at:
                    more = f" and {len(missing) - 1} more figures" if missing[1:] else ""
                    raise StoreError(f"W&B took the runs, but {path} does not hold what was sent: {missing[0]}{more}")
                time.sleep(1)
                api.flush()


def _missing(sent: Mapping[str, float], there: Mapping[str, Any]) -> list[str]:
    """The figures that are not there; the last digit may have been lost on the way through a server's database."""
    return [
        name
        for name, value in sent.items()
        if not isinstance(there.get(name), int | float) or not math.isclose(there[name], value, rel_tol=1e-12)
    ]


def _project(exported: Exported) -> tuple[str, str]:
    """Entity (empty: the user's default) and project."""
    entity, _, project = (exported.name or re.sub(r"[^\w.-]", "-", exported.publication.benchmark)).rpartition("/")
    return entity, project


def _run_id(exported: Exported, contestant: Contestant) -> str:
    """The same each time, so that a publication sent twice stands there once."""
    said = f"{exported.publication.publication_id}\n{contestant.model}\n{contestant.checkpoint}"
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _is_whole(path: Path) -> bool:
    """Whether a run's log has its last record."""
    from wandb.proto.wandb_internal_pb2 import Record

    try:
        return any(Record.FromString(one).HasField("exit") for one in _records(path))
    except Exception:  # noqa: BLE001 - protobuf's, of a record that is cut off as yet
        return False


def _records(path: Path) -> Iterator[bytes]:
    """The messages of a run's log, whose framing is LevelDB's."""
    content, at, held = path.read_bytes(), _FILE_HEADER, b""
    while at + _HEADER <= len(content):
        if _BLOCK - at % _BLOCK < _HEADER:
            at += _BLOCK - at % _BLOCK
            continue
        n_bytes, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        held += content[at + _HEADER : at + _HEADER + n_bytes]
        at += _HEADER + n_bytes
        if kind in (_FULL, _LAST):
            yield held
            held = b""
