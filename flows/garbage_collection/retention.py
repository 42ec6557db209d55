"""What stays in a lake, and why; all else may go. One rule for each kind of item. What there is: inventory.py."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import polars as pl

from flows.garbage_collection.inventory import (
    DATA_DOCS,
    LOCK,
    NOTE,
    PART,
    PUBLICATION,
    SOURCE,
    STAGING,
    TILES,
    TRASH,
    Item,
    inventory,
)
from flows.nights.anchors import anchor_sets
from flows.nights.drift import nightly_publications
from flows.nights.record import notes
from flows.run.begun import FOLDER as ASKING
from flows.run.begun import Asking
from schemas.errors import CorruptLakeError
from schemas.tables.stored import CHECKS, JUDGEMENTS, PICTURES, QUARANTINE, REPLIES, REQUESTS, SAMPLES, SCORES
from tasks.ingest.known_sources import known_source
from tasks.lake.own_places import LEFTOVER_AGE_S, linked_at
from tasks.lake.reading import Lake
from tasks.publish.folders import AGREEMENTS, GOOD_POINTER, LAYOUT, MANIFEST, POINTER, PROVENANCE
from tasks.publish.pins import pins
from tasks.publish.pointer import read_pointer
from tasks.publish.reading import publications
from tasks.regular_files import content_of

DAY_S: Final = 86_400.0
_MADE_OF: Final = {
    SAMPLES.name: "dataset_id", PICTURES.name: "dataset_id", JUDGEMENTS.name: "plan_id", REQUESTS.name: "plan_id",
    REPLIES.name: "snapshot_id", SCORES.name: "reading_id",
}  # fmt: skip
_OF_A_SERIES: Final = (JUDGEMENTS.name, SCORES.name)
"""What drift needs of a night beside its tables: its anchors are counted anew from these by every new version of the code."""
NIGHT: Final = "night of a series"
_CHECKED: Final = (CHECKS.name, QUARANTINE.name)


@dataclass(frozen=True, slots=True)
class Weighed:
    """An item and why it stays; None where it may go."""

    item: Item
    why: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """`n_days`: what is younger stays. `is_thinning`: of older nights only what their series needs stays."""

    n_days: int
    is_thinning: bool = False

    def is_young(self, item: Item) -> bool:
        """Whether the item was changed in the last days."""
        return datetime.now(UTC).timestamp() - item.changed_at_s < self.n_days * DAY_S

    @property
    def young(self) -> str:
        """Why a young item stays."""
        return f"younger than {self.n_days} days"


def weighed(lake: Lake, rule: Rule) -> list[Weighed]:
    """Every item of the lake with why it stays. Raises CorruptLakeError where a pointer, note or manifest cannot be read."""
    items, linked = inventory(lake), _Linked(lake.root)
    named = _named(lake.root, {item.benchmark for item in items if item.kind == PUBLICATION})
    said = {item.name: _why_published(item, named, rule) or linked.why(item) for item in items if item.kind == PUBLICATION}
    kept = {name: why for name, why in said.items() if why is not None}
    wanted = _wanted(lake, [item for item in items if item.name in kept and item.kind == PUBLICATION], kept, rule)
    found = [Weighed(item, _why(item, kept, wanted, rule)) for item in items if item.kind not in (NOTE, SOURCE, *_CHECKED)]
    found = linked.spared([*found, *_weighed_checks([item for item in items if item.kind in _CHECKED], kept, rule)])
    there = {(one.item.kind, one.item.name) for one in found if one.why is not None}
    return [*found, *linked.spared([_weighed_note(item, there) for item in items if item.kind in (NOTE, SOURCE)])]


class _Linked:
    """What a link within the lake leads to, or is: nothing is taken away there."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._at = lru_cache(None)(lambda folder: linked_at(root, folder))  # each folder holds many items

    def why(self, item: Item) -> str | None:
        """Why the item stays, if any of it is behind a link."""
        for path in item.paths:
            link = self._at(path.parent) or (path if path.is_symlink() else None)
            if link is not None:
                return f"{link.relative_to(self._root)} is a link: nothing behind it is deleted"
        return None

    def spared(self, found: list[Weighed]) -> list[Weighed]:
        """The same, what is behind a link staying."""
        return [Weighed(one.item, one.why or self.why(one.item)) for one in found]


def _named(root: Path, benchmarks: set[str]) -> Mapping[str, str]:
    """Publication -> why it is named by something: a pin before a pointer, a pointer before a series of nights."""
    found: dict[str, str] = {}
    for benchmark in sorted(benchmarks):
        home = root / "publish" / LAYOUT / benchmark
        if not benchmark.endswith(f"/{AGREEMENTS}"):
            publications(root, benchmark)  # each manifest is whole: what lists none of a series' nights would let one go
            found |= {one.publication_id: NIGHT for one in nightly_publications(root, benchmark)}
        for name, why in ((GOOD_POINTER, "last good"), (POINTER, "current")):
            pointer = read_pointer(home, name)
            found |= {pointer["publication_id"]: why} if pointer else {}
    return found | {pin.publication_id: f"pinned{f': {pin.because}' if pin.because else ''}" for pin in pins(root)}


def _why_published(item: Item, named: Mapping[str, str], rule: Rule) -> str | None:
    if not (item.paths[0] / MANIFEST).is_file():
        return f"no {MANIFEST}: not published by Salon, or broken"
    said = named.get(item.name)
    return rule.young if said in (None, NIGHT) and rule.is_young(item) else said


def _wanted(lake: Lake, kept: list[Item], why: Mapping[str, str], rule: Rule) -> Mapping[tuple[str, str], str]:
    """(table, key) of the partitions that kept publications, frozen anchors and runs without a row need -> why."""
    found: dict[tuple[str, str], str] = {}
    for item in sorted(kept, key=lambda one: why[one.name] != NIGHT):  # of several reasons the stronger is said
        ids = _identities(item.paths[0]) if (item.paths[0] / MANIFEST).is_file() else {}
        is_thin = rule.is_thinning and why[item.name] == NIGHT
        for table, name in _MADE_OF.items():
            if name in ids and not (is_thin and table not in _OF_A_SERIES):
                found[table, str(ids[name])] = f"for: {why[item.name].partition(':')[0]}"
    benchmarks = {path.name for room in ("anchors", "nights") for path in (lake.root / room).glob("*/")}
    anchors = {one.anchor_set for benchmark in benchmarks for one in anchor_sets(lake.root, benchmark)}
    # those that nights were judged with too: a record that is lost can come back from a backup
    anchors |= {note.anchor_set for benchmark in benchmarks for note in notes(lake.root, benchmark).values() if note.anchor_set}
    found |= {(table.name, key): "frozen anchors" for key in sorted(anchors) for table in (SAMPLES, PICTURES)}
    for path in sorted((lake.root / ASKING).glob("*/*.json")):
        found = _plans_asked(path) | found
    return found


def _plans_asked(path: Path) -> dict[tuple[str, str], str]:
    """Of the note of a run that asks, or asked and has no row yet; none where it is no such note: a run says so."""
    try:
        note = Asking.model_validate_json(content_of(path))
    except (OSError, ValueError):
        return {}
    return {(REQUESTS.name, key): f"{note.told} has no row in runs yet" for key in note.plan_ids}


def _identities(folder: Path) -> Mapping[str, Any]:
    try:
        return dict(json.loads(content_of(folder / PROVENANCE)).get("identities") or {})
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptLakeError(
            f"{folder / PROVENANCE} cannot be read ({error}), so its inputs are unknown; restore it first"
        ) from error


def _why(item: Item, kept: Mapping[str, str], wanted: Mapping[tuple[str, str], str], rule: Rule) -> str | None:
    if item.kind == PUBLICATION:
        return kept.get(item.name)
    if item.kind == DATA_DOCS and item.name in kept and not (rule.is_thinning and kept[item.name] == NIGHT):
        return f"for: {kept[item.name].partition(':')[0]}"
    if item.kind == STAGING:
        is_old = datetime.now(UTC).timestamp() - item.changed_at_s >= LEFTOVER_AGE_S
        return None if is_old or item.name.startswith(TRASH) else "younger than 2 days: a run may still be writing it"
    if item.kind in (DATA_DOCS, PART, LOCK, TILES):  # tiles are as old as their last use
        return rule.young if rule.is_young(item) else None
    said = wanted.get((item.kind, item.name))
    return said or (rule.young if rule.is_young(item) else None)


def _weighed_checks(items: list[Item], kept: Mapping[str, str], rule: Rule) -> list[Weighed]:
    """Checks and quarantine are named by their content; whose they are stands in the rows of the checks."""
    said: dict[str, str | None] = {}
    found: list[Weighed] = []
    for item in sorted(items, key=lambda item: item.kind != CHECKS.name):
        if item.kind == CHECKS.name:
            run_id = _run_id(item)
            of = None if run_id is None or run_id not in kept else f"for: {kept[run_id].partition(':')[0]}"
            said[item.name] = of
        found.append(Weighed(item, said.get(item.name) or (rule.young if rule.is_young(item) else None)))
    return found


def _run_id(item: Item) -> str | None:
    """Whose checks they are; None where the rows cannot be read: then they are nobody's."""
    for path in sorted(item.paths[-1].glob("*.parquet")):
        try:
            return str(pl.scan_parquet(content_of(path)).select(pl.first()).head(1).collect().item())
        except (ValueError, OSError, pl.exceptions.PolarsError):
            return None
    return None


def _weighed_note(item: Item, there: set[tuple[str, str]]) -> Weighed:
    """A note, or what is remembered of a source, only spares work: it is good for as long as what it names is there."""
    return Weighed(item, "what it refers to is there" if _partition_named(item) in there else None)


def _partition_named(item: Item) -> tuple[str, str] | None:
    if item.kind == SOURCE:
        known = known_source(item.paths[0])
        return (SAMPLES.name, known.dataset_id) if known else None
    of = {"planned": (JUDGEMENTS.name, "plan_id"), "taken": (REPLIES.name, "snapshot_id"), "verdicts": (CHECKS.name, "check_id")}
    table, name = of[item.name.partition("/")[0]]
    try:
        return table, str(json.loads(content_of(item.paths[0]))[name])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
