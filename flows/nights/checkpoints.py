"""Which checkpoints a benchmark's sources hold, in which order, since when. What they are asked: nightly.py, backfill.py."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

import polars as pl

from flows.nights.checkpoint_table import days_of
from schemas.benchmark.file import source_name
from schemas.errors import InputError, SourceError
from schemas.lineage import Lineage
from schemas.metrics import natural_key
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.ingest.known_sources import KnownSources
from tasks.ingest.readers import is_begun
from tasks.ingest.sources import ResolvedSource, expand, no_rows
from tasks.plan.anchors import OFF_BOARD

_NAMED = ["model", "checkpoint"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint of one model. `made_on`: the table's date, else its folder's; None where neither says."""

    model: str
    checkpoint: str
    made_on: date | None = None

    @property
    def name(self) -> str:
        """As `--checkpoints` and the baseline name it."""
        return f"{self.model}/{self.checkpoint}"


def find_checkpoints(
    run: StageContext, unreadable: dict[str, str] | None = None, named: Collection[str] = ()
) -> list[Checkpoint]:
    """Every checkpoint there is, model by model, oldest first. Sources that the lake knows are not read.

    With `[nightly] checkpoints`, those the table lists and a source holds, by date and then by name; without, all, in natural
    order of their names. Raises SourceError, also where no source has a row, and InputError
    where the table is none, or no source has one of those `named`. `unreadable`: as of in_sources().
    """
    benchmark = run.benchmark
    found = in_sources(run, unreadable)
    if not found and not unreadable:
        raise no_rows(benchmark, source_name(benchmark.sources[0], 0))
    days = days_of(run)
    if named:
        there = [Checkpoint(*key) for key in oldest_first(found, days)]
        lost = [name for name in _unknown(named, there) if name.rpartition("/")[2] not in (unreadable or ())]
        by_path = _named_by_paths(run) if lost else ()  # reading those says why they have no rows
        _check_there([name for name in lost if name not in by_path], there)
    if benchmark.nightly.checkpoints is not None:
        found = {key: days[key] for key in found if key in days}
    return [Checkpoint(*key, found[key]) for key in oldest_first(found, days)]


def _named_by_paths(run: StageContext) -> set[str]:
    """What `--checkpoints` may call those whose folder or file is there, whatever is in it."""
    found = [one for one in expand(run.benchmark, run.own_texts) if one.has_checkpoint_in_path]
    return {name for one in found for name in (str(one.checkpoint), f"{one.model}/{one.checkpoint}")}


def oldest_first(found: Collection[tuple[str, str]], days: Mapping[tuple[str, str], date | None]) -> list[tuple[str, str]]:
    """Model by model, in the order of the table's dates and then of the names."""
    return sorted(found, key=lambda one: (one[0], days.get(one) or date.min, natural_key(one[1]), one[1]))


def lineage_of(run: StageContext, known: Sequence[Checkpoint] | None = None) -> Lineage:
    """The order of the dataset's checkpoints, by the table of checkpoints where the benchmark file names one.

    `known`: those there are, of which the dataset holds some; default: it holds all. One that the table does not list, or without
    a date, is older than those with one. Raises InputError where the table is none.
    """
    table = run.benchmark.nightly.checkpoints
    if known is None and table is None:
        return Lineage()
    is_own = ~pl.col("model").is_in(OFF_BOARD)
    parts = run.lake.collect(SAMPLES, run.ids.dataset_id, lambda rows: rows.filter(is_own).select(_NAMED).unique())
    days = days_of(run)
    shown = set(parts.rows())
    return Lineage.of(oldest_first({*shown, *((one.model, one.checkpoint) for one in known or ())}, days), shown)


def newest(checkpoints: Sequence[Checkpoint]) -> dict[str, Checkpoint]:
    """The newest checkpoint of each model, of a list that is oldest first."""
    return {one.model: one for one in checkpoints}


def has_newer(
    before: Mapping[str, str],
    now: Mapping[str, str],
    checkpoints: Sequence[Checkpoint],
    days: Mapping[tuple[str, str], date | None],
) -> bool:
    """Whether a model has a newer checkpoint `now` than `before`, both by model, or is new. `checkpoints`: oldest first.

    One that is gone, and an older one in its place, are nothing newer: by the table's `days` where it still lists the one gone.
    """
    place = {(one.model, one.checkpoint): index for index, one in enumerate(checkpoints)}

    def is_newer(model: str, name: str) -> bool:
        old = before.get(model)
        if old is None or old == name:
            return old is None
        if (model, old) in place:
            return place[model, old] < place[model, name]
        pair = ((model, old), (model, name))
        return oldest_first(pair, days if pair[0] in days else {})[0] == pair[0]

    return any(is_newer(model, name) for model, name in now.items())


def made_until(checkpoints: Sequence[Checkpoint], day: date) -> list[Checkpoint]:
    """Those made on `day` or before: what a past night is about. Raises InputError where none is, or one has no date."""
    dateless = [one for one in checkpoints if one.made_on is None]
    advice = "list the dates in a table with the columns model, checkpoint and date under [nightly] checkpoints"
    if dateless:
        raise InputError(f"the checkpoints of {day} are unknown: no date for {_names(dateless)}; {advice}")
    found = [one for one in checkpoints if one.made_on is not None and one.made_on <= day]
    if checkpoints and not found:
        first = min(checkpoints, key=lambda one: one.made_on or date.max)
        raise InputError(
            f"no checkpoint was made on {day} or before: the first, {first.name}, is of {first.made_on}. A folder's date is that "
            f"of its last file; if files were copied later, {advice}"
        )
    return found


def chosen(checkpoints: Sequence[Checkpoint], names: Collection[str] | None, since: date | None) -> list[Checkpoint]:
    """Those of these names (`checkpoint` or `model/checkpoint`), or made on `since` or later; all where neither is given.

    Raises InputError for a name that is not there, where the date of one is not known, and where none is chosen.
    """
    if not checkpoints:
        raise InputError("the table under [nightly] checkpoints lists no checkpoint that is in a source; add its rows")
    if names is not None:
        if not names:
            raise InputError(f"no checkpoint is named; available: {_names(checkpoints)}")
        _check_there(names, checkpoints)
        return [one for one in checkpoints if one.checkpoint in names or one.name in names]
    if since is None:
        return list(checkpoints)
    dateless = [one for one in checkpoints if one.made_on is None]
    if dateless:
        raise InputError(
            f"--since needs a date for each checkpoint, and has none for {_names(dateless)}; name a table with the columns "
            "model, checkpoint and date under [nightly] checkpoints, or use --checkpoints"
        )
    found = [one for one in checkpoints if one.made_on is not None and one.made_on >= since]
    if not found:
        last = max(reversed(checkpoints), key=lambda one: one.made_on or date.min)
        raise InputError(
            f"no checkpoint was made on {since} or later; the newest, {last.name}, is of {last.made_on}. Give an earlier date, "
            "or --checkpoints"
        )
    return found


def _unknown(names: Collection[str], checkpoints: Sequence[Checkpoint]) -> list[str]:
    return [name for name in names if not any(name in (one.checkpoint, one.name) for one in checkpoints)]


def _check_there(names: Collection[str], checkpoints: Sequence[Checkpoint]) -> None:
    if unknown := _unknown(names, checkpoints):
        raise InputError(f"checkpoint {', '.join(unknown)} does not exist; available: {_names(checkpoints)}")


def _names(checkpoints: Sequence[Checkpoint]) -> str:
    return ", ".join(one.name for one in checkpoints[:20]) or "none"


def choose(run: StageContext, names: Collection[str] | None, since: date | None) -> tuple[list[Checkpoint], dict[str, str]]:
    """chosen() of the checkpoints there are; and beside them those whose folders cannot be read, by name, with the sentence."""
    unreadable = dict[str, str]()
    known = find_checkpoints(run, unreadable)
    broken = {
        name: why for name, why in unreadable.items() if names is None or any(name == one.rpartition("/")[2] for one in names)
    }
    names = names and [one for one in names if one.rpartition("/")[2] not in broken]
    if broken and (names == [] or not known):
        return [], broken
    return chosen(known, names, since), broken


def in_sources(run: StageContext, unreadable: dict[str, str] | None = None) -> dict[tuple[str, str], date | None]:
    """(model, checkpoint) of all that the sources hold, and since when, where a folder says so.

    `unreadable`: takes in what stands for one checkpoint and cannot be read, by its name, with why. Without it SourceError is
    raised, and a folder counts from its first picture on: who takes some in is told of an empty one as it is read.
    """
    found: dict[tuple[str, str], date | None] = {}
    zone, known_sources = ZoneInfo(run.benchmark.nightly.timezone), KnownSources.of(run)
    for source in expand(run.benchmark, run.own_texts):
        if unreadable is None and source.has_checkpoint_in_path and not is_begun(source):
            continue
        try:
            of_source = list(_of_source(source, zone, known_sources))
        except SourceError as error:
            if unreadable is None or not source.has_checkpoint_in_path:
                raise
            unreadable[str(source.checkpoint)] = str(error)
            continue
        for key, made_on in of_source:
            known = [day for day in (found.get(key), made_on) if day is not None]
            found[key] = max(known, default=None)
    return found


def _of_source(source: ResolvedSource, zone: ZoneInfo, known: KnownSources) -> Iterator[tuple[tuple[str, str], date | None]]:
    """Where the path names both, the folder is not read: its own date is that of the last file put into it."""
    if source.has_checkpoint_in_path and source.model is not None and source.checkpoint is not None:
        changed_at = datetime.fromtimestamp(source.path.stat().st_mtime, zone)
        yield (source.model, source.checkpoint), changed_at.date()
        return
    for key in known.roles_in(source):
        yield key, None
