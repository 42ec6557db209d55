"""What a publication is named by and what it says of its making; which code made it.

Nothing here knows the clock or the machine.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from schemas.benchmark.file import Benchmark
from schemas.identities import RunIds
from schemas.lineage import Lineage
from schemas.tables.table import SCHEMA_VERSION
from tasks.context import StageContext

MADE_OF = ("code_version", "dataset_id", "plan_id", "reading_id", "snapshot_id")
"""The identities that provenance.json holds."""

LINEAGE = "lineage"
"""The key of provenance.json that holds the order of checkpoints."""

_WHERE_AND_HOW_FAST: dict[str, Any] = {
    "gate": {"stop_when_unreadable"},
    "lake": True,
    "ledger": True,
    "limits": True,
    "rubric_folders": True,
    "sources": {"__all__": {"path", "remote_hosts", "decode", "follow_links"}},
    "judges": {"__all__": {"base_url", "api_key_env", "mode", "price", "on_model_change", "server"}},
    "nightly": {"schedule", "timezone", "finish_by", "on_no_fresh_checkpoint", "checkpoints", "n_earlier"},
    "ratings": True,
    "runner": True,
    "workers": True,
}
"""What a benchmark file says that cannot change a number. Samples and rubrics are named by their own digests instead."""

_ASKED_BY = ("model", "provider", "deployment", "parameters", "structured_output", "detail", "max_side_px", "recorded")
"""Of a judge in a provenance's settings: what makes its questions, or who answers them, others."""


class AsksTheSame(Protocol):
    """Of a rubric's id and two digests, whether both ask and read the same: a digest changes with a title, too."""

    def __call__(self, name: str, digest: str, other: str, /, *, but_for_version: bool = False) -> bool:
        """`but_for_version`: whatever their versions are."""


PACKAGES = ("schemas", "rubrics", "tasks", "flows")
"""The packages whose code can change a published byte. The demo makes samples and replies, which have digests of their own."""

SUFFIXES = (".py", ".j2", ".css", ".js")
"""Of the files that make numbers and pages."""


def benchmark_digest(benchmark: Benchmark) -> str:
    """sha256 hex of the benchmark file's canonical JSON, less what says only where, when and how fast."""
    return _digest(_settings(benchmark))


def publication_id(benchmark: Benchmark, ids: RunIds, run_date: date, lineage: Lineage) -> str:
    """sha256 hex of everything a publication is made from: the same inputs are the same publication."""
    return _digest(ordered_by(lineage) | {
        "benchmark_digest": benchmark_digest(benchmark), "code_version": ids.code_version, "dataset_id": ids.dataset_id,
        "plan_id": ids.plan_id, "reading_id": ids.reading_id, "run_date": run_date.isoformat(),
        "schema_version": SCHEMA_VERSION,
    })  # fmt: skip


def provenance(context: StageContext, **more: str) -> dict[str, Any]:
    """What provenance.json says: what the publication is made of, and `more` of it; the instruments, the judges.

    Library versions, host and time are left out on purpose: the same inputs publish the same bytes on every machine.
    """
    benchmark, rubrics = context.benchmark, context.rubrics
    return {
        "identities": {name: getattr(context.ids, name) for name in MADE_OF} | more,
        "benchmark_digest": benchmark_digest(benchmark),
        "settings": _settings(benchmark),
        **ordered_by(context.lineage),
        "min_coverage": benchmark.gate.min_coverage,
        "rubrics": {
            choice.id: {"version": rubric.version, "digest": rubric.digest, "title": rubric.title, "source": rubric.source}
            for choice in benchmark.rubrics
            for rubric in [rubrics[choice.id]]
        },
        "judges": [
            {"model": judge.model, "parameters": judge.parameters, "repeats": judge.repeats, "recorded": judge.recorded}
            | judge.model_dump(mode="json", include={"name", "detail", "max_side_px", "share"}, exclude_none=True)
            for judge in benchmark.judges
        ],
    }


def ordered_by(lineage: Lineage) -> dict[str, Any]:
    """The order of checkpoints, where their names do not give it."""
    return {LINEAGE: lineage.said} if lineage.by_model else {}


def asked_otherwise(before: Mapping[str, Any], now: Mapping[str, Any], asks_the_same: AsksTheSame) -> list[str]:
    """Of two provenances, the rubrics and judges that ask otherwise under the same name: their numbers do not compare.

    Empty where `before`, a file that anything may have happened to, cannot be read.
    """
    try:
        judges = before.get("settings", {}).get("judges", [])
        rubrics = _changed_rubrics(before.get("rubrics", {}), now, asks_the_same)
        return [*rubrics, *_changed_judges(judges, now["settings"]["judges"])]
    except (AttributeError, KeyError, TypeError):
        return []


def added_or_dropped(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Of two provenances, the rubrics and judges that only one of them has. Empty where `before` cannot be read."""
    try:
        were, are = _names_in(before), _names_in(now)
    except (AttributeError, KeyError, TypeError):
        return []
    renamed = {f"judge {name}" for name in chain(*renamed_judges(before, now).items())}
    were, are = ([one for one in names if one not in renamed] for names in (were, are))
    return [*(f"{one} (added)" for one in are if one not in were), *(f"{one} (dropped)" for one in were if one not in are)]


def replaced_judges(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Of two provenances, the judges that only the second has, and in whose place. Empty where `before` cannot be read."""
    added, dropped = judges_of_one(before, now)
    return [f"judge {', '.join(added)} (in place of {', '.join(dropped)})"] if added and dropped else []


def judges_of_one(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Of two provenances, the judges that only the second has and only the first, without renamed ones. Empty as above."""
    try:
        were, are = (judges_in(said) for said in (before, now))
    except (AttributeError, KeyError, TypeError):
        return [], []
    renamed = {*chain(*renamed_judges(before, now).items())}
    return [one for one in are if one not in {*were, *renamed}], [one for one in were if one not in {*are, *renamed}]


def judges_in(said: Mapping[str, Any]) -> list[str]:
    """The judges of a provenance, as tables call them."""
    return [judge_name(judge) for judge in said["settings"]["judges"]]


def renamed_judges(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """Of two provenances, the judges that send the same requests under another name, old to new. Empty as above."""
    try:
        were, are = ({judge_name(judge): judge for judge in said["settings"]["judges"]} for said in (before, now))
    except (AttributeError, KeyError, TypeError):
        return {}
    gone, come = were.keys() - are.keys(), are.keys() - were.keys()
    return {old: new for old in sorted(gone) for new in sorted(come) if not _asked_by_others(were[old], are[new])}


def _names_in(said: Mapping[str, Any]) -> list[str]:
    return [*(f"rubric {name}" for name in said["rubrics"]), *(f"judge {name}" for name in judges_in(said))]


def judge_name(judge: Mapping[str, Any]) -> str:
    """What a judge is called, as a provenance has it."""
    return str(judge.get("name") or judge["model"])


def _changed_rubrics(before: Mapping[str, Any], now: Mapping[str, Any], asks_the_same: AsksTheSame) -> Iterator[str]:
    for name, one in now["rubrics"].items():
        other = before.get(name)
        if other and not asks_the_same(name, other["digest"], one["digest"]):
            was, now_is = other["version"], one["version"]
            version = "same version" if was == now_is else f"version {was}, now {now_is}"
            is_all = asks_the_same(name, other["digest"], one["digest"], but_for_version=True)
            yield f"rubric {name} ({version}{'' if is_all else '; its text or rules changed'})"


def _changed_judges(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What an earlier release did not say of a judge has not changed."""
    judges = {judge_name(judge): judge for judge in before}
    for judge in now:
        name = judge_name(judge)
        if changed := _asked_by_others(judges.get(name, {}), judge):
            yield f"judge {name} ({', '.join(changed)})"


def _asked_by_others(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [word for word in _ASKED_BY if word in was and was[word] != now[word]]


def _settings(benchmark: Benchmark) -> dict[str, Any]:
    """The benchmark file as far as it can change a number."""
    return benchmark.model_dump(mode="json", exclude=_WHERE_AND_HOW_FAST)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@cache
def code_version(root: Path | None = None) -> str:
    """sha256 hex over the .py files of PACKAGES below `root` (default: the running code): relative path and content, sorted.

    A checkout with local changes has a version of its own, so it never passes for a release.
    """
    base = root or Path(__file__).resolve().parents[2]
    files = (path for package in PACKAGES for path in (base / package).rglob("*") if path.suffix in SUFFIXES)
    paths = sorted((path.relative_to(base).as_posix(), path) for path in files)
    whole = hashlib.sha256()
    for name, path in paths:
        whole.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
