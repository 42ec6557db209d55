"""Salon's commands from Python, each as a process of its own: what they do, print and end with is what the terminal's do."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from salon.errors import SalonError
from salon.finding import find
from salon.places import Place
from salon.publication import Publication

_COMMAND = Path(__file__).with_name("command.py")
_BLOCKED = 1
_PUBLISHED = re.compile(r"^publication ([0-9a-f]{16}) ", re.MULTILINE)
"""What the command says it made or found; other runs of the benchmark may end at the same time."""
_SENTENCE = re.compile(r"^salon: ", re.MULTILINE)


@dataclass(frozen=True)
class PlannedRubric:
    """What one judge would be asked by one rubric; what is not known (a price, a time) is None."""

    rubric_id: str
    judge_model: str
    n_requests: int
    n_stored: int
    n_to_ask: int
    n_input_tokens: int
    n_output_tokens: int
    online_usd: float | None
    batch_usd: float | None
    worst_usd: float | None
    saved_usd: float | None
    minutes: float | None
    worst_batch_usd: float | None = None


@dataclass(frozen=True)
class Lever:
    """What all that is to be asked would cost under one change alone, and the share of the expected cost that this saves.

    `lever`: batch, max_side_px_1024, max_side_px_512, detail_low, repeats_1, share_0.5 or prompt_cache.
    """

    lever: str
    usd: float
    saved_share: float


@dataclass(frozen=True)
class Unusable:
    """A row of a source that nobody is asked about, or that stands there twice (`duplicate`)."""

    status: str
    source: str
    source_key: str
    detail: str | None


@dataclass(frozen=True)
class FoundCheckpoint:
    """A checkpoint of the sources: its samples, and those of them that can be judged."""

    model: str
    checkpoint: str
    n_samples: int
    n_usable: int


@dataclass(frozen=True)
class CategorySize:
    """How many prompts of a category a judge is asked about by a rubric, by any checkpoint; `__unnamed__`: those without one."""

    rubric_id: str
    judge_model: str
    category: str
    n_prompts: int


@dataclass(frozen=True)
class Plan:
    """A run that has not happened: requests, US dollars, minutes; what is not known is None. Printed, it is the table.

    `worst_usd`, `worst_batch_usd`: if every reply is as long as it may be, online and by batch.
    `saved_usd`: what the stored replies would cost. `unusable`: some rows of
    each status of `n_by_status` that is not ok. `levers`: what would cost less. `rejected`: stored
    rejections by what the provider said. `n_of_exam`: of all requests, those of twins with planted faults. `n_handed_over`: of
    those to ask, those that are with a Batch API already, and are not paid for again. `notes`: what of the sources is not read,
    and what else to know of them. `checkpoints`: all that were found, in the order of the trend.
    `categories`: the prompts of each under each rubric and judge, the smallest first.
    """

    benchmark: str
    n_samples: int
    n_usable: int
    n_by_status: Mapping[str, int]
    unusable: tuple[Unusable, ...]
    n_requests: int
    n_stored: int
    n_to_ask: int
    online_usd: float | None
    batch_usd: float | None
    worst_usd: float | None
    saved_usd: float | None
    minutes: float | None
    rubrics: tuple[PlannedRubric, ...]
    levers: tuple[Lever, ...]
    rejected: Mapping[str, int]
    warnings: tuple[str, ...]
    text: str
    n_of_exam: int = 0
    notes: tuple[str, ...] = ()
    checkpoints: tuple[FoundCheckpoint, ...] = ()
    categories: tuple[CategorySize, ...] = ()
    worst_batch_usd: float | None = None
    n_handed_over: int = 0

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def plan(file: str | Path, *options: str) -> Plan:
    """What a run would ask, cost and take (`salon plan FILE`); nothing is sent. Raises SalonError with the command's sentence."""
    told = json.loads(_said("plan", str(file), "--json", *options))
    kinds: dict[str, Callable[..., Any]] = {
        "rubrics": PlannedRubric, "unusable": Unusable, "levers": Lever, "checkpoints": FoundCheckpoint,
        "categories": CategorySize,
    }  # fmt: skip
    rows = {name: tuple(kind(**row) for row in told[name]) for name, kind in kinds.items()}
    return Plan(**told | rows | {name: tuple(told[name]) for name in ("warnings", "notes")})


def run(file: str | Path, *options: str) -> Publication:
    """Run a benchmark file (`salon run FILE`) and wait until it is done; the publication it made or found.

    `options` are the command's: `"--max-usd", "5"`. One with blocked cells is given back too: its standings say so.
    Raises SalonError with the command's sentence and exit code, also where nothing was published.
    """
    done = _ended("run", str(file), *options)
    published = _PUBLISHED.findall(done.stdout)
    if done.returncode not in (0, _BLOCKED) or not published:  # where a data check stops it, it publishes nothing
        raise _error(done)
    said = tomllib.loads(Path(file).read_text(encoding="utf-8-sig"))
    lake = str(said.get("lake", "lake/"))
    place = Place.of(lake if lake.startswith("s3://") else Path(file).resolve().parent / lake)
    return find(place, said["name"], published[-1])


def parse(rubric: str, replies: Iterable[str | Mapping[str, Any]], folders: Iterable[str | Path] = ()) -> list[dict[str, Any]]:
    """Read replies by a rubric (`salon parse --rubric ID[:CATEGORY]`): {"scores": ...} or {"error": reason} for each, in order.

    A reply is its text, or {"raw": text, "context": {...}}. `folders` hold rubrics of your own.
    """
    if isinstance(replies, str | Mapping):
        raise TypeError("replies must be an iterable of replies; for a single one write parse(rubric, [reply])")
    replies = list(replies)
    for place, one in enumerate(replies):
        if not isinstance(one, str | Mapping):
            raise TypeError(f'reply {place} has type {type(one).__name__}; pass its text, or {{"raw": text, "context": {{…}}}}')
    lines = [json.dumps({"raw": one} if isinstance(one, str) else dict(one)) for one in replies]
    own = [word for folder in folders for word in ("--rubrics", str(folder))]
    said = _said("parse", "--rubric", rubric, "--jsonl", "-", *own, given="".join(f"{line}\n" for line in lines))
    return [json.loads(line) for line in said.splitlines()]


def _said(*arguments: str, given: str | None = None) -> str:
    done = _ended(*arguments, given=given)
    if done.returncode:
        raise _error(done)
    return done.stdout


def _error(done: "subprocess.CompletedProcess[str]") -> SalonError:
    sentence = _SENTENCE.split(done.stderr)[-1].strip()  # after the lines of progress
    return SalonError(sentence or f"salon {done.args[0]} exited with code {done.returncode}", done.returncode or 1)


def _ended(*arguments: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", str(_COMMAND), *arguments]
    pipe = subprocess.PIPE
    told = os.environ | {"NO_COLOR": "1", "COLUMNS": "120", "SALON_LOG_FORMAT": "", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", env=told) as process:
        try:
            out, error = process.communicate(given or "")
        except KeyboardInterrupt:  # a notebook's "interrupt": requests that were sent are finished and stored
            process.terminate()
            process.wait()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, out, error)
